import asyncio

from graphwright import build_agent
from graphwright.engine import ContextCompaction
from graphwright.run_events import ViewChanged
from graphwright.testing import ScriptedModel, calls, says


def population(city: str) -> int:
    """Return how many people live in a city."""
    return len(city) * 100_000


async def main() -> None:
    cities = ["Rome", "Oslo", "Paris", "Vienna", "Lisbon"]
    model = ScriptedModel([*(calls("population", city=city) for city in cities), says("Lisbon is the largest.")])
    agent = await build_agent(
        model=model,
        extra_tools=[population],
        context_compaction=ContextCompaction(after_tool_results=3, reuse_results=["population"]),
    )

    run = agent.start("Which of these cities is the largest?")
    async for event in run.events():
        if isinstance(event, ViewChanged):
            print(f"{event.left_out} messages are shown as {event.facts} facts")
    result = await run.result()

    print(model.inputs[3][1].content)
    print([message.type for message in model.inputs[-1]])
    print(len(result.messages), "messages in the result")


asyncio.run(main())
