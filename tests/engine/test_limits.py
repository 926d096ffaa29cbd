"""Limits, what they raise, and the report of each run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.engine import (
    GraphIterationLimitError,
    GraphState,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    build_react_graph,
    node,
)
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, says


def t() -> str:
    """Do it."""
    return "done once more"


def endless() -> ScriptedModel:
    return ScriptedModel.answering(lambda messages: calls("t"))


@pytest.mark.parametrize("limit", range(1, 7))
async def test_n_iterations_allow_exactly_n_model_calls_and_then_raise(limit: int) -> None:
    model = endless()
    agent = await build_agent(model=model, extra_tools=[t], max_agent_iterations=limit)
    with pytest.raises(GraphIterationLimitError) as caught:
        await agent.ainvoke("go")
    assert len(model.requests) == limit
    assert (caught.value.limit, caught.value.pending_tools) == (limit, ["t"])
    assert caught.value.report is not None
    assert caught.value.report.total_iterations == limit
    assert_valid_conversation(caught.value.messages)


@pytest.mark.parametrize(("given", "allowed"), [(None, 15), (25, 25), (40, 40), (10, 10)])
async def test_more_than_15_iterations_are_allowed_only_when_they_are_asked_for(
    given: int | None, allowed: int
) -> None:
    model = endless()
    options: dict[str, Any] = {} if given is None else {"max_agent_iterations": given}
    agent = await build_agent(model=model, extra_tools=[t], **options)
    with pytest.raises(GraphIterationLimitError) as caught:
        await agent.ainvoke("go")
    assert len(model.requests) == caught.value.limit == allowed


@pytest.mark.parametrize(("ceiling", "allowed"), [(25, 25), (7, 7), (None, 30)])
async def test_the_engines_ceiling_holds_for_each_node_and_none_lifts_it(ceiling: int | None, allowed: int) -> None:
    model = endless()
    graph = build_react_graph([t], max_node_iterations=30)
    with pytest.raises(GraphIterationLimitError) as caught:
        await PromptGraphEngine(graph, model, max_node_iterations=ceiling).ainvoke("go")
    assert len(model.requests) == caught.value.limit == allowed


async def test_a_limit_after_an_answer_returns_the_answer_and_is_named_in_the_report() -> None:
    graph = PromptGraph(nodes=[PromptNode("a", is_entry=True, default_next="b"), PromptNode("b", default_next="a")])
    result = await PromptGraphEngine(graph, ScriptedModel(["one", "two", "three"]), max_iterations=3).ainvoke("go")
    assert result.text == "three"
    assert result.report.error == "the run's limit of 3 node executions"


async def test_a_limit_before_any_answer_raises_without_pending_tools() -> None:
    @node("a", is_entry=True, default_next="a", max_iterations=100)
    async def a(state: GraphState) -> None:
        return None

    with pytest.raises(GraphIterationLimitError) as caught:
        await PromptGraphEngine(PromptGraph(nodes=[a]), max_iterations=4, max_node_iterations=None).ainvoke("go")
    assert (caught.value.limit, caught.value.pending_tools) == (4, [])


async def test_the_last_report_is_the_own_runs_also_beside_others() -> None:
    model = ScriptedModel.answering(
        lambda messages: calls("t") if len(messages) < 2 * int(text_of(messages[0])) - 1 else says("end")
    )
    engine = PromptGraphEngine(build_react_graph([t]), model, compaction=False)

    async def one(number: int) -> tuple[int, int]:
        result = await engine.ainvoke(str(number))
        await asyncio.sleep(0)
        assert engine.last_report is result.report
        return result.report.total_iterations, result.report.tool_calls

    assert await asyncio.gather(*(one(n) for n in range(1, 8))) == [(n, n - 1) for n in range(1, 8)]


async def test_the_reader_of_a_stream_finds_the_report_afterwards() -> None:
    engine = PromptGraphEngine(build_react_graph([t]), ScriptedModel([calls("t"), says("end")]))
    async for _ in engine.astream("go"):
        pass
    assert engine.last_report is not None
    assert engine.last_report.total_iterations == 2
    failing = PromptGraphEngine(build_react_graph([t]), endless(), max_iterations=2)
    with pytest.raises(GraphIterationLimitError):
        async for _ in failing.astream("go"):
            pass
    assert failing.last_report is not None
    assert failing.last_report.error == "reached the run's limit of 2 node executions"


async def test_a_cancelled_run_leaves_a_report() -> None:
    started = asyncio.Event()

    async def waits() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return ""

    engine = PromptGraphEngine(build_react_graph([waits]), ScriptedModel([calls("waits")]))
    task = asyncio.create_task(engine.ainvoke("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.last_report is not None
    assert engine.last_report.error == "CancelledError"


@pytest.mark.parametrize(
    "options",
    [
        {"max_iterations": 0},
        {"max_iterations": "5"},
        {"max_node_iterations": 0},
        {"tool_timeout": 0},
        {"max_parallel_tools": 0},
        {"tool_summary": "all"},
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        PromptGraphEngine(build_react_graph(), ScriptedModel([]), **options)


async def test_a_long_run_keeps_every_message() -> None:
    model = ScriptedModel([*(calls("t") for _ in range(199)), says("end")])
    agent = await build_agent(model=model, extra_tools=[t], max_agent_iterations=300)
    result = await agent.ainvoke("go")
    assert len(result.messages) == 400
    assert result.text == "end"
