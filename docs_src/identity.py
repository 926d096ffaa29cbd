import asyncio

from graphwright import build_agent
from graphwright.identity import AgentIdentity
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools import get_tool_context


def token_for(audience: str | None) -> str:
    """Stands for your vault, or whatever issues tokens."""
    return f"a-token-for-{audience}"


def note(text: str) -> str:
    """Note something."""
    return f"noted by {get_tool_context().agent_id}"


async def main() -> None:
    identity = AgentIdentity("billing-agent", owner="finance", credential=token_for)
    agent = await build_agent(
        model=ScriptedModel([calls("note", text="paid"), says("Noted.")]), extra_tools=[note], identity=identity
    )
    run = agent.start("Note that it is paid.")
    agents = {event.agent_id async for event in run.events()}
    print((await run.result())["messages"][-2].content)
    print(agents)
    print(await identity.auth_header("https://tools.example"))


asyncio.run(main())
