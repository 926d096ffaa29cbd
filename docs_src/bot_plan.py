import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, call, calls, calls_many, says


def search(text: str) -> str:
    """Search."""
    return "three sources"


async def main() -> None:
    model = ScriptedModel(
        [
            calls("set_plan", steps=["Find sources", "Write the report"]),
            calls_many(call("update_step", step=1, status="running"), call("search", text="news")),
            calls("update_step", step=1, status="done"),
            says("Three sources say so."),
        ]
    )
    bot = OrchestratorBot(strong_model=model, tools=[search], enable_planning=True)

    async for stream_mode, payload in bot.astream_events("Report the news.", mode="auto"):
        if stream_mode == "updates":
            for node, update in payload.items():
                for event in update.get("step_events", []):
                    print(f"step {event['step']} is {event['status']}")
                if node == "plan":
                    print([f"{step['description']}: {step['status']}" for step in update["plan"]])


asyncio.run(main())
