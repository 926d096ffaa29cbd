import asyncio

from graphwright import build_agent, text_of
from graphwright.testing import ScriptedModel, calls, says


def price_of(fruit: str) -> float:
    """Return the price of one fruit in euros."""
    return {"apple": 0.4, "mango": 1.9}[fruit]


async def main() -> None:
    model = ScriptedModel([calls("price_of", fruit="mango"), says("A mango costs 1.90 euros.")])
    agent = await build_agent(model=model, extra_tools=[price_of])

    result = await agent.ainvoke("What does a mango cost?")

    for message in result["messages"]:
        print(f"{message.type:>5}: {text_of(message) or message.tool_calls[0]['args']}")


asyncio.run(main())
