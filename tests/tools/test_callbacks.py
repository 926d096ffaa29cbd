from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool as langchain_tool

from graphwright.tools import ToolHooks, ToolRun, answer_calls, as_tools
from graphwright.types import ToolCall, ToolResult


class Recorder(BaseCallbackHandler):
    """Keeps what it was told, in order."""

    run_inline = True

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.starts: list[dict[str, Any]] = []
        self.parents: dict[str, Any] = {}

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
        self.log.append(("start", serialized["name"]))
        self.starts.append({"input_str": input_str, **more})

    def on_tool_end(self, output: Any, **more: Any) -> None:
        self.log.append(("end", output.name, output.content))

    def on_tool_error(self, error: BaseException, **more: Any) -> None:
        self.log.append(("error", type(error).__name__, str(error)))

    def on_chain_start(self, serialized: Any, inputs: Any, **more: Any) -> None:
        self.log.append(("chain", more.get("name")))
        self.parents["chain"] = more.get("parent_run_id")


async def answer(entries: list[Any], calls: list[ToolCall], handler: Any, **run: Any) -> list[ToolResult]:
    config = {"callbacks": [handler], "tags": ["t"], "metadata": {"m": 1}, "run_name": "whole run"}
    return await answer_calls(calls, as_tools(entries), ToolRun(config=config, **run))


async def plain(n: int) -> str:
    """Plain."""
    return f"plain {n}"


def blocking(n: int) -> str:
    """Blocking."""
    return f"blocking {n}"


@langchain_tool
def from_langchain(n: int) -> str:
    """Of LangChain."""
    return f"langchain {n}"


@langchain_tool
async def from_langchain_async(n: int) -> str:
    """Of LangChain."""
    return f"langchain async {n}"


@pytest.mark.parametrize("entry", [plain, blocking, from_langchain, from_langchain_async])
async def test_handlers_see_start_and_end_once_whatever_the_tool_is(entry: Any) -> None:
    handler = Recorder()
    tools = as_tools([entry])
    name = tools.names[0]

    results = await answer([entry], [ToolCall("c1", name, {"n": 1})], handler)

    assert handler.log == [("start", name), ("end", name, results[0].message.content)]
    start = handler.starts[0]
    assert (start["inputs"], start["tags"], start["metadata"]) == ({"n": 1}, ["t"], {"m": 1})
    # LangChain's own tools tell it only in later versions.
    assert start.get("tool_call_id", "c1") == "c1"


@pytest.mark.parametrize("make", [lambda function: function, langchain_tool])
async def test_handlers_see_an_error_once(make: Any) -> None:
    async def fail(n: int) -> str:
        """Fail."""
        raise ValueError("no")

    handler = Recorder()
    await answer([make(fail)], [ToolCall("c1", "fail", {"n": 1})], handler)

    assert handler.log == [("start", "fail"), ("error", "ValueError", "no")]


@pytest.mark.parametrize("entry", [plain, from_langchain])
async def test_handlers_see_a_refused_call_once_as_well(entry: Any) -> None:
    handler = Recorder()
    name = as_tools([entry]).names[0]
    calls = [
        ToolCall("c1", "unknown", {}),
        ToolCall("c2", name, {"n": "x"}),
        ToolCall("c3", name, {}, problem="cut off", raw="{"),
    ]

    results = await answer([entry], calls, handler, parallel=1)

    assert [entry[:2] for entry in handler.log] == [
        ("start", "unknown"), ("error", "ToolError"),
        ("start", name), ("error", "ToolError"),
        ("start", name), ("error", "ToolError"),
    ]  # fmt: skip
    assert [entry[2] for entry in handler.log[1::2]] == [result.message.content for result in results]


async def test_handlers_see_each_of_several_calls_once() -> None:
    handler = Recorder()
    calls = [ToolCall(f"c{n}", name, {"n": n}) for n, name in enumerate(["plain", "from_langchain", "blocking"] * 3)]

    await answer([plain, from_langchain, blocking], calls, handler)

    assert sorted(kind for kind, *_ in handler.log) == ["end"] * 9 + ["start"] * 9
    assert sorted(start["inputs"]["n"] for start in handler.starts) == list(range(9))


async def test_handlers_see_what_a_hook_left_of_the_result() -> None:
    async def after(name: str, content: Any, args: dict[str, Any]) -> str:
        return "masked"

    handler = Recorder()
    await answer([plain], [ToolCall("c1", "plain", {"n": 1})], handler, hooks=ToolHooks(after=after))

    assert handler.log == [("start", "plain"), ("end", "plain", "masked")]


async def test_langchain_objects_inside_a_plain_function_report_as_its_children() -> None:
    def inner_step(n: int) -> int:
        return n + 1

    async def outer(n: int) -> int:
        """Outer."""
        return await RunnableLambda(inner_step).ainvoke(n)

    def outer_blocking(n: int) -> int:
        """Outer."""
        return RunnableLambda(inner_step).invoke(n)

    for function in (outer, outer_blocking):
        handler = Recorder()
        results = await answer([function], [ToolCall("c1", function.__name__, {"n": 1})], handler)

        assert results[0].message.content == "2"
        assert handler.log == [("start", function.__name__), ("chain", "inner_step"), ("end", function.__name__, "2")]
        assert handler.parents["chain"] == handler.starts[0]["run_id"]


async def test_a_cancelled_call_is_an_error_for_the_handlers() -> None:
    started = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        started.set()
        await asyncio.Event().wait()

    handler = Recorder()
    run = asyncio.create_task(answer([wait], [ToolCall("c1", "wait", {})], handler))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert handler.log == [("start", "wait"), ("error", "CancelledError", "")]


async def test_async_handlers_are_awaited() -> None:
    log: list[str] = []

    class Later(AsyncCallbackHandler):
        async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
            await asyncio.sleep(0)
            log.append(f"start {input_str}")

        async def on_tool_end(self, output: Any, **more: Any) -> None:
            await asyncio.sleep(0)
            log.append(f"end {output.content}")

    await answer([plain], [ToolCall("c1", "plain", {"n": 1})], Later())

    assert log == ["start {'n': 1}", "end plain 1"]


async def test_without_callbacks_no_callback_manager_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_core.callbacks import AsyncCallbackManager

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a callback manager was built")

    monkeypatch.setattr(AsyncCallbackManager, "configure", refuse)
    tools = as_tools([plain])
    for config in (None, {}, {"callbacks": None, "tags": ["t"]}, {"callbacks": []}):
        results = await answer_calls([ToolCall("c1", "plain", {"n": 1})], tools, ToolRun(config=config))
        assert results[0].message.content == "plain 1"
