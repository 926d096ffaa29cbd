import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, calls, says


def price_of(fruit: str) -> float:
    """Return the price of one fruit in euros."""
    return {"apple": 0.4, "mango": 1.9}[fruit]


async def main() -> None:
    model = ScriptedModel([calls("price_of", fruit="mango"), says("A mango costs 1.90 euros.")])
    bot = OrchestratorBot(strong_model=model, instructions="You know the market.", tools=[price_of])

    async for stream_mode, payload in bot.astream_events("What does a mango cost?", mode="auto"):
        if stream_mode == "messages":
            chunk, _ = payload
            print("text:", chunk.text)
        elif stream_mode == "updates":
            for node, update in payload.items():
                print(f"{node} changed {sorted(update)}")
        elif payload["type"] == "graph_topology":
            print("nodes:", payload["nodes"])
        elif payload["type"] == "node_invoked":
            print(f"{payload['seq']}. {payload['node']}")


asyncio.run(main())
