import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, calls, says

ASKED = {
    "id": "color",
    "text": "Which color?",
    "type": "single_choice",
    "options": [{"value": "r", "label": "Red"}, {"value": "b", "label": "Blue"}],
    "required": True,
}


async def main() -> None:
    model = ScriptedModel([calls("ask_user", questions=[ASKED]), says("Red it is.")])
    bot = OrchestratorBot(strong_model=model, enable_user_questions=True)

    async for stream_mode, payload in bot.astream_events("Choose.", mode="ask", thread_id="t1"):
        if stream_mode == "updates" and "__interrupt__" in payload:
            asked = payload["__interrupt__"][0].value
            print(asked["type"], [question["text"] for question in asked["questions"]])
            bot.set_resume_command({"color": "r"})

    async for stream_mode, payload in bot.astream_events(None, mode="ask", thread_id="t1"):
        if stream_mode == "updates" and "final_report" in payload.get("agent", {}):
            print(payload["agent"]["final_report"])


asyncio.run(main())
