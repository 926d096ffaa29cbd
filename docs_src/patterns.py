import asyncio

from graphwright import build_agent
from graphwright.models.base import ModelCapabilities
from graphwright.testing import ScriptedModel, calls

# What a model would say at each stage.
script = [
    calls("search", words="height of Everest"),
    "Everest is 8849 m high (search result).",
    '{"passes": true, "issues": []}',
    "Everest is 8849 m high.",
]


def search(words: str) -> str:
    """Search for words."""
    return "Everest: 8849 m, measured in 2020"


async def main() -> None:
    model = ScriptedModel(script, capabilities=ModelCapabilities(structured_output=True))
    agent = await build_agent(model=model, agent_pattern="research", extra_tools=[search])
    result = await agent.ainvoke("How high is Everest?")
    print(result.text)
    print(" -> ".join(result.report.nodes_visited))


asyncio.run(main())
