import asyncio

from graphwright import build_agent, text_of
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools.builtin import RunPythonTool, SearchWebTool


def search(query: str, limit: int) -> list[dict[str, str]]:
    """Ask the search service that you have an account with."""
    return [{"title": "Mango", "url": "https://fruit.example/mango", "snippet": f"All about {query}."}]


async def main() -> None:
    model = ScriptedModel(
        [
            calls("search_web", query="mangos"),
            calls("run_python", code="print(6 * 7)"),
            says("There is no sandbox here, so I cannot run it."),
        ]
    )
    agent = await build_agent(model=model, extra_tools=[SearchWebTool(search=search), RunPythonTool()])
    result = await agent.ainvoke("Find mangos and work out 6 * 7.")
    for message in result["messages"][1:]:
        if text_of(message):
            print(f"{message.type}: {text_of(message)}")


asyncio.run(main())
