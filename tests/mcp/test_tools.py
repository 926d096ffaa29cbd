"""What servers offer, as an agent uses it: tools, resources, prompts, and what the model reads of them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from graphwright import build_agent, text_of
from graphwright.exceptions import ConfigurationError, MissingExtraError, ToolError
from graphwright.mcp.client import MCPPool, MCPTool, Sampling
from graphwright.mcp.client.content import content_of, error_of, resource_content, result_content
from graphwright.testing import ScriptedModel, calls, says
from graphwright.types import ToolCall

types = pytest.importorskip("mcp_types", reason="install it with: pip install 'graphwright[mcp]'")

Serve = Callable[..., AbstractAsyncContextManager[Any]]
Build = Callable[[], Any]
Plain = Callable[..., dict[str, Any]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


async def run(pool: MCPPool, name: str, /, **args: Any) -> Any:
    tool = next(tool for tool in pool.tools() if tool.name == name)
    return await tool.run(tool.validate(args), ToolCall("1", name, args), None)


async def test_an_agent_uses_the_tools_of_a_server_and_reads_their_errors(serve: Serve, workshop: Build) -> None:
    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"shop": {"url": site.url}}, resources=True, prompts=True) as pool,
    ):
        model = ScriptedModel(
            [
                calls("add", a=2, b=3),
                calls("add", a="x", b=3),
                calls("fail"),
                calls("read_resource", uri="drawer://7"),
                calls("get_prompt", name="build_it", arguments={"thing": "shed"}),
                calls("show"),
                says("done"),
            ]
        )
        agent = await build_agent(model=model, extra_tools=pool.tools())
        result = await agent.ainvoke({"messages": [{"role": "user", "content": "build"}]})

    answers = [message for message in result["messages"] if message.type == "tool"]
    assert text_of(result) == "done"
    assert [(answer.status, answer.content) for answer in answers[:5]] == [
        ("success", "5"),
        (
            "error",
            "the arguments of 'add' do not fit; correct them and call again:\n- a: should be an integer, not 'x'",
        ),
        ("error", "Error executing tool fail: the saw is broken"),
        ("success", "drawer 7"),
        ("success", "Build a shed."),
    ]
    assert answers[5].content == [
        {"type": "text", "text": "look"},
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"},
        {"type": "text", "text": "[resource shelf://saw, named 'saw', text/plain, a saw]"},
        {"type": "text", "text": "[resource shelf://note]\ncut here"},
        {"type": "text", "text": "[resource shelf://plan: 3 bytes of application/x-plan]"},
    ]


async def test_a_server_that_dies_under_an_agent_costs_one_answer_and_not_the_run(plain: Plain) -> None:
    async with MCPPool({"p": plain()}) as pool:
        model = ScriptedModel([calls("die"), calls("count"), says("done")])
        agent = await build_agent(model=model, extra_tools=pool.tools())
        async with asyncio.timeout(5):
            result = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})

    first, second = (message for message in result["messages"] if message.type == "tool")
    assert (first.status, second.status) == ("error", "success")
    assert "may or may not have been carried out" in first.content
    assert second.content.startswith("count ")


def result_of(*content: Any, **more: Any) -> Any:
    return types.CallToolResult(content=list(content), **more)


def words(text: str) -> Any:
    return types.TextContent(text=text)


@pytest.mark.parametrize(
    ("result", "read"),
    [
        (result_of(words("hi")), "hi"),
        (result_of(words("hi"), words("ho")), "hi\nho"),
        (result_of(), ""),
        (result_of(structured_content={"a": 1}), '{"a": 1}'),
        (result_of(words('{ "a":1 }'), structured_content={"a": 1}), '{ "a":1 }'),
        (result_of(words("3"), structured_content={"result": 3}), "3"),
        (result_of(words("x"), structured_content={"result": "x"}), "x"),
        (result_of(words("one row"), structured_content={"rows": [1]}), 'one row\n{"rows": [1]}'),
    ],
)
def test_text_is_text_and_structured_content_is_told_once(result: Any, read: str) -> None:
    assert result_content(result) == read


def test_an_error_is_its_text_whatever_else_there_is() -> None:
    picture = types.ImageContent(data=PIXEL, mime_type="image/png")

    assert error_of(result_of(words("no saw"), picture, is_error=True)) == "no saw"
    assert error_of(result_of(picture, is_error=True)) == "the tool reported an error and did not say which"
    assert error_of(result_of(structured_content={"code": 5}, is_error=True)) == '{"code": 5}'


def test_a_resource_is_read_as_what_it_is() -> None:
    def blob(mime_type: str) -> Any:
        return types.BlobResourceContents(uri="x://y", blob="AAEC", mime_type=mime_type)

    text = types.TextResourceContents(uri="x://y", text="plain")

    assert resource_content([text]) == "plain"
    assert resource_content([blob("image/png"), text]) == [
        {"type": "image", "base64": "AAEC", "mime_type": "image/png"},
        {"type": "text", "text": "plain"},
    ]
    assert resource_content([blob("application/pdf")]) == [
        {"type": "file", "base64": "AAEC", "mime_type": "application/pdf"}
    ]
    assert resource_content([blob("application/zip")]) == "[resource x://y: 3 bytes of application/zip]"
    assert content_of([types.EmbeddedResource(resource=text)]) == "[resource x://y]\nplain"


async def test_a_result_that_is_not_what_its_schema_promises_is_used_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Server:
        async def call_tool(self, *_: Any, **__: Any) -> Any:
            return result_of(structured_content={"size": "big"})

    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    entry = types.Tool.model_validate({"name": "t", "inputSchema": {}, "outputSchema": schema})
    tool = MCPTool(Server(), "s", entry, name="t")

    with caplog.at_level(logging.WARNING):
        assert await tool.run({}, ToolCall("1", "t", {}), None) == '{"size": "big"}'
    assert "size: should be an integer, not 'big'" in caplog.text


async def test_two_servers_with_the_same_tools_are_both_offered_and_called(plain: Plain) -> None:
    async with MCPPool({"one": plain(), "two": plain()}) as pool:
        names = {tool.name for tool in pool.tools()}
        one, two = await run(pool, "one_count"), await run(pool, "two_count")

    assert {"one_count", "two_count", "one_die", "two_die"} <= names
    assert one != two


async def test_tools_for_resources_and_prompts_make_way_for_a_tool_with_their_name(plain: Plain) -> None:
    async with MCPPool({"p": plain()}, resources=True, prompts=True) as pool:
        names = [tool.name for tool in pool.tools(taken={"read_resource", "get_prompt", "count"})]

    assert names[0] == "p_count"
    assert names[-3:] == ["mcp_read_resource", "list_resources", "mcp_get_prompt"]


async def test_there_are_no_tools_for_what_was_not_asked_for_or_no_server_has(serve: Serve, plain: Plain) -> None:
    from mcp.server.mcpserver import MCPServer

    async with (
        serve(MCPServer("empty").streamable_http_app()) as site,
        MCPPool({"e": {"url": site.url}}, resources=True, prompts=True) as pool,
    ):
        assert pool.tools() == []
    async with MCPPool({"p": plain()}) as pool:
        assert not {"read_resource", "list_resources", "get_prompt"} & {tool.name for tool in pool.tools()}


async def test_the_resources_are_told_and_found_by_their_uri(serve: Serve, workshop: Build, plain: Plain) -> None:
    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url}, "p": plain()}, resources=True) as pool,
    ):
        told = next(tool.spec.description for tool in pool.tools() if tool.name == "read_resource")
        listed = json.loads(await run(pool, "list_resources", server="w"))
        saw, drawer = (
            await run(pool, "read_resource", uri="shelf://saw"),
            await run(pool, "read_resource", uri="drawer://9"),
        )
        with pytest.raises(ToolError, match=r"no server lists the resource 'x://y'; say which server is meant: p, w"):
            await run(pool, "read_resource", uri="x://y")
        with pytest.raises(ToolError, match="MCP server 'w' refused the reading of 'x://y'"):
            await run(pool, "read_resource", uri="x://y", server="w")

    assert told.splitlines()[:3] == [
        "Read one resource. There are:",
        "- shelf://saw (server w): The saw",
        "- drawer://{number} (server w): What is in a drawer",
    ]
    assert (saw, drawer) == ("a sharp saw", "drawer 9")
    assert [entry.get("uri", entry.get("uri_template")) for entry in listed] == ["shelf://saw", "drawer://{number}"]


async def test_the_prompts_are_told_and_filled(serve: Serve, workshop: Build) -> None:
    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url}}, prompts=True) as pool,
    ):
        told = next(tool.spec.description for tool in pool.tools() if tool.name == "get_prompt")
        with pytest.raises(ToolError, match="the prompt 'build_it' needs the arguments thing"):
            await run(pool, "get_prompt", name="build_it")
        with pytest.raises(ToolError, match="there is no prompt 'built'; there are build_it"):
            await run(pool, "get_prompt", name="built")

    assert told.splitlines()[1:] == ["- build_it(thing): How to build"]


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_server_may_ask_the_model_only_when_allowed_and_within_the_caps(
    serve: Serve, workshop: Build, protocol: str
) -> None:
    asked: list[Any] = []

    async def answer(server: str, request: dict[str, Any]) -> str:
        asked.append((server, request))
        return "fine"

    async with serve(workshop().streamable_http_app()) as site:
        spec = {"w": {"url": site.url, "protocol": protocol}}
        async with MCPPool(spec, sampling=Sampling(handler=answer, max_tokens=100, model_name="m")) as pool:
            praised = (await pool.call_tool("w", "praise", {"subject": "saws"})).content[0].text
        async with MCPPool(spec) as pool:
            with pytest.raises(ToolError, match="sampling"):
                await run(pool, "praise", subject="saws")
        async with MCPPool(spec, sampling=Sampling(handler=answer, max_calls=0)) as pool:
            with pytest.raises(ToolError, match="no more than 0 completions"):
                await run(pool, "praise", subject="saws")

    assert praised == "m: fine"
    assert asked == [
        (
            "w",
            {
                "messages": [{"role": "user", "content": "Praise saws"}],
                "system_prompt": None,
                "max_tokens": 100,
                "temperature": None,
                "stop_sequences": [],
            },
        )
    ]


async def test_a_grown_server_tells_so_over_the_newer_protocol(serve: Serve, workshop: Build) -> None:
    async with serve(workshop().streamable_http_app()) as site, MCPPool({"w": {"url": site.url}}) as pool:
        await pool.call_tool("w", "grow")
        async with asyncio.timeout(3):
            while not pool.stale:  # noqa: ASYNC110 (what is waited for comes over the wire)
                await asyncio.sleep(0.002)
        assert await pool.refresh()
        assert await run(pool, "hammer") == "hit"


def test_a_server_that_is_not_there_is_named(plain: Plain) -> None:
    pool = MCPPool({"p": plain()})

    with pytest.raises(ConfigurationError, match="there is no MCP server 'q'; there are p"):
        asyncio.run(pool.call_tool("q", "x"))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, plain: Plain) -> None:
    monkeypatch.setattr("graphwright.mcp.client.pool.is_installed", lambda _: False)

    with pytest.raises(MissingExtraError, match=r"graphwright\[mcp\]"):
        MCPPool({"p": plain()})
    assert MCPPool({}).tools() == []


def test_a_pool_without_room_is_refused(plain: Plain) -> None:
    with pytest.raises(ConfigurationError, match="max_sessions is 0"):
        MCPPool({"p": plain()}, max_sessions=0)
