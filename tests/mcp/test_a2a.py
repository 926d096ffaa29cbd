"""Agents that ask each other over HTTP by A2A."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

pytest.importorskip("a2a.types.a2a_pb2", reason="install it with: pip install 'graphwright[a2a]'")

from graphwright import build_agent
from graphwright.agent import CallerContext
from graphwright.caller import get_current_caller
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import ConfigurationError, DelegationError, MissingExtraError
from graphwright.identity import AgentIdentity
from graphwright.serve import A2APeer, a2a
from graphwright.testing import ScriptedModel, calls, raises, says
from graphwright.tools import tool

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def served(agent: Any, **options: Any) -> tuple[Any, int, str]:
    """Return an app, its port and its URL; the card has to say where it is."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    return agent.as_a2a(url=f"{url}/", name="scout", **options), port, url


async def test_an_agent_asks_another_one_over_http(serve: Any) -> None:
    inner = await build_agent(model=ScriptedModel([says("42")]))
    app, port, url = served(inner)
    async with serve(app, port=port):
        outer = await build_agent(
            model=ScriptedModel([calls("ask_agent_scout", message="what is it?"), says("It is 42.")]),
            cross_agents={"scout": CrossAgent(A2APeer(url))},
        )
        result = await outer.ainvoke("go")

    assert [message.content for message in result["messages"]][-2:] == ["42", "It is 42."]


async def test_a_question_that_is_given_up_ends_the_run_of_the_peer(serve: Any) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    inner = await build_agent(model=ScriptedModel([calls("wait")]), extra_tools=[wait])
    app, port, url = served(inner)
    async with serve(app, port=port):
        asking = asyncio.ensure_future(A2APeer(url).ainvoke({"messages": [("user", "go")]}))
        await begun.wait()
        asking.cancel()
        async with asyncio.timeout(5):
            await ended.wait()
            await asyncio.gather(asking, return_exceptions=True)

    assert asking.cancelled()


async def test_what_goes_wrong_there_is_a_delegation_error_without_its_secrets(
    serve: Any, caplog: pytest.LogCaptureFixture
) -> None:
    inner = await build_agent(model=ScriptedModel([raises(RuntimeError("password is swordfish"))]))
    app, port, url = served(inner)
    async with serve(app, port=port):
        with pytest.raises(DelegationError, match=r"has no answer \(failed\): the agent has no answer") as caught:
            await A2APeer(url).ainvoke("go")
    with pytest.raises(DelegationError, match="cannot be asked"):
        await A2APeer(url).ainvoke("go")

    assert "swordfish" not in str(caught.value)
    assert "swordfish" in caplog.text


async def test_each_request_carries_the_agents_credential_and_says_who_asks(serve: Any, guard: Any) -> None:
    @tool
    def who() -> str:
        """Say who asks."""
        caller = get_current_caller()
        return caller.user_id or "" if caller is not None else "nobody"

    def caller_of(context: Any) -> CallerContext:
        return CallerContext(context.state["headers"]["authorization"].removeprefix("Bearer "))

    model = ScriptedModel.answering(
        lambda messages: says(messages[-1].content) if messages[-1].type == "tool" else calls("who")
    )
    inner = await build_agent(model=model, extra_tools=[who])
    app, port, url = served(inner, caller_of=caller_of)
    watched = guard(app, accepted={"token-for-scout"})
    identity = AgentIdentity("robot", credential=lambda audience: f"token-for-{audience}")
    async with serve(watched, port=port):
        result = await A2APeer(url, identity=identity, audience="scout").ainvoke("who am I?")
        with pytest.raises(DelegationError, match="cannot be asked"):
            await A2APeer(url).ainvoke("who am I?")

    assert result["messages"][-1].content == "token-for-scout"


async def test_what_cannot_be_served_or_asked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await build_agent(model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="caller_of is 'ann'"):
        agent.as_a2a(url="http://127.0.0.1/", caller_of="ann")
    with pytest.raises(ConfigurationError, match="'ftp://x'"):
        A2APeer("ftp://x")
    monkeypatch.setattr(a2a, "is_installed", lambda module: False)
    with pytest.raises(MissingExtraError, match=r"graphwright\[a2a\]"):
        A2APeer("http://127.0.0.1/")
