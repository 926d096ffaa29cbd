import asyncio

from graphwright import build_agent
from graphwright.events import AgentEvent, CallbackSink, EventNotifier
from graphwright.testing import ScriptedModel, calls, says


def charge(amount: int) -> str:
    """Charge the card."""
    raise RuntimeError("the bank is closed")


def page_somebody(event: AgentEvent) -> None:
    print(event.severity, event.event_type, event.data.get("tool", ""))


async def main() -> None:
    notifier = EventNotifier([CallbackSink(page_somebody, events=["tool.*", "invocation.*"])])
    model = ScriptedModel([calls("charge", amount=5), says("That did not work.")])
    agent = await build_agent(model=model, extra_tools=[charge], events=notifier)

    await agent.ainvoke("Charge five.")
    await agent.shutdown()


asyncio.run(main())
