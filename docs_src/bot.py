import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, calls, says


def price_of(fruit: str) -> float:
    """Return the price of one fruit in euros."""
    return {"apple": 0.4, "mango": 1.9}[fruit]


async def main() -> None:
    model = ScriptedModel([calls("price_of", fruit="mango"), says("A mango costs 1.90 euros.")])
    bot = OrchestratorBot(strong_model=model, instructions="You know the market.", tools=[price_of])

    result = await bot.arun("What does a mango cost?")

    print(result.status, result.content)
    print(result.tools_executed)
    print(result.token_usage["total_tokens"], [entry["node"] for entry in result.node_trace])


asyncio.run(main())
