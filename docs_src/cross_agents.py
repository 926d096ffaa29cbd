import asyncio

from graphwright import build_agent
from graphwright.cross_agent import CrossAgent
from graphwright.testing import ScriptedModel, calls, says


async def main() -> None:
    geographer = await build_agent(model=ScriptedModel([says("Paris.")]), instructions="You know geography.")
    agent = await build_agent(
        model=ScriptedModel([calls("ask_agent_geo", message="Capital of France?"), says("It is Paris.")]),
        cross_agents={"geo": CrossAgent(geographer, description="knows countries and capitals")},
    )

    result = await agent.ainvoke("What is the capital of France?")

    print(result.text)
    print(result.usage.total_tokens, "tokens, the peer's among them")


asyncio.run(main())
