"""Agents with MCP servers: what they are offered, what a run sees of it, and who is asked when a server asks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

from graphwright import build_agent
from graphwright.agent import CallerContext
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import ConfigurationError, MCPError, RunAbortedError
from graphwright.mcp.client import MCPTool
from graphwright.messages import ToolMessage
from graphwright.run_events import ToolProgress, ToolStarted
from graphwright.testing import ScriptedModel, calls, calls_many, says
from graphwright.tools import Tool, tool


def told(result: Any) -> list[tuple[str, Any, str]]:
    """Return what the tools of a run said: name, content, status."""
    return [(m.name, m.content, m.status) for m in result["messages"] if isinstance(m, ToolMessage)]


def labels(kind: str, **options: Any) -> Any:
    """Return the tool of one name of a server that is written here."""
    server = MCPServer("labels")

    @server.tool(name=options.get("name", "create_issue"))
    def create_issue(title: str) -> str:
        """Create an issue."""
        return f"{kind}: {title}"

    return server


async def test_an_agent_has_the_tools_of_its_servers_and_its_own(
    serve: Any, workshop: Any, plain: Callable[..., Any], no_task_left: None
) -> None:
    @tool
    def measure(thing: str) -> str:
        """Measure."""
        return f"{thing} is long"

    model = ScriptedModel(
        [calls_many(("add", {"a": 1, "b": 2}), ("measure", {"thing": "rope"}), ("wait_free", {})), says("done")]
    )
    async with serve(workshop().streamable_http_app()) as site:
        agent = await build_agent(
            model=model, servers={"w": {"url": site.url}, "p": plain()}, extra_tools=[measure], expose_resources=True
        )
        async with agent:
            names = agent.tool_names
            result = await agent.ainvoke("go")

    assert names[0] == "measure"
    assert {"add", "cut", "read_resource", "list_resources"} <= set(names)
    assert ("w_count" in names, "p_count" in names, "count" in names) == (True, True, False)
    assert all(isinstance(entry, Tool) for entry in agent.tools)
    assert told(result)[:2] == [("add", "3", "success"), ("measure", "rope is long", "success")]
    assert told(result)[2][2] == "error"


async def test_servers_may_be_a_file_as_other_clients_write_it(plain: Callable[..., Any], tmp_path: Path) -> None:
    import json

    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"p": plain()}}), encoding="utf-8")

    async with await build_agent(model=ScriptedModel([says("ok")]), servers=path) as agent:
        assert "count" in agent.tool_names
        assert agent.servers is not None


async def test_a_server_that_cannot_be_used_ends_the_building_and_leaves_nothing(
    plain: Callable[..., Any], ledger: Callable[[], list[str]], no_task_left: None
) -> None:
    with pytest.raises(MCPError, match="no licence found"):
        await build_agent(model=ScriptedModel([]), servers={"good": plain(), "bad": plain("quit")})

    assert "end of input" in ledger(), "the one that had started was ended"


@pytest.mark.parametrize("keyword", ["expose_resources", "expose_prompts", "mcp_sampling"])
async def test_what_is_about_servers_is_refused_without_any(keyword: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{keyword} is set and there are no servers"):
        await build_agent(model=ScriptedModel([]), **{keyword: True})


async def test_a_tool_of_one_name_on_two_servers_and_here_reaches_each_owner(serve: Any) -> None:
    @tool
    def create_issue(title: str) -> str:
        """Create an issue."""
        return f"here: {title}"

    async with (
        serve(labels("hub").streamable_http_app()) as hub,
        serve(labels("lab").streamable_http_app()) as lab,
    ):
        script = [
            calls_many(*((name, {"title": "t"}) for name in ("create_issue", "hub_create_issue", "lab_create_issue"))),
            says("x"),
        ]
        servers = {"hub": {"url": hub.url}, "lab": {"url": lab.url}}
        async with await build_agent(model=ScriptedModel(script), servers=servers, extra_tools=[create_issue]) as agent:
            assert agent.tool_names == ["create_issue", "hub_create_issue", "lab_create_issue"]
            result = await agent.ainvoke("go")

    assert [content for _, content, _ in told(result)] == ["here: t", "hub: t", "lab: t"]


async def test_a_tool_of_a_node_keeps_its_name(serve: Any) -> None:
    from graphwright.engine import PromptGraph, PromptNode

    @tool
    def create_issue(title: str) -> str:
        """Create an issue."""
        return f"node: {title}"

    graph = PromptGraph("g")
    graph.add_node(PromptNode("answer", tools=[create_issue], inject_tools=True))
    graph.set_entry("answer")
    async with serve(labels("hub").streamable_http_app()) as hub:
        script = [calls_many(("create_issue", {"title": "t"}), ("hub_create_issue", {"title": "t"})), says("x")]
        async with await build_agent(
            model=ScriptedModel(script), servers={"hub": {"url": hub.url}}, agent_pattern=graph
        ) as agent:
            result = await agent.ainvoke("go")

    assert [content for _, content, _ in told(result)] == ["node: t", "hub: t"]


async def test_names_that_no_provider_takes_are_called_under_valid_ones(serve: Any) -> None:
    server = MCPServer("odd")

    def naming(name: str) -> Callable[[], str]:
        return lambda: name

    odd = ["coding.start", "a/b", "get file", "größe", "coding_start", "x" * 70 + "_read", "x" * 70 + "_write"]
    for name in odd:
        server.add_tool(naming(name), name=name, description="Say its name.")

    async with serve(server.streamable_http_app()) as site:
        async with await build_agent(model=ScriptedModel([]), servers={"odd": {"url": site.url}}) as agent:
            offered = agent.tool_names
            ours = {entry.name: entry.remote_name for entry in agent.tools if isinstance(entry, MCPTool)}
        script = [calls_many(*((name, {}) for name in offered)), says("done")]
        async with await build_agent(model=ScriptedModel(script), servers={"odd": {"url": site.url}}) as agent:
            result = await agent.ainvoke("go")

    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in offered)
    assert len(set(offered)) == 7
    assert [content for _, content, _ in told(result)] == [ours[name] for name in offered]
    assert sorted(ours.values()) == sorted(odd)


async def test_a_run_keeps_its_tools_and_the_next_one_has_the_new_ones(
    plain: Callable[..., Any], no_task_left: None
) -> None:
    script = [calls("change"), calls("new_one"), says("first"), calls("new_one"), says("second"), says("third")]
    async with await build_agent(model=ScriptedModel(script), servers={"p": plain()}) as agent:
        first = await agent.ainvoke("go")
        before = agent.tool_names
        second = await agent.ainvoke("go")
        tools = agent.tools
        await agent.ainvoke("go")
        after = agent.tools

    assert [status for _, _, status in told(first)] == ["success", "error"]
    assert "new_one" not in before
    assert [name for name, _, status in told(second) if status == "success"] == ["new_one"]
    assert all(one is other for one, other in zip(tools, after, strict=True)), "nothing changed, nothing is made anew"


async def test_a_server_that_dies_during_a_call_is_an_error_to_the_model_and_comes_back(
    plain: Callable[..., Any], ledger: Callable[[], list[str]]
) -> None:
    @tool
    def local() -> str:
        """Work here."""
        return "worked"

    script = [calls_many(("die", {}), ("local", {})), calls("count"), says("done")]
    async with await build_agent(model=ScriptedModel(script), servers={"p": plain()}, extra_tools=[local]) as agent:
        async with asyncio.timeout(5):
            result = await agent.ainvoke("go")

    died, worked, counted = told(result)
    assert (died[2], worked[1:], counted[2]) == ("error", ("worked", "success"), "success")
    assert [line for line in ledger() if line in ("die", "count")] == ["die", "count"], "each was done once"


async def test_all_pages_of_a_listing_are_offered_and_one_that_repeats_ends(plain: Callable[..., Any]) -> None:
    async with await build_agent(model=ScriptedModel([]), servers={"p": plain("pages")}, expose_prompts=True) as agent:
        assert len([entry for entry in agent.tools if isinstance(entry, MCPTool)]) == 7
    async with asyncio.timeout(10):
        async with await build_agent(model=ScriptedModel([]), servers={"p": plain("loop")}) as agent:
            assert agent.tool_names == ["count"]


async def test_text_of_a_tool_is_one_text(serve: Any) -> None:
    server = MCPServer("texts")

    @server.tool()
    def one() -> CallToolResult:
        """Say one thing."""
        return CallToolResult(content=[TextContent(text="hi")])

    @server.tool()
    def two() -> CallToolResult:
        """Say two things."""
        return CallToolResult(content=[TextContent(text="hi"), TextContent(text="there")])

    async with serve(server.streamable_http_app()) as site:
        script = [calls_many(("one", {}), ("two", {})), says("x")]
        async with await build_agent(model=ScriptedModel(script), servers={"t": {"url": site.url}}) as agent:
            result = await agent.ainvoke("go")

    assert [content for _, content, _ in told(result)] == ["hi", "hi\nthere"]


async def test_each_run_calls_with_its_callers_token_in_a_session_of_its_own(
    serve: Any, workshop: Any, guard: Any
) -> None:
    watched = guard(workshop().streamable_http_app())
    model = ScriptedModel.answering(lambda messages: says("x") if told({"messages": messages}) else calls("who"))
    callers = [CallerContext("ann", bearer_token="t-ann"), CallerContext("bob", bearer_token="t-bob")]
    callers += [CallerContext("cid", bearer_token="t-same"), CallerContext("dan", bearer_token="t-same"), None]
    async with serve(watched) as site:
        servers = {"w": {"url": site.url, "protocol": "legacy"}}
        async with await build_agent(model=model, servers=servers) as agent:
            runs = [agent.ainvoke("go", caller=caller) for _ in range(3) for caller in callers]
            cancelled = asyncio.ensure_future(agent.ainvoke("go", caller=callers[0]))
            await asyncio.sleep(0)
            cancelled.cancel()
            results = await asyncio.gather(*runs)
            await asyncio.gather(cancelled, return_exceptions=True)

    assert [status for result in results for _, _, status in told(result)] == ["success"] * 15
    users: dict[str, set[str]] = {}
    for entry in watched.calls():
        users.setdefault(entry["session"], set()).add(entry["token"])
    assert {"t-ann"} in users.values()
    assert {"t-bob"} in users.values()
    assert [sorted(tokens) for tokens in users.values()].count(["t-same"]) == 2, "one token, two people, two sessions"
    assert all(len(tokens) == 1 for tokens in users.values())


async def test_progress_reaches_the_callback_every_stream_and_the_trace(
    serve: Any, workshop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[Any] = []

    async def hear(*told: Any) -> None:
        await asyncio.sleep(0)
        heard.append(told)

    def model() -> ScriptedModel:
        return ScriptedModel([calls("slow", seconds=0), says("x")])

    async with serve(workshop().streamable_http_app()) as site:
        servers = {"w": {"url": site.url}}
        async with await build_agent(model=model(), servers=servers, on_tool_progress=hear, trace_tools=True) as agent:
            await agent.ainvoke("go")
        async with await build_agent(model=model(), servers=servers) as agent:
            shown = [event async for event in agent.astream_with_tools("go")]
        async with await build_agent(model=model(), servers=servers) as agent:
            run = agent.start("go")
            seen = [event async for event in run.events()]

    assert heard == [("slow", 1.0, 2.0, "half"), ("slow", 2.0, 2.0, "done")]
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[tool] slow at")]
    assert printed == ["[tool] slow at 1/2: half", "[tool] slow at 2/2: done"]
    kinds = [event.type for event in shown]
    assert kinds[:4] == ["tool_start", "tool_progress", "tool_progress", "tool_end"]
    assert (shown[1].tool_name, shown[1].progress, shown[1].total, shown[1].message) == ("slow", 1.0, 2.0, "half")
    reported = [event for event in seen if isinstance(event, ToolProgress)]
    assert [(event.call.name, event.progress, event.seq > 0) for event in reported] == [
        ("slow", 1.0, True),
        ("slow", 2.0, True),
    ]


async def test_a_listener_that_fails_or_is_slow_holds_up_nobody_else(serve: Any, workshop: Any) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def hear(*told: Any) -> None:
        entered.set()
        await release.wait()
        raise RuntimeError("no")

    script = [calls("slow", seconds=0), says("x")]
    async with (
        serve(workshop().streamable_http_app()) as site,
        await build_agent(
            model=ScriptedModel(script), servers={"w": {"url": site.url}}, on_tool_progress=hear
        ) as agent,
    ):
        running = asyncio.ensure_future(agent.ainvoke("go"))
        await entered.wait()
        assert agent.servers is not None
        other = await agent.servers.call_tool("w", "add", {"a": 1, "b": 1})
        assert (other.content[0].text, running.done()) == ("2", False)
        release.set()
        result = await running

    assert told(result) == [("slow", "slept", "success")]


async def test_nobody_is_asked_for_progress_when_nobody_listens(serve: Any, workshop: Any, guard: Any) -> None:
    asked: list[bool] = []

    class Watch(guard):  # type: ignore[misc]
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def noting() -> Any:
                message = await receive()
                if b"tools/call" in message.get("body", b""):
                    asked.append(b"progressToken" in message["body"])
                return message

            await self.app(scope, noting, send)

    async with serve(Watch(workshop().streamable_http_app())) as site:
        script = [calls("add", a=1, b=1), says("x"), calls("add", a=1, b=1), says("x")]
        async with await build_agent(model=ScriptedModel(script), servers={"w": {"url": site.url}}) as agent:
            await agent.ainvoke("go")
            async for _ in agent.astream_with_tools("go"):
                pass

    assert asked == [False, True]


async def test_trace_prints_the_calls_of_servers_and_of_peers(
    serve: Any, workshop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = await build_agent(model=ScriptedModel([says("of course")]))
    script = [calls_many(("add", {"a": 1, "b": 1}), ("ask_agent_peer", {"message": "well?"})), says("x")]
    async with (
        serve(workshop().streamable_http_app()) as site,
        await build_agent(
            model=ScriptedModel(script),
            servers={"w": {"url": site.url}},
            cross_agents={"peer": CrossAgent(peer)},
            trace_tools=True,
        ) as agent,
    ):
        await agent.ainvoke("go")

    printed = capsys.readouterr().out
    assert '[tool] add({"a": 1, "b": 1}) ok' in printed
    assert "[tool] ask_agent_peer(" in printed


async def test_it_works_from_plain_code_too(plain: Callable[..., Any]) -> None:
    async with await build_agent(model=ScriptedModel([calls("count"), says("x")]), servers={"p": plain()}) as agent:
        result = await asyncio.to_thread(agent.invoke, "go")

    assert [status for _, _, status in told(result)] == ["success"]


async def test_an_abort_reaches_the_server_at_once(
    plain: Callable[..., Any], ledger: Callable[[], list[str]], no_task_left: None
) -> None:
    async with await build_agent(model=ScriptedModel([calls("wait")]), servers={"p": plain()}) as agent:
        run = agent.start("go")
        async for event in run.events():
            if isinstance(event, ToolStarted):
                break
        async with asyncio.timeout(4):
            while "wait" not in ledger():  # noqa: ASYNC110 (the server writes to a file)
                await asyncio.sleep(0.01)
            run.abort()
            with pytest.raises(RunAbortedError):
                await run.result()
            while "notifications/cancelled" not in ledger():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
