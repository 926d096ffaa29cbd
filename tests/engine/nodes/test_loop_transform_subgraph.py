"""LoopNode, TransformNode, SubgraphNode, and the name CodeActionNode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphwright.engine import (
    GraphExecutionError,
    GraphIterationLimitError,
    GraphState,
    GraphStoppedError,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    node,
)
from graphwright.engine.code_action import CodeActionNode
from graphwright.engine.nodes import LoopNode, SubgraphNode, TransformNode
from graphwright.exceptions import ConfigurationError, FeatureOffError, GraphInvalidError
from graphwright.messages import text_of
from graphwright.run_events import NodeStarted
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, says


def look_up(word: str) -> str:
    """Look up."""
    return f"found {word}"


@node("count")
async def count(state: GraphState) -> int:
    state.context["n"] = state.context.get("n", 0) + 1
    return int(state.context["n"])


def looping(**options: Any) -> PromptGraph:
    return PromptGraph(nodes=[LoopNode("loop", is_entry=True, **options)])


@pytest.mark.parametrize(("until", "runs"), [(0, 0), (1, 1), (3, 3), (99, 5)])
async def test_the_condition_is_asked_before_each_pass_and_the_passes_are_limited(until: int, runs: int) -> None:
    async def met(state: GraphState) -> bool:
        return state.context.get("n", 0) >= until

    graph = looping(body_node=count, condition=met)
    result = await PromptGraphEngine(graph).ainvoke("go")
    assert result.context.get("n", 0) == runs
    assert result.output == (runs or None)
    assert result.context.get("loop_result", 0) == runs
    assert result.report.nodes_visited == ["loop"] + ["count"] * runs


async def test_without_a_condition_every_pass_is_run() -> None:
    result = await PromptGraphEngine(looping(body_node=count, max_loop_iterations=7)).ainvoke("go")
    assert result.output == 7


async def test_a_pass_is_the_whole_tool_loop_of_the_body() -> None:
    model = ScriptedModel([calls("look_up", word="x"), says("one"), says("two")])
    body = PromptNode("body", tools=[look_up])
    with model:
        result = await PromptGraphEngine(looping(body_node=body, max_loop_iterations=2), model).ainvoke("go")
    assert (result.text, result.report.total_tokens) == ("two", 45)
    assert_valid_conversation(result.messages)


async def test_a_failing_body_ends_the_loop_and_fails_it() -> None:
    @node("body")
    async def body(state: GraphState) -> None:
        state.context["n"] = state.context.get("n", 0) + 1
        raise ValueError("no")

    with pytest.raises(GraphExecutionError, match="ValueError: no") as caught:
        await PromptGraphEngine(looping(body_node=body)).ainvoke("go")
    assert caught.value.report is not None
    assert caught.value.report.nodes_visited == ["loop", "body"]


async def test_a_graph_can_be_the_body_of_a_loop() -> None:
    body = SubgraphNode("body", subgraph=PromptGraph("inner", nodes=[count]).set_entry("count"))
    result = await PromptGraphEngine(looping(body_node=body, max_loop_iterations=3)).ainvoke("go")
    assert result.context["n"] == 3


@pytest.mark.parametrize(
    "options", [{}, {"body_node": count, "condition": 1}, {"body_node": count, "max_loop_iterations": 0}]
)
def test_a_loop_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="'loop'"):
        LoopNode("loop", **options)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_transform_stores_what_it_returns(sync: bool) -> None:
    def upper(state: GraphState) -> str:
        return text_of(state.messages[-1]).upper()

    async def later(state: GraphState) -> str:
        return upper(state)

    transform = TransformNode("t", transform=upper if sync else later, output_key="loud", is_entry=True)
    result = await PromptGraphEngine(PromptGraph(nodes=[transform])).ainvoke("go")
    assert (result.context, result.output, result.text) == ({"loud": "GO"}, "GO", "GO")


async def test_a_transform_that_raises_fails_and_one_without_a_function_is_refused() -> None:
    graph = PromptGraph(nodes=[TransformNode("t", transform=lambda state: 1 / 0, is_entry=True)])
    with pytest.raises(GraphExecutionError, match="ZeroDivisionError"):
        await PromptGraphEngine(graph).ainvoke("go")
    with pytest.raises(ConfigurationError, match="give a function that takes the state"):
        TransformNode("t")


def nested(*inner: Any, inherit_state: bool = True, after: Any = None) -> PromptGraph:
    subgraph = PromptGraph("inner", nodes=inner)
    subgraph.set_entry(inner[0].name).sequential(*(n.name for n in inner))
    graph = PromptGraph("outer", nodes=[SubgraphNode("sub", subgraph=subgraph, inherit_state=inherit_state)])
    graph.set_entry("sub")
    if after is not None:
        graph.add_node(after).always("sub", after.name)
    return graph


@pytest.mark.parametrize("inherit_state", [True, False])
async def test_the_answer_of_the_subgraph_is_the_answer(inherit_state: bool) -> None:
    graph = nested(PromptNode("a", tools=[look_up]), inherit_state=inherit_state)
    model = ScriptedModel([calls("look_up", word="x"), says("inner answer")])
    result = await PromptGraphEngine(graph, model).ainvoke("go")
    assert result.text == "inner answer"
    assert [message.type for message in result.messages] == (
        ["human", "ai", "tool", "ai"] if inherit_state else ["human", "ai"]
    )
    assert (result.usage.total_tokens, result.report.total_tokens, result.report.tool_calls) == (30, 30, 1)
    assert result.report.nodes_visited == ["sub", "a", "a"]


async def test_inherited_state_is_shared_both_ways_and_a_fresh_one_is_not() -> None:
    @node("inner")
    async def inner(state: GraphState) -> dict[str, Any]:
        seen = {"context": dict(state.context), "messages": len(state.messages), "plan": list(state.plan)}
        state.context["written"] = "inside"
        state.plan.append("step")
        state.add_observation("t", "seen inside")
        return seen

    @node("setup", default_next="sub")
    async def setup(state: GraphState) -> None:
        state.context["k"] = 1
        state.plan = ["first"]

    @node("after")
    async def after(state: GraphState) -> dict[str, Any]:
        return {"written": state.context.get("written"), "plan": state.plan, "seen": len(state.observations)}

    history = [("user", "earlier"), ("assistant", "yes"), ("user", "go")]
    for inherit_state, inside, outside in [
        (
            True,
            {"context": {"k": 1}, "messages": 3, "plan": ["first"]},
            {"written": "inside", "plan": ["first", "step"], "seen": 1},
        ),
        (
            False,
            {"context": {}, "messages": 1, "plan": []},
            {"written": None, "plan": ["first"], "seen": 0},
        ),
    ]:
        graph = nested(inner, inherit_state=inherit_state, after=after).add_node(setup).set_entry("setup")
        result = await PromptGraphEngine(graph).ainvoke(history)
        assert result.output == outside
        assert json.loads(text_of(result.messages[3])) == inside


async def test_an_error_inside_keeps_its_class() -> None:
    graph = nested(PromptNode("a", tools=[look_up], max_iterations=2))
    model = ScriptedModel.answering(lambda messages: calls("look_up", word="x"))
    with pytest.raises(GraphIterationLimitError) as caught:
        await PromptGraphEngine(graph, model).ainvoke("go")
    assert (caught.value.limit, caught.value.pending_tools, caught.value.graph_name) == (2, ["look_up"], "inner")


async def test_the_limit_of_the_run_holds_inside() -> None:
    graph = nested(PromptNode("a", tools=[look_up], max_iterations=50))
    model = ScriptedModel.answering(lambda messages: calls("look_up", word="x"))
    with pytest.raises(GraphIterationLimitError):
        await PromptGraphEngine(graph, model, max_iterations=4, max_node_iterations=None).ainvoke("go")
    assert len(model.requests) == 3


async def test_a_hook_that_stops_the_run_inside_stops_all_of_it_and_sees_the_tools_inside() -> None:
    tools = []

    class Budget:
        async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> None:
            tools.append(tool_name)

        async def post_node(self, node: Any, result: Any, state: GraphState) -> None:
            if node.name == "a":
                state.current_node = "__end__"

    graph = nested(PromptNode("a", tools=[look_up]), after=PromptNode("b"))
    model = ScriptedModel([calls("look_up", word="x")])
    with model, pytest.raises(GraphStoppedError) as caught:
        await PromptGraphEngine(graph, model, hooks=[Budget()]).ainvoke("go")
    assert (caught.value.stopped_by, tools) == ("Budget", ["look_up"])


async def test_events_inside_have_a_path() -> None:
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    await PromptGraphEngine(nested(PromptNode("a")), ScriptedModel(["x"])).run("go", emit=emit)
    started = [(event.node, event.path) for event in events if isinstance(event, NodeStarted)]
    assert started == [("sub", ""), ("a", "sub")]


async def test_a_subgraph_that_cannot_run_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give a PromptGraph"):
        SubgraphNode("sub")
    graph = PromptGraph(nodes=[SubgraphNode("sub", subgraph=PromptGraph("inner"), is_entry=True)])
    with pytest.raises(GraphExecutionError, match="no entry is set") as caught:
        await PromptGraphEngine(graph).ainvoke("go")
    assert isinstance(caught.value.__cause__, GraphInvalidError)


def test_a_code_action_node_is_refused_until_there_is_one() -> None:
    with pytest.raises(FeatureOffError, match="CodeActionNode"):
        CodeActionNode("code", tools=[look_up])
