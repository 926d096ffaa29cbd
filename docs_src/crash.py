import asyncio

from graphwright import build_agent
from graphwright.testing import ScriptedModel, calls, says
from graphwright.testing.crash import AgentScenario, explore


async def build(log, world):
    async def pay(euros: int) -> str:
        """Pay."""
        world.effect("pay")
        return f"paid {euros}"

    def script(messages):
        return says("Paid.") if messages[-1].type == "tool" else calls("pay", euros=5)

    model = world.model(ScriptedModel.answering(script))
    return await build_agent(model=model, extra_tools=[pay], runlog=log)


async def main() -> None:
    report = await explore(AgentScenario(build, "Pay 5 euros."))

    print("killed at", len(report.points), "places, problems:", report.problems)
    print("most payments of one run:", max(sum(effects.values()) for effects in report.effects))
    print("told that the outcome is unknown:", any(leg.unknown for leg in report.killed))


asyncio.run(main())
