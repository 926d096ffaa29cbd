"""CycleDetectionHook: a circle ends, a tool loop does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright.engine import (
    GraphState,
    GraphStoppedError,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    build_react_graph,
    context_of,
    node,
)
from graphwright.engine._children import run_child
from graphwright.engine.base import BaseNode
from graphwright.engine.hooks import CycleDetectionHook
from graphwright.exceptions import ConfigurationError
from graphwright.testing import ScriptedModel, calls, says


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def ring(names: str, rounds: int, ran: list[str]) -> PromptGraph:
    """Return a graph that goes round `names` for `rounds` rounds and then ends."""

    def step(name: str) -> Any:
        @node(name, max_iterations=100)
        async def walk(state: GraphState) -> NodeResult:
            ran.append(name)
            last = name == names[-1] and ran.count(name) >= rounds
            following = names[(names.index(name) + 1) % len(names)]
            return NodeResult(name, output=None, next_node="__end__" if last else following)

        return walk

    graph = PromptGraph("ring", nodes=[step(name) for name in names])
    for one, two in zip(names, names[1:] + names[0], strict=True):
        graph.always(one, two)
    graph.set_entry(names[0])
    return graph


async def test_a_circle_ends_before_it_begins_once_more_and_the_report_names_it() -> None:
    ran: list[str] = []
    engine = PromptGraphEngine(ring("abc", 100, ran), hooks=[CycleDetectionHook()])

    with pytest.raises(GraphStoppedError) as caught:
        await engine.ainvoke("go")

    assert "".join(ran) == "abcabcabc"
    assert caught.value.stopped_by == "CycleDetectionHook"
    assert caught.value.report.error == "Cycle detected: a -> b -> c was repeated 3 times"


async def test_a_circle_that_is_left_in_time_goes_on() -> None:
    ran: list[str] = []
    await PromptGraphEngine(ring("abc", 3, ran), hooks=[CycleDetectionHook()]).ainvoke("go")

    assert len(ran) == 9


async def test_the_length_and_the_number_of_repeats_can_be_set() -> None:
    ran: list[str] = []
    hook = CycleDetectionHook(sequence_length=2, max_repeats=2)

    with pytest.raises(GraphStoppedError, match="a -> b was repeated 2 times"):
        await PromptGraphEngine(ring("ab", 100, ran), hooks=[hook]).ainvoke("go")

    assert "".join(ran) == "abab"


async def test_a_long_tool_loop_is_no_circle() -> None:
    model = ScriptedModel([*(calls("look", at=str(turn)) for turn in range(20)), says("done")])
    engine = PromptGraphEngine(
        build_react_graph([look], max_node_iterations=30),
        model,
        hooks=[CycleDetectionHook(1, 2)],
        max_node_iterations=None,
    )

    result = await engine.ainvoke("go")

    assert (result.text, result.report.error) == ("done", None)


async def test_runs_at_the_same_time_are_watched_by_themselves() -> None:
    hook = CycleDetectionHook()
    visited: list[list[str]] = [[] for _ in range(5)]

    done = await asyncio.gather(
        *(PromptGraphEngine(ring("abc", 2, ran), hooks=[hook]).ainvoke("go") for ran in visited)
    )

    assert [result.report.error for result in done] == [None] * 5


async def test_a_child_that_is_run_again_and_again_is_no_circle_of_the_graph() -> None:
    @node("child")
    async def child() -> str:
        return "x"

    class Repeats(BaseNode):
        async def execute(self, state: GraphState, config: Any) -> NodeResult:
            for _ in range(12):
                await run_child(child, state, context_of(config), config)
            return NodeResult(self.name, output="done")

    engine = PromptGraphEngine(PromptGraph(nodes=[Repeats("again", is_entry=True)]), hooks=[CycleDetectionHook()])

    assert (await engine.ainvoke("go")).report.error is None


@pytest.mark.parametrize("wrong", [{"sequence_length": 0}, {"max_repeats": 1}])
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        CycleDetectionHook(**wrong)


async def test_a_circle_that_another_node_ends_is_no_reason_to_stop() -> None:
    ran: list[str] = []
    graph = ring("abc", 3, ran)

    @node("after")
    async def after() -> str:
        return "out"

    leaving = graph.get_node("c").function

    @node("c", max_iterations=100)
    async def last(state: GraphState) -> NodeResult:
        result: NodeResult = await leaving(state)
        result.next_node = "after" if result.next_node == "__end__" else result.next_node
        return result

    graph.remove_node("c")
    graph.add_node(after).add_node(last).always("b", "c").always("c", "a").always("after", "__end__")

    result = await PromptGraphEngine(graph, hooks=[CycleDetectionHook()]).ainvoke("go")

    assert result.report.nodes_visited == [*"abcabcabc", "after"]
    assert result.report.error is None
