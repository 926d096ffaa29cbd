"""An agent as an MCP server, asked by the client of ours over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright import build_agent
from graphwright.agent import CallerContext
from graphwright.caller import get_current_caller
from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.mcp.client import MCPPool
from graphwright.runlog import MemoryRunLog
from graphwright.serve import mcp as served
from graphwright.testing import ScriptedModel, calls, raises, says
from graphwright.tools import tool


def text_in(result: Any) -> str:
    return str(result.content[0].text)


async def test_an_agent_answers_and_tells_its_steps(serve: Any) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    heard: list[Any] = []
    agent = await build_agent(model=ScriptedModel([calls("look"), says("it is there")]), extra_tools=[look])
    async with serve(agent.as_mcp(name="scout").streamable_http_app()) as site:
        servers = {"s": {"url": site.url}}
        async with MCPPool(servers, on_progress=lambda *told: heard.append(told[2:])) as pool:
            (offered,) = pool.tools()
            result = await pool.call_tool("s", "ask", {"message": "is it there?"})
            empty = await pool.call_tool("s", "ask", {"message": " "})
            assert pool.catalogues["s"].server.startswith("scout")

    assert (text_in(result), bool(result.is_error)) == ("it is there", False)
    assert (empty.is_error, "message is empty" in text_in(empty)) == (True, True)
    assert offered.spec.parameters["required"] == ["message"]
    assert list(offered.spec.parameters["properties"]) == ["message"]
    assert [entry[2] for entry in heard] == ["reason", "calls look", "reason"]


async def test_an_agent_is_a_tool_of_another_agent_this_way(serve: Any) -> None:
    inner = await build_agent(model=ScriptedModel([says("42")]))
    async with serve(inner.as_mcp().streamable_http_app()) as site:
        script = [calls("ask", message="what is it?"), says("It is 42.")]
        async with await build_agent(model=ScriptedModel(script), servers={"inner": {"url": site.url}}) as outer:
            result = await outer.ainvoke("go")

    assert [message.content for message in result["messages"]][-2:] == ["42", "It is 42."]


async def test_a_call_that_is_cancelled_ends_its_run(serve: Any) -> None:
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

    agent = await build_agent(model=ScriptedModel([calls("wait")]), extra_tools=[wait])
    async with serve(agent.as_mcp().streamable_http_app()) as site, MCPPool({"s": {"url": site.url}}) as pool:
        asking = asyncio.ensure_future(pool.call_tool("s", "ask", {"message": "go"}))
        await begun.wait()
        asking.cancel()
        async with asyncio.timeout(5):
            await ended.wait()


async def test_who_calls_is_told_by_the_function_that_is_given(serve: Any) -> None:
    @tool
    def who() -> str:
        """Say who asks."""
        caller = get_current_caller()
        return caller.user_id or "" if caller is not None else "nobody"

    def caller_of(ctx: Any) -> CallerContext:
        return CallerContext((ctx.headers or {})["x-user"])

    agent = await build_agent(
        model=ScriptedModel.answering(
            lambda messages: says(messages[-1].content) if messages[-1].type == "tool" else calls("who")
        ),
        extra_tools=[who],
    )
    servers = [agent.as_mcp(caller_of=caller_of), agent.as_mcp()]
    said = []
    for server in servers:
        async with serve(server.streamable_http_app()) as site:
            spec = {"url": site.url, "headers": {"x-user": "ann"}}
            async with MCPPool({"s": spec}) as pool:
                said.append(text_in(await pool.call_tool("s", "ask", {"message": "who am I?"})))

    assert said == ["ann", "nobody"]


async def test_what_goes_wrong_inside_stays_inside(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    agent = await build_agent(model=ScriptedModel([raises(RuntimeError("password is swordfish"))]))
    async with serve(agent.as_mcp().streamable_http_app()) as site, MCPPool({"s": {"url": site.url}}) as pool:
        result = await pool.call_tool("s", "ask", {"message": "go"})

    assert result.is_error
    assert "the agent has no answer" in text_in(result)
    assert "swordfish" not in text_in(result)
    assert "swordfish" in caplog.text


async def test_an_agent_that_waits_for_a_person_says_so(serve: Any) -> None:
    from graphwright.engine.interrupt import interrupt
    from graphwright.tools import FunctionTool

    async def ask() -> str:
        """Ask."""
        return str(await interrupt("color", {}))

    asking = FunctionTool(ask)
    asking.reenterable = True
    agent = await build_agent(model=ScriptedModel([calls("ask")]), extra_tools=[asking], runlog=MemoryRunLog())
    async with serve(agent.as_mcp().streamable_http_app()) as site, MCPPool({"s": {"url": site.url}}) as pool:
        result = await pool.call_tool("s", "ask", {"message": "go"})

    assert result.is_error
    assert "waits for a person" in text_in(result)


async def test_what_cannot_be_served_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await build_agent(model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="caller_of is 'ann'"):
        agent.as_mcp(caller_of="ann")
    monkeypatch.setattr(served, "is_installed", lambda module: False)
    with pytest.raises(MissingExtraError, match=r"graphwright\[mcp\]"):
        agent.as_mcp()
