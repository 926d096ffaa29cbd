"""LoggingHook, TimingHook and MetricsHook: they watch, and never mix runs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from graphwright.engine import NodeResult, PromptGraph, PromptGraphEngine, build_react_graph, node
from graphwright.engine.hooks import LoggingHook, MetricsHook, TimingHook
from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.testing import ScriptedModel, calls, says
from graphwright.usage import Usage


def slow(name: str, seconds: float) -> Any:
    @node(name, is_entry=name == "one")
    async def wait() -> str:
        await asyncio.sleep(seconds)
        return "ok"

    return wait


@node("breaks", is_entry=True)
async def breaks() -> str:
    raise ValueError("broken")


async def test_logging_tells_of_the_start_and_the_end_of_every_node(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "graphwright.engine.hooks")
    model = ScriptedModel([says("secret words", usage=Usage(3, 4, 7))])

    await PromptGraphEngine(build_react_graph(), model, hooks=[LoggingHook("DEBUG")]).ainvoke("go")

    start, end = [record for record in caplog.records if record.name == "graphwright.engine.hooks"]
    assert (start.levelno, start.getMessage()) == (logging.DEBUG, "node 'reason' starts, visit 1")
    assert end.getMessage().startswith("node 'reason' ended: ")
    assert end.getMessage().endswith(" ms, 7 tokens, 0 tool calls")
    assert "secret" not in caplog.text


async def test_logging_warns_of_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "graphwright.engine.hooks")
    graph = PromptGraph(nodes=[breaks, slow("after", 0)]).on_error("breaks", "after")

    await PromptGraphEngine(graph, hooks=[LoggingHook(logging.DEBUG)]).ainvoke("go")

    told = [record for record in caplog.records if record.name == "graphwright.engine.hooks"]
    warned = [record.getMessage() for record in told if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert warned[0].startswith("node 'breaks' ended with an error: ValueError: broken (")


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'LOUD'"):
        LoggingHook("LOUD")


async def test_a_slow_node_gets_a_remark_and_the_run_goes_on() -> None:
    graph = PromptGraph(nodes=[slow("one", 0.02), slow("two", 0)]).always("one", "two")
    hook = TimingHook(default_budget_ms=10_000, per_node_budgets={"one": 1})

    result = await PromptGraphEngine(graph, hooks=[hook]).ainvoke("go")

    assert result.report.nodes_visited == ["one", "two"]
    assert result.report.error is not None
    assert result.report.error.startswith("node 'one' took ")
    assert result.report.error.endswith(" ms, over its budget of 1 ms")


async def test_a_slow_node_takes_its_error_edge() -> None:
    graph = PromptGraph(nodes=[slow("one", 0.02), slow("two", 0), slow("late", 0)]).always("one", "two")
    graph.on_error("one", "late")

    result = await PromptGraphEngine(graph, hooks=[TimingHook(1)]).ainvoke("go")

    assert result.report.nodes_visited == ["one", "late"]


async def test_every_one_of_twenty_slow_runs_is_marked() -> None:
    engine = PromptGraphEngine(PromptGraph(nodes=[slow("one", 0.02)]), hooks=[TimingHook(1)])

    done = await asyncio.gather(*(engine.ainvoke("go") for _ in range(20)))

    assert sum(result.report.error is not None for result in done) == 20


async def test_the_error_of_a_failed_node_is_not_replaced_by_a_remark() -> None:
    hook, result = TimingHook(1), NodeResult("breaks", duration_ms=50, error="broken")

    await hook.post_node(breaks, result, None)  # type: ignore[arg-type]

    assert result.error == "broken"


def test_a_time_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'one' is 0"):
        TimingHook(per_node_budgets={"one": 0})


async def test_metrics_add_up_over_runs_at_the_same_time_and_a_denied_call_shows() -> None:
    def look(at: str) -> str:
        """Look at something."""
        return "seen"

    class Denies:
        def pre_tool(self, tool_name: str, args: dict[str, Any], state: Any) -> None:
            if args["at"] == "sun":
                raise ToolError("not there")

    hook = MetricsHook()
    engines = [
        PromptGraphEngine(
            build_react_graph([look]),
            ScriptedModel(
                [
                    replace(calls("look", at=at), usage=Usage(5, 5, 10)),
                    says("done", usage=Usage(7, 3, 10)),
                ]
            ),
            hooks=[hook, Denies()],
        )
        for at in ["sea", "sun", "sky"]
    ]

    await asyncio.gather(*(engine.ainvoke("go") for engine in engines))

    summary = hook.summary()
    assert summary["reason"].pop("total_duration_ms") > 0
    assert summary == {"reason": {"calls": 6, "total_tokens": 60, "errors": 0, "tool_calls": 3, "tool_calls_failed": 1}}
    assert hook.metrics["reason"]["total_duration_ms"] > 0
    hook.reset()
    assert hook.metrics == {}


async def test_metrics_count_a_failure() -> None:
    hook = MetricsHook()
    graph = PromptGraph(nodes=[breaks, slow("after", 0)]).on_error("breaks", "after")

    await PromptGraphEngine(graph, hooks=[hook]).ainvoke("go")

    assert {name: entry["errors"] for name, entry in hook.metrics.items()} == {"breaks": 1, "after": 0}
