import asyncio

from graphwright import OrchestratorBot
from graphwright.testing import ScriptedModel, call, calls_many, says


def send(to: str, text: str) -> str:
    """Send a message."""
    print(f"sending {text!r} to {to}")
    return "sent"


async def main() -> None:
    turn = calls_many(call("send", to="ann", text="hi"), call("send", to="bob", text="hi"))
    bot = OrchestratorBot(strong_model=ScriptedModel([turn, says("Ann has it, Bob has not.")]), tools=[send])

    paused = await bot.arun("Greet everybody.", mode="ask", thread_id="t1")
    print(paused.status, [item["value"]["params"] for item in paused.pending])

    ann, bob = paused.pending
    result = await bot.aresume(
        "t1",
        {
            ann["id"]: {"approved": True, "args": {"to": "ann", "text": "hello"}},
            bob["id"]: {"approved": False, "feedback": "Bob is on holiday."},
        },
        by="carol",
    )
    print([(record["status"], record["args"]) for record in result.tools_executed])
    print(result.content)


asyncio.run(main())
