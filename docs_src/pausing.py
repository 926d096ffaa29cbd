import asyncio

from graphwright import build_agent, text_of, tool
from graphwright.engine.interrupt import interrupt, once
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says


def reserve(seat: str) -> str:
    print("reserving", seat)
    return f"seat {seat} is yours"


@tool
async def book(flight: str) -> str:
    """Book a seat on a flight."""
    seat = await interrupt("seat", {"flight": flight, "free": ["12A", "14C"]})
    return await once("reservation", lambda: reserve(seat))


book.reenterable = True  # its code may run again from the top: what it does is inside of once()


async def main() -> None:
    model = ScriptedModel([calls("book", flight="OS 7"), says("You have seat 12A.")])
    agent = await build_agent(model=model, extra_tools=[book], runlog=MemoryRunLog())

    result = await agent.ainvoke("Book OS 7.", session_id="ann")
    print(result.status, [(item.kind, item.value["free"]) for item in result.pending])

    # In a web server this is another request, and with the path of a file as runlog= it may be another process.
    result = await agent.resume("ann", "12A")
    print(result.status, text_of(result))


asyncio.run(main())
