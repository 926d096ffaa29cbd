"""ParallelNode: children as full nodes on copies, and a merge that does not depend on who is first."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from graphwright.engine import (
    GraphExecutionError,
    GraphIterationLimitError,
    GraphState,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    node,
)
from graphwright.engine.nodes import ParallelNode
from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.messages import text_of
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, raises, says


def look_up(word: str) -> str:
    """Look up."""
    return f"found {word}"


def one(*nodes: Any, **options: Any) -> PromptGraph:
    return PromptGraph(nodes=[ParallelNode("p", nodes=nodes, is_entry=True, **options)])


def prompt(name: str, model: Any, **options: Any) -> PromptNode:
    return PromptNode(name, model_override=model, **options)


async def test_each_child_runs_its_whole_tool_loop() -> None:
    a = ScriptedModel([calls("look_up", word="x"), says("A")])
    b = ScriptedModel([calls("look_up", word="y"), says("B")])
    graph = one(prompt("a", a, tools=[look_up]), prompt("b", b, tools=[look_up]))
    result = await PromptGraphEngine(graph).ainvoke("go")
    shown = [(message.type, text_of(message)) for message in result.messages]
    assert shown == [
        ("human", "go"),
        ("ai", ""),
        ("tool", "found x"),
        ("ai", ""),
        ("tool", "found y"),
        ("ai", "A\n\nB"),
    ]
    assert_valid_conversation(result.messages)
    assert (result.report.total_tokens, result.usage.total_tokens, result.report.tool_calls) == (60, 60, 2)
    assert result.report.nodes_visited == ["p", "a", "a", "b", "b"]


async def test_the_merge_is_in_the_order_of_the_nodes_whoever_ends_first(caplog: pytest.LogCaptureFixture) -> None:
    second_is_done = asyncio.Event()

    @node("first")
    async def first(state: GraphState) -> str:
        await second_is_done.wait()
        state.context["both"] = state.context["first"] = "first"
        state.add_observation("t", "1")
        return "1"

    @node("second")
    async def second(state: GraphState) -> str:
        state.context["both"] = "second"
        state.add_observation("t", "2")
        assert "first" not in state.context
        second_is_done.set()
        return "2"

    @node("after")
    async def after(state: GraphState) -> list[Any]:
        return [o["result"] for o in state.observations]

    graph = one(first, second, default_next="after").add_node(after)
    with caplog.at_level(logging.WARNING):
        result = await PromptGraphEngine(graph).ainvoke("go", context={"kept": [1]})
    assert result.output == ["1", "2"]
    assert result.context == {"kept": [1], "first": "first", "both": "second", "p_output": "1\n\n2"}
    assert "'first' and 'second' both wrote the context key 'both'; the value of 'second' is kept" in caplog.text


async def test_children_write_copies_only() -> None:
    @node("writer")
    async def writer(state: GraphState) -> str:
        state.context["list"].append("mine")
        raise ValueError("no")

    @node("reader")
    async def reader(state: GraphState) -> int:
        return len(state.context["list"])

    graph = one(writer, reader, merge_strategy="custom", merge_fn=lambda results: results["reader"].output)
    result = await PromptGraphEngine(graph).ainvoke("go", context={"list": []})
    assert (result.output, result.context["list"]) == (0, [])


@pytest.mark.parametrize(
    ("strategy", "output"),
    [("concatenate", "A\n\nb failed: ValueError: no"), ("dict", {"a": "A", "b": {"error": "ValueError: no"}})],
)
async def test_a_childs_failure_is_in_the_output_and_fails_the_node(strategy: str, output: Any) -> None:
    @node("b")
    async def b(state: GraphState) -> str:
        raise ValueError("no")

    graph = one(prompt("a", ScriptedModel(["A"])), b, merge_strategy=strategy)
    with pytest.raises(GraphExecutionError, match="1 of 2 children failed: 'b': ValueError: no"):
        await PromptGraphEngine(graph).ainvoke("go")

    @node("caught")
    async def caught(state: GraphState) -> Any:
        return state.context["p_output"]

    graph = one(prompt("a", ScriptedModel(["A"])), b, merge_strategy=strategy).add_node(caught).on_error("p", "caught")
    assert (await PromptGraphEngine(graph).ainvoke("go")).output == output


async def test_a_provider_that_fails_in_a_child_is_no_success() -> None:
    error = ModelError("down")
    graph = one(prompt("a", ScriptedModel([raises(error)])), merge_strategy="dict")
    with pytest.raises(GraphExecutionError, match="down"):
        await PromptGraphEngine(graph).ainvoke("go")


async def test_a_merge_function_takes_the_results_and_the_failures() -> None:
    @node("b")
    async def b(state: GraphState) -> str:
        raise ValueError("no")

    async def merge(results: dict[str, Any]) -> str:
        return " ".join(f"{name}={result.output}/{result.error}" for name, result in results.items())

    graph = one(prompt("a", ScriptedModel(["A"])), b, merge_strategy="custom", merge_fn=merge)
    assert (await PromptGraphEngine(graph).ainvoke("go")).text == "a=A/None b=None/ValueError: no"


async def test_dict_and_concatenate_differ() -> None:
    def graph(strategy: str) -> PromptGraph:
        return one(prompt("a", ScriptedModel(["A"])), prompt("b", ScriptedModel(["B"])), merge_strategy=strategy)

    assert (await PromptGraphEngine(graph("dict")).ainvoke("go")).output == {"a": "A", "b": "B"}
    assert (await PromptGraphEngine(graph("concatenate")).ainvoke("go")).output == "A\n\nB"


async def test_no_more_than_max_concurrency_run_at_once() -> None:
    running, most = 0, 0

    def child(name: str) -> Any:
        @node(name)
        async def work(state: GraphState) -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1
            return name

        return work

    result = await PromptGraphEngine(one(*(child(f"c{i}") for i in range(7)), max_concurrency=3)).ainvoke("go")
    assert most == 3
    assert result.text == "\n\n".join(f"c{i}" for i in range(7))


async def test_a_cancelled_run_waits_for_the_clean_up_of_its_children() -> None:
    started, cleaned = asyncio.Event(), []

    @node("a")
    async def a(state: GraphState) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("a")
        return ""

    task = asyncio.create_task(PromptGraphEngine(one(a)).ainvoke("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["a"]


async def test_the_limit_of_the_run_holds_for_all_children_and_the_report_counts_what_they_did() -> None:
    endless = ScriptedModel.answering(lambda messages: calls("look_up", word="x"))
    graph = one(*(prompt(name, endless, tools=[look_up], max_iterations=50) for name in "ab"))
    with pytest.raises(GraphIterationLimitError) as caught:
        await PromptGraphEngine(graph, max_iterations=7, max_node_iterations=None).ainvoke("go")
    assert len(endless.requests) == 6
    assert caught.value.report is not None
    visited = sorted(caught.value.report.nodes_visited)
    # The tool works in a thread, so which of the two is quicker is left open.
    assert (visited[-1], set(visited[:-1]), len(visited)) == ("p", {"a", "b"}, 7)
    assert caught.value.report.total_tokens in (75, 90)  # a visit that is cut off in its tool call is not counted


async def test_when_the_limit_of_the_run_ends_one_child_the_clean_up_of_the_others_is_awaited() -> None:
    waiting, cleaned = asyncio.Event(), []

    @node("slow")
    async def slow(state: GraphState) -> str:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned.append("slow")
        return ""

    async def answer(messages: list[Any]) -> Any:
        await waiting.wait()
        return calls("look_up", word="x")

    graph = one(slow, prompt("a", ScriptedModel.answering(answer), tools=[look_up]))
    with pytest.raises(GraphIterationLimitError):
        await PromptGraphEngine(graph, max_iterations=3).ainvoke("go")
    assert cleaned == ["slow"]


async def test_hooks_and_events_reach_the_children() -> None:
    seen = []

    class Watch:
        async def pre_node(self, node: Any, state: GraphState) -> None:
            seen.append(node.name)

    graph = one(prompt("a", ScriptedModel(["A"])), prompt("b", ScriptedModel(["B"])))
    await PromptGraphEngine(graph, hooks=[Watch()]).ainvoke("go")
    assert sorted(seen) == ["a", "b", "p"]


@pytest.mark.parametrize(
    "options",
    [
        {"merge_strategy": "zip"},
        {"merge_strategy": "custom"},
        {"merge_fn": len},
        {"max_concurrency": 0},
        {"nodes": []},
        {"nodes": [PromptNode("a"), PromptNode("a")]},
    ],
)
def test_what_cannot_work_is_refused_when_the_node_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="'p'"):
        ParallelNode("p", **{"nodes": [PromptNode("a")], **options})
