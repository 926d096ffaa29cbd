import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, calls, says


async def main() -> None:
    at_work = asyncio.Event()

    async def search(query: str) -> str:
        """Search for a very long time."""
        at_work.set()
        try:
            await asyncio.sleep(3600)
        finally:
            print("the search was cancelled")
        return "found"

    bot = OrchestratorBot(strong_model=ScriptedModel([calls("search", query="it"), says("Fine.")]), tools=[search])

    async def press_stop() -> None:
        await at_work.wait()
        bot.abort()

    stopping = asyncio.create_task(press_stop())
    async for stream_mode, payload in bot.astream_events("Find it.", mode="auto", thread_id="t1"):
        if stream_mode == "graph":
            print(payload["type"])
    await stopping

    result = await bot.arun("Never mind.", thread_id="t1")
    print(result.content)


asyncio.run(main())
