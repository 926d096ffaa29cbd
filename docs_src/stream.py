import asyncio

from graphwright import build_agent
from graphwright.streaming import DoneEvent, TokenEvent, ToolEndEvent, ToolStartEvent
from graphwright.testing import ScriptedModel, calls, says


def price_of(fruit: str) -> float:
    """Return the price of one fruit in euros."""
    return {"apple": 0.4, "mango": 1.9}[fruit]


async def main() -> None:
    model = ScriptedModel([calls("price_of", fruit="mango"), says("A mango costs 1.90 euros.")])
    agent = await build_agent(model=model, extra_tools=[price_of])

    async for event in agent.astream_with_tools("What does a mango cost?"):
        match event:
            case ToolStartEvent():
                print(f"[{event.tool_name} {event.arguments}]")
            case ToolEndEvent():
                print(f"[{event.tool_name} -> {event.tool_summary}]")
            case TokenEvent():
                print(event.text, end="|")
            case DoneEvent():
                print(f"\n{event.full_response!r}, {len(event.tool_calls)} tool call")


asyncio.run(main())
