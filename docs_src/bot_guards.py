import asyncio

from graphwright import ArgPatternGuard, BudgetGuard, GuardDecision, OrchestratorBot
from graphwright.testing import ScriptedModel, call, calls_many, says


def read(path: str) -> str:
    """Read a file."""
    return f"[{path}]"


def stay_home(context):
    """Keep every path inside the home folder."""
    if context.args["path"].startswith("home/"):
        return GuardDecision.allow()
    return GuardDecision.rewrite({"path": "home/" + context.args["path"]}, "only the home folder is open")


def no_numbers(text: str) -> GuardDecision:
    return GuardDecision.deny("it has digits in it") if any(map(str.isdigit, text)) else GuardDecision.allow()


async def main() -> None:
    turn = calls_many(call("read", path="home/a"), call("read", path="b"), call("read", path="secret"))
    bot = OrchestratorBot(
        strong_model=ScriptedModel([turn, says("The code is 1234.")]),
        tools=[read],
        tool_guards=[BudgetGuard(max_tool_calls=10), ArgPatternGuard(["secret"]), stay_home],
        output_guards=[no_numbers],
        output_guard_action="block",
    )

    result = await bot.arun("Read them all.")

    for record in result.tools_executed:
        print(record["status"], record["output"])
    for event in result.guard_events:
        print(event["guard"], event["action"], event["tool_name"] or "the answer")
    print(result.success, result.content)


asyncio.run(main())
