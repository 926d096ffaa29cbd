"""Which node comes next, and where a failure goes."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import (
    BaseNode,
    GraphExecutionError,
    GraphIterationLimitError,
    GraphState,
    NodeEvent,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    node,
)
from graphwright.messages import AIMessage
from graphwright.testing import ScriptedModel, raises, says


def giving(name: str, output: Any = None, **options: Any) -> BaseNode:
    @node(name, **options)
    async def step() -> Any:
        return output

    return step


def failing(name: str, error: Exception | None = None, **options: Any) -> BaseNode:
    @node(name, **options)
    async def step() -> None:
        raise error or ValueError("no luck")

    return step


async def visited(graph: PromptGraph, **options: Any) -> list[str]:
    return (await PromptGraphEngine(graph, **options).ainvoke("go")).report.nodes_visited


def three(first: BaseNode) -> PromptGraph:
    return PromptGraph("g", nodes=[first, giving("b"), giving("c")]).set_entry("a")


async def test_the_nodes_own_next_node_wins_over_output_edges_and_default() -> None:
    @node("a", default_next="b", transitions={"go": "b"})
    async def a() -> NodeResult:
        return NodeResult(output={"go": True}, next_node="c")

    assert await visited(three(a).always("a", "b")) == ["a", "c"]


@pytest.mark.parametrize("key", ["_next", "route", "next_step", "goto"])
async def test_an_output_key_names_a_transition_or_a_declared_target(key: str) -> None:
    assert await visited(three(giving("a", {key: "yes"}, transitions={"yes": "c"})).always("a", "b")) == ["a", "c"]
    graph = three(giving("a", {key: "c"})).always("a", "b").when("a", "c", lambda r: False)
    assert await visited(graph) == ["a", "c"]


@pytest.mark.parametrize("name", ["c", "__end__", "nowhere"])
async def test_an_output_cannot_name_a_node_that_the_author_did_not_declare(name: str) -> None:
    assert await visited(three(giving("a", {"route": name})).always("a", "b")) == ["a", "b"]


async def test_edges_come_before_other_transitions_and_these_before_default_next() -> None:
    graph = three(giving("a", {"go": True}, transitions={"go": "b"}, default_next="c"))
    assert await visited(graph) == ["a", "b"]
    assert await visited(graph.always("a", "c")) == ["a", "c"]
    assert await visited(three(giving("a", {"go": "no"}, transitions={"go": "b"}, default_next="c"))) == ["a", "c"]


async def test_a_text_output_that_is_a_transition_key_takes_it() -> None:
    assert await visited(three(giving("a", " go \n", transitions={"go": "c"}, default_next="b"))) == ["a", "c"]


async def test_an_edge_whose_condition_raises_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    graph = three(giving("a")).when("a", "b", lambda r: r.output["x"]).always("a", "c")
    assert await visited(graph) == ["a", "c"]
    assert "the edge is taken as closed" in caplog.text


async def test_a_failure_takes_the_error_edge_before_everything_else() -> None:
    graph = three(failing("a", transitions={"error": "b"}, default_next="b")).on_error("a", "c")
    graph.add_node(giving("__error__"))
    result = await PromptGraphEngine(graph).ainvoke("go")
    assert result.report.nodes_visited == ["a", "c"]


async def test_a_failure_takes_the_error_transition_before_the_error_node() -> None:
    graph = three(failing("a", transitions={"error": "b"}, default_next="c")).add_node(giving("__error__"))
    assert await visited(graph) == ["a", "b"]


async def test_a_failure_takes_the_error_node_before_it_raises() -> None:
    graph = three(failing("a", default_next="c")).add_node(giving("__error__"))
    assert await visited(graph) == ["a", "__error__"]


async def test_a_failure_that_nothing_takes_raises_with_its_cause_although_there_is_a_default_next() -> None:
    error = ValueError("no luck")
    with pytest.raises(GraphExecutionError, match="'g' failed at node 'a': ValueError: no luck") as caught:
        await visited(three(failing("a", error, default_next="b")).always("a", "c"))
    assert caught.value.__cause__ is error
    assert (caught.value.graph_name, caught.value.node_name) == ("g", "a")
    assert caught.value.error == "ValueError: no luck"
    assert caught.value.report is not None
    assert caught.value.report.nodes_visited == ["a"]
    assert caught.value.report.error == "ValueError: no luck"


async def test_a_failing_error_node_raises_and_does_not_loop() -> None:
    graph = PromptGraph("g", nodes=[failing("a"), failing("__error__", RuntimeError("worse"))]).set_entry("a")
    with pytest.raises(GraphExecutionError, match="worse"):
        await visited(graph)


async def test_a_result_that_reports_an_error_is_a_failure_like_one_that_raises() -> None:
    @node("a", default_next="b")
    async def a() -> NodeResult:
        return NodeResult(error="said so")

    with pytest.raises(GraphExecutionError, match="said so"):
        await visited(three(a))


async def test_the_providers_exception_is_the_cause() -> None:
    error = ConnectionResetError("gone")
    graph = PromptGraph("g", nodes=[PromptNode("ask", is_entry=True)])
    with pytest.raises(GraphExecutionError) as caught:
        await PromptGraphEngine(graph, ScriptedModel([raises(PermissionError("key rejected"))])).ainvoke("go")
    assert isinstance(caught.value.__cause__, PermissionError)
    del error


async def test_a_next_node_that_does_not_exist_is_an_error_and_no_silent_end() -> None:
    @node("a")
    async def a() -> NodeResult:
        return NodeResult(next_node="nowhere")

    with pytest.raises(GraphExecutionError, match="'nowhere' does not exist"):
        await visited(PromptGraph("g", nodes=[a]).set_entry("a"))


async def test_a_node_that_returns_no_result_object_fails_with_a_clear_error() -> None:
    class Odd(BaseNode):
        async def execute(self, state: GraphState, config: Any) -> Any:
            return {"answer": 1}

    with pytest.raises(GraphExecutionError, match="returned dict, not a NodeResult"):
        await visited(PromptGraph("g", nodes=[Odd("a", is_entry=True)]))


async def test_a_used_up_loop_goes_to_its_exit() -> None:
    graph = three(giving("a", {"n": 1})).loop_until("a", "b", condition=lambda r: False, max_iterations=3)
    assert await visited(graph) == ["a", "a", "a", "b"]
    graph = three(giving("a", {"n": 1})).loop_until("a", "b", condition=lambda r: True, max_iterations=3)
    assert await visited(graph) == ["a", "b"]


async def test_a_used_up_node_goes_to_its_error_transition_and_else_to_the_error_node() -> None:
    looping = giving("a", max_iterations=2, transitions={"error": "c"}, default_next="a")
    assert await visited(three(looping)) == ["a", "a", "c"]
    graph = three(giving("a", max_iterations=2, default_next="a")).add_node(giving("__error__"))
    assert await visited(graph) == ["a", "a", "__error__"]


async def test_used_up_nodes_that_lead_to_each_other_end_the_run() -> None:
    graph = PromptGraph(
        "g",
        nodes=[
            giving("a", max_iterations=1, default_next="b", transitions={"error": "b"}),
            giving("b", max_iterations=1, default_next="a", transitions={"error": "a"}),
        ],
    ).set_entry("a")
    with pytest.raises(GraphIterationLimitError) as caught:
        await visited(graph)
    assert caught.value.pending_tools == []


async def test_the_output_of_the_last_node_is_the_reply_where_no_node_wrote_one() -> None:
    result = await PromptGraphEngine(PromptGraph("g", nodes=[giving("a", "42", is_entry=True)])).ainvoke("go")
    assert result.text == "42"
    assert result.output == "42"
    result = await PromptGraphEngine(PromptGraph("g", nodes=[giving("a", {"n": 1}, is_entry=True)])).ainvoke("go")
    assert result.text == '{"n": 1}'


async def test_messages_that_a_node_adds_or_only_reports_are_in_the_conversation_once() -> None:
    @node("a", default_next="b")
    async def adds(state: GraphState) -> NodeResult:
        state.messages.append(AIMessage(content="one"))
        return NodeResult()

    @node("b")
    async def reports(state: GraphState) -> NodeResult:
        message = AIMessage(content="two")
        state.messages.append(message)
        return NodeResult(messages_added=[message, AIMessage(content="three")])

    result = await PromptGraphEngine(PromptGraph("g", nodes=[adds, reports]).set_entry("a")).ainvoke("go")
    assert [message.content for message in result.messages] == ["go", "one", "two", "three"]


async def test_a_node_that_only_streams_is_read_to_its_end() -> None:
    class Streams(BaseNode):
        async def stream(self, state: GraphState, config: Any) -> Any:
            yield NodeEvent("on_something", self.name)
            yield NodeEvent("on_node_end", self.name, {"result": NodeResult(output="streamed")})

    result = await PromptGraphEngine(PromptGraph("g", nodes=[Streams("a", is_entry=True)])).ainvoke("go")
    assert result.text == "streamed"


async def test_every_base_node_can_be_streamed_by_hand() -> None:
    seen: list[str] = []

    @node("outer", is_entry=True)
    async def outer(state: GraphState, config: Any) -> str:
        inner = PromptNode("inner")
        async for event in inner.stream(state, config):
            seen.append(event.event)
            if event.event == "on_node_end":
                return str(event.data["result"].output)
        return ""

    model = ScriptedModel([says("a b")])
    result = await PromptGraphEngine(PromptGraph("g", nodes=[outer]), model).ainvoke("go")
    assert result.text == "a b"
    assert seen[-1] == "on_node_end"
    assert "on_chat_model_stream" in seen


async def test_context_goes_in_and_comes_back() -> None:
    @node("a", is_entry=True)
    async def a(state: GraphState) -> str:
        state.context["seen"] = state.context["given"] + 1
        return "ok"

    engine = PromptGraphEngine(PromptGraph("g", nodes=[a]))
    result = await engine.ainvoke("go", context={"given": 1})
    assert result.context == {"given": 1, "seen": 2}
    assert result["context"] is result.context
    assert result == {"messages": result.messages}
    again = await engine.ainvoke({"messages": "go", "context": {"given": 5}})
    assert again.context["seen"] == 6


async def test_an_error_route_that_leads_straight_to_the_end_is_no_answer() -> None:
    graph = three(failing("a")).on_error("a", "__end__")
    with pytest.raises(GraphExecutionError, match="no luck"):
        await visited(graph)
