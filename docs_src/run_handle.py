import asyncio

from graphwright import RunAbortedError, build_agent
from graphwright.run_events import ToolStarted
from graphwright.testing import ScriptedModel, calls


async def search(query: str) -> str:
    """Search for a very long time."""
    await asyncio.sleep(3600)
    return "found"


async def main() -> None:
    agent = await build_agent(model=ScriptedModel([calls("search", query="everything")]), extra_tools=[search])
    run = agent.start("Find everything.")

    async for event in run.events():
        if isinstance(event, ToolStarted):
            print("started", event.call.name)
            run.abort()

    try:
        await run.result()
    except RunAbortedError as error:
        for message in error.messages:
            print(f"{message.type}: {message.content}")


asyncio.run(main())
