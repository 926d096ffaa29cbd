import asyncio

from graphwright import build_agent, text_of


def price_of(fruit: str) -> float:
    """Return the price of one fruit in euros."""
    return {"apple": 0.4, "mango": 1.9}[fruit]


async def main() -> None:
    agent = await build_agent(model="openai:gpt-5-mini", extra_tools=[price_of])
    print(text_of(await agent.ainvoke("What does a mango cost?")))


asyncio.run(main())
