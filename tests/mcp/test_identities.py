"""An agent's identity: what it sends to servers, and where its name is found afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright import build_agent
from graphwright.agent import CallerContext
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import ConfigurationError, IdentityError, MCPConnectionRejectedError, MCPCredentialError
from graphwright.identity import AgentIdentity
from graphwright.messages import ToolMessage
from graphwright.run_scope import current_run
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools import get_tool_context, tool


class Tokens:
    """A source that counts."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.down = False

    def __call__(self, audience: str | None) -> str:
        if self.down:
            raise RuntimeError("no network")
        self.asked.append(audience)
        return f"{audience}-{len(self.asked)}"


def adding() -> ScriptedModel:
    return ScriptedModel([calls("add", a=1, b=1), says("x")])


def status_of(result: Any) -> list[str]:
    return [message.status for message in result["messages"] if isinstance(message, ToolMessage)]


async def test_each_server_gets_a_credential_for_its_audience_and_a_new_one_once_when_it_rejects_it(
    serve: Any, workshop: Any, guard: Any
) -> None:
    watched = guard(workshop().streamable_http_app(), accepted={"tools-1"})
    source = Tokens()
    async with serve(watched) as site:
        servers = {"w": {"url": site.url, "audience": "tools"}}
        async with await build_agent(
            model=adding(), servers=servers, identity=AgentIdentity("robot", credential=source)
        ) as agent:
            watched.accepted = {"tools-2"}
            result = await agent.ainvoke("go")
            assert agent.identity is not None
            assert agent.identity.agent_id == "robot"

    assert (status_of(result), source.asked) == (["success"], ["tools", "tools"])
    assert {entry["token"] for entry in watched.requests} == {"tools-1", "tools-2"}


async def test_a_server_that_goes_on_rejecting_is_asked_twice_and_no_more(
    serve: Any, workshop: Any, guard: Any
) -> None:
    watched = guard(workshop().streamable_http_app(), accepted=set())
    source = Tokens()
    async with serve(watched) as site:
        with pytest.raises(MCPConnectionRejectedError, match="credential of the agent's identity, and then a renewed"):
            await build_agent(
                model=adding(),
                servers={"w": {"url": site.url, "audience": "tools"}},
                identity=AgentIdentity("robot", credential=source),
            )

    assert source.asked == ["tools", "tools"]


async def test_nothing_is_sent_when_the_credential_cannot_be_had(serve: Any, workshop: Any, guard: Any) -> None:
    watched = guard(workshop().streamable_http_app())
    source = Tokens()
    source.down = True
    async with serve(watched) as site:
        with pytest.raises(MCPCredentialError, match="nothing was sent"):
            await build_agent(
                model=adding(), servers={"w": {"url": site.url}}, identity=AgentIdentity("robot", credential=source)
            )

    assert watched.requests == []


async def test_an_id_alone_sends_nothing_and_a_caller_comes_first(serve: Any, workshop: Any, guard: Any) -> None:
    watched = guard(workshop().streamable_http_app())
    async with serve(watched) as site:
        servers = {"w": {"url": site.url}}
        async with await build_agent(model=adding(), servers=servers, identity=AgentIdentity("robot")) as agent:
            await agent.ainvoke("go")
        assert {entry["token"] for entry in watched.requests} == {""}
        watched.requests.clear()
        proven = AgentIdentity("robot", credential="robot-token")
        async with await build_agent(model=adding(), servers=servers, identity=proven) as agent:
            await agent.ainvoke("go", caller=CallerContext("ann", bearer_token="ann-token"))

    assert [entry["token"] for entry in watched.calls()] == ["ann-token"]
    assert "robot-token" in {entry["token"] for entry in watched.requests}


async def test_the_agents_id_is_in_every_event_in_tool_calls_and_in_the_log() -> None:
    seen: list[Any] = []

    @tool
    def look() -> str:
        """Look."""
        scope = current_run()
        assert scope is not None
        seen.append((get_tool_context().agent_id, scope.agent_id))
        return "seen"

    log = MemoryRunLog()
    peer = await build_agent(
        model=ScriptedModel([calls("look"), says("p")]), extra_tools=[look], identity=AgentIdentity("peer")
    )
    agent = await build_agent(
        model=ScriptedModel([calls("look"), calls("ask_agent_p", message="well?"), says("x")]),
        extra_tools=[look],
        cross_agents={"p": CrossAgent(peer)},
        identity=AgentIdentity("robot"),
        runlog=log,
    )
    run = agent.start("go")
    events = [event async for event in run.events()]
    await run.result()

    assert seen == [("robot", "robot"), ("peer", "peer")]
    assert {event.agent_id for event in events if "@p" not in event.path} == {"robot"}
    assert {event.agent_id for event in events if "@p" in event.path} == {"peer"}
    info = await log.info(run.run_id)
    assert info is not None
    assert info.metadata["agent_id"] == "robot"


async def test_what_is_no_identity_or_names_nobody_ends_the_building() -> None:
    with pytest.raises(ConfigurationError, match="identity is 'robot'; give an AgentIdentity"):
        await build_agent(model=adding(), identity="robot")
    with pytest.raises(IdentityError, match="names no subject"):
        await build_agent(model=adding(), identity=AgentIdentity(credential="opaque"))
