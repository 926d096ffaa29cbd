import asyncio

from graphwright import CallerContext, ToolError, build_agent
from graphwright.testing import ScriptedModel, calls, says


async def free_tables(day: str) -> str:
    """Say how many tables are free on a day."""
    if not day[:4].isdigit():
        raise ToolError(f"{day!r} is no ISO date")
    return "3"


TEACHER = '{"lessons": [{"tool": "free_tables", "lesson": "Write the day as 2026-01-31.", "confidence": 0.9}]}'


async def main() -> None:
    model = ScriptedModel(
        [
            calls("free_tables", day="Friday"),
            says("I could not find out."),
            calls("free_tables", day="2026-02-06"),
            says("Three."),
        ]
    )
    agent = await build_agent(
        model=model,
        extra_tools=[free_tables],
        instructions="Be brief.",
        adaptive={"synthesis_threshold": 1, "synthesis_model": ScriptedModel([says(TEACHER)])},
    )
    ann = CallerContext(user_id="ann")

    await agent.ainvoke("Is there a table on Friday?", caller=ann)
    await agent.adaptive_strategy.settled()
    for lesson in await agent.adaptive_strategy.lessons(caller=ann):
        print(f"{lesson.tool}: {lesson.text} ({lesson.confidence})")

    await agent.ainvoke("Is there one now?", caller=ann)
    print(model.inputs[-1][0].content)


asyncio.run(main())
