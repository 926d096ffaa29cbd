"""Repeated calls that are answered from an earlier result, for tools that are opted in."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.engine.compaction import ContextCompaction
from graphwright.messages import problem_in
from graphwright.run_events import ToolFinished, ToolStarted
from graphwright.testing import ScriptedModel, call, calls, calls_many, says


class Watch:
    """Notes what hooks are told."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    async def pre_tool(self, tool_name: str, args: dict[str, Any], state: Any) -> None:
        self.seen.append(("pre", tool_name, args))

    async def on_tool_reused(self, tool_name: str, args: dict[str, Any], result: Any, state: Any) -> None:
        self.seen.append(("reused", tool_name, args, result))


async def test_a_repeat_of_a_tool_that_is_opted_in_gets_the_earlier_result_and_everybody_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[tuple[Any, ...]] = []

    def find(key: str, place: int = 0) -> str:
        """Find."""
        ran.append(("find", key, place))
        return f"found {len(ran)}"

    def status() -> str:
        """Tell."""
        ran.append(("status",))
        return f"state {len(ran)}"

    watch = Watch()
    first = calls_many(call("find", key="a", place=1), call("status"))
    again = calls_many(call("status"), call("find", place=1, key="a"), call("find", key="b"))
    model = ScriptedModel([first, again, says("ok")])
    agent = await build_agent(
        model=model,
        extra_tools=[find, status],
        hooks=[watch],
        trace_tools=True,
        context_compaction=ContextCompaction(reuse_results=["find"]),
    )
    run = agent.start("go")
    events = [event async for event in run.events() if isinstance(event, (ToolStarted, ToolFinished))]
    result = await run.result()

    assert sorted(ran) == [("find", "a", 1), ("find", "b", 0), ("status",), ("status",)]
    tools = [m for m in result.messages if m.type == "tool"]
    assert tools[3].content == tools[0].content
    assert problem_in(result.messages) is None
    reused = [entry for entry in watch.seen if entry[0] == "reused"]
    assert reused == [("reused", "find", {"key": "a", "place": 1}, tools[0].content)]
    assert len([entry for entry in watch.seen if entry[0] == "pre"]) == 4
    late = [event for event in events if event.call.id in {m.tool_call_id for m in tools[2:]}]
    places = {event.index: (event.call.name, event.call.args.get("key")) for event in late}
    assert places == {0: ("status", None), 1: ("find", "a"), 2: ("find", "b")}
    assert [e.result.reused for e in sorted(late, key=lambda e: e.index) if isinstance(e, ToolFinished)] == [
        False,
        True,
        False,
    ]
    assert "reused" in capsys.readouterr().out


async def test_a_failed_call_and_a_call_of_another_run_are_never_reused() -> None:
    count = 0

    def find() -> str:
        """Find."""
        nonlocal count
        count += 1
        if count == 1:
            raise ValueError("down")
        return f"found {count}"

    model = ScriptedModel([*(calls("find") for _ in range(3)), says("ok"), calls("find"), says("ok")])
    agent = await build_agent(model=model, extra_tools=[find], context_compaction=ContextCompaction(reuse_results=True))
    first = await agent.ainvoke("go")
    await agent.ainvoke("go")
    assert [m.content for m in first.messages if m.type == "tool"][1:] == ["found 2", "found 2"]
    assert count == 3


async def test_nothing_is_reused_unless_asked_for() -> None:
    count = 0

    def find() -> str:
        """Find."""
        nonlocal count
        count += 1
        return str(count)

    model = ScriptedModel([*(calls("find") for _ in range(9)), says("ok")])
    await (await build_agent(model=model, extra_tools=[find])).ainvoke("go")
    assert count == 9
