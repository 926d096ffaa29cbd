"""Hooks: what they see, what they can change, and what a broken one does."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from graphwright.engine import (
    GraphExecutionError,
    GraphMutation,
    GraphState,
    GraphStoppedError,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    ToolNode,
    build_react_graph,
    node,
)
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.testing import ScriptedModel, call, calls, calls_many, raises, says


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def pre_node(self, node: Any, state: GraphState) -> None:
        self.seen.append(("pre_node", node.name))

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        self.seen.append(("post_node", node.name))

    async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> None:
        self.seen.append(("pre_tool", tool_name, dict(args)))

    async def post_tool(self, tool_name: str, result: Any, args: dict[str, Any], state: GraphState) -> None:
        self.seen.append(("post_tool", tool_name, result))

    async def on_error(self, node: Any, error: BaseException, state: GraphState) -> None:
        self.seen.append(("on_error", node.name, type(error).__name__))

    async def on_graph_mutation(self, mutation: GraphMutation, state: GraphState) -> None:
        self.seen.append(("on_graph_mutation", mutation.action))

    async def on_tool_reused(self, tool_name: str, args: dict[str, Any], result: Any, state: GraphState) -> None:
        self.seen.append(("on_tool_reused", tool_name, result))


def react(model: ScriptedModel, *hooks: Any) -> PromptGraphEngine:
    return PromptGraphEngine(build_react_graph([look]), model, hooks=hooks)


async def test_hooks_see_every_node_and_every_tool_in_order_and_none_changes_nothing() -> None:
    hook = Recorder()
    result = await react(ScriptedModel([calls("look", at="sea"), says("done")]), hook).ainvoke("go")
    assert result.text == "done"
    assert hook.seen == [
        ("pre_node", "reason"),
        ("pre_tool", "look", {"at": "sea"}),
        ("post_tool", "look", "seen sea"),
        ("post_node", "reason"),
        ("pre_node", "reason"),
        ("post_node", "reason"),
    ]


async def test_a_hook_can_be_sync_and_have_one_method_only() -> None:
    class Small:
        count = 0

        def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
            self.count += 1

    hook = Small()
    await react(ScriptedModel(["hi"]), hook).ainvoke("go")
    assert hook.count == 1


def test_an_object_without_any_hook_method_and_a_class_are_refused() -> None:
    for wrong in (object(), Recorder):
        with pytest.raises(ConfigurationError, match="hook"):
            PromptGraphEngine(build_react_graph(), ScriptedModel([]), hooks=[wrong])


async def test_pre_tool_changes_arguments_and_post_tool_what_everybody_sees() -> None:
    class Changes:
        async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> dict[str, Any]:
            return {"at": args["at"].upper()}

        async def post_tool(self, tool_name: str, result: Any, args: dict[str, Any], state: GraphState) -> Any:
            return result.replace("SEA", "***")

    kept: list[NodeResult] = []

    class Keeps:
        async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
            kept.append(result)

    model = ScriptedModel([calls("look", at="sea"), says("done")])
    await react(model, Changes(), Keeps()).ainvoke("go")
    assert text_of(model.inputs[1][-1]) == "seen ***"
    assert kept[0].tool_calls == [{"name": "look", "args": {"at": "SEA"}, "result": "seen ***", "success": True}]


async def test_raising_in_pre_tool_blocks_the_call_and_the_run_goes_on() -> None:
    ran = []

    def dangerous() -> str:
        """Do it."""
        ran.append(1)
        return "x"

    class Blocks:
        async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> None:
            if tool_name == "dangerous":
                raise PermissionError("not today")

    model = ScriptedModel([calls_many(call("dangerous"), call("look", at="sea")), says("done")])
    engine = PromptGraphEngine(build_react_graph([look, dangerous]), model, hooks=[Blocks()])
    assert (await engine.ainvoke("go")).text == "done"
    blocked, fine = model.inputs[1][-2:]
    assert ran == []
    assert blocked.status == "error"
    assert "not today" in text_of(blocked)
    assert text_of(fine) == "seen sea"


async def test_raising_in_pre_node_is_a_veto_that_takes_the_error_route() -> None:
    class Vetoes:
        async def pre_node(self, node: Any, state: GraphState) -> None:
            if node.name == "a":
                raise PermissionError("closed")

    @node("b")
    async def b() -> str:
        return "other way"

    model = ScriptedModel([])
    graph = PromptGraph(nodes=[PromptNode("a", is_entry=True), b])
    with pytest.raises(GraphExecutionError, match="closed"):
        await PromptGraphEngine(graph, model, hooks=[Vetoes()]).ainvoke("go")
    graph.on_error("a", "b")
    assert (await PromptGraphEngine(graph, model, hooks=[Vetoes()]).ainvoke("go")).text == "other way"
    assert model.requests == []


async def test_a_broken_observer_is_told_once_and_stops_neither_the_others_nor_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        async def post_node(self, *_: Any) -> None:
            raise RuntimeError("password=hunter2")

        async def post_tool(self, *_: Any) -> None:
            raise TimeoutError

        async def on_error(self, *_: Any) -> None:
            raise RuntimeError

    first, last = Recorder(), Recorder()
    model = ScriptedModel([calls("look", at="a"), calls("look", at="b"), says("done")])
    with caplog.at_level(logging.INFO):
        assert (await react(model, first, Broken(), last).ainvoke("go")).text == "done"
    assert first.seen == last.seen
    assert [record.message for record in caplog.records if "Broken" in record.message] == [
        "Broken.post_tool raised; the run goes on (TimeoutError); told once",
        "Broken.post_node raised; the run goes on (RuntimeError); told once",
    ]
    assert "hunter2" not in caplog.text


async def test_on_error_redirects_to_the_first_node_that_exists() -> None:
    class Redirects:
        def __init__(self, to: str) -> None:
            self.to = to

        async def on_error(self, node: Any, error: BaseException, state: GraphState) -> str:
            return self.to

    @node("b")
    async def b() -> str:
        return "saved"

    graph = PromptGraph(nodes=[PromptNode("a", is_entry=True), b])
    model = ScriptedModel([raises(ValueError("x"))])
    hooks = [Redirects("nowhere"), Redirects("b"), Recorder()]
    result = await PromptGraphEngine(graph, model, hooks=hooks).ainvoke("go")
    assert result.text == "saved"
    recorder = hooks[2]
    assert isinstance(recorder, Recorder)
    assert recorder.seen[:3] == [("pre_node", "a"), ("on_error", "a", "ModelError"), ("post_node", "a")]
    assert recorder.seen[3:] == [("pre_node", "b"), ("post_node", "b")]


class Stops:
    def __init__(self, at: str, *, when: str = "post_node", to: str = "__end__", reason: str = "") -> None:
        self.at, self.when, self.to, self.reason = at, when, to, reason

    async def pre_node(self, node: Any, state: GraphState) -> GraphState:
        if self.when == "pre_node" and node.name == self.at:
            state.current_node = self.to
        return state

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> NodeResult:
        if self.when == "post_node" and node.name == self.at:
            state.current_node = self.to
            result.error = self.reason or result.error
        return result


async def test_a_stop_in_the_middle_of_a_tool_loop_raises_with_the_reason() -> None:
    model = ScriptedModel([calls("look", at="sea")])
    with pytest.raises(GraphStoppedError) as caught:
        await react(model, Stops("reason", reason="too dear")).ainvoke("go")
    error = caught.value
    assert (error.reason, error.stopped_by, error.pending_tools) == ("too dear", "Stops", ["look"])
    assert error.report is not None
    assert error.report.error == "too dear"


async def test_a_stop_after_the_answer_returns_it_and_names_the_reason_in_the_report() -> None:
    result = await react(ScriptedModel(["the answer"]), Stops("reason", reason="over budget")).ainvoke("go")
    assert result.text == "the answer"
    assert result.report.error == "over budget"


async def test_a_stop_before_the_first_node_has_no_answer() -> None:
    model = ScriptedModel([])
    with pytest.raises(GraphStoppedError) as caught:
        await react(model, Stops("reason", when="pre_node")).ainvoke("go")
    assert caught.value.pending_tools == []
    assert model.requests == []


@pytest.mark.parametrize("when", ["pre_node", "post_node"])
async def test_a_hook_can_send_the_run_to_another_node(when: str) -> None:
    @node("a", is_entry=True, default_next="b")
    async def a() -> str:
        return "a"

    @node("b")
    async def b() -> str:
        return "b"

    @node("c")
    async def c() -> str:
        return "c"

    graph = PromptGraph(nodes=[a, b, c])
    result = await PromptGraphEngine(graph, hooks=[Stops("a", when=when, to="c")]).ainvoke("go")
    assert result.report.nodes_visited == ["a", "c"]


class Remarks:
    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        result.error = f"{node.name} was slow"


async def test_a_hooks_remark_on_a_good_node_annotates_and_never_turns_an_answer_into_an_error() -> None:
    result = await react(ScriptedModel([calls("look", at="x"), says("fine")]), Remarks()).ainvoke("go")
    assert result.text == "fine"
    assert result.report.error == "reason was slow"


async def test_a_hooks_remark_takes_an_error_edge_where_there_is_one() -> None:
    @node("a", is_entry=True, default_next="b", transitions={"error": "b"})
    async def a() -> str:
        return "a"

    @node("b")
    async def b() -> str:
        return "b"

    @node("c")
    async def c() -> str:
        return "c"

    graph = PromptGraph(nodes=[a, b, c])
    assert (await PromptGraphEngine(graph, hooks=[Remarks()]).ainvoke("go")).report.nodes_visited == ["a", "b"]
    graph.on_error("a", "c")
    assert (await PromptGraphEngine(graph, hooks=[Remarks()]).ainvoke("go")).report.nodes_visited == ["a", "c"]


def mutating(*mutations: GraphMutation) -> PromptGraph:
    @node("a", is_entry=True, default_next="z")
    async def a() -> NodeResult:
        return NodeResult(output="a", graph_mutations=list(mutations))

    @node("z")
    async def z() -> str:
        return "z"

    return PromptGraph(nodes=[a, z])


NEW_EDGE = GraphMutation("add_edge", from_node="a", to_node="a")
TO_B = [GraphMutation("add_node", "b", {"instructions": "Hi."}), GraphMutation("add_edge", from_node="a", to_node="b")]


async def test_a_mutation_changes_the_graph_of_this_run_only() -> None:
    graph = mutating(*TO_B)
    result = await PromptGraphEngine(graph, ScriptedModel(["from b"])).ainvoke("go")
    assert result.report.nodes_visited == ["a", "b"]
    assert result.report.graph_mutations == 2
    assert list(graph.nodes) == ["a", "z"]


@pytest.mark.parametrize("how", ["false", "raises", "off", "budget", "bad"])
async def test_a_mutation_that_is_refused_changes_nothing(how: str) -> None:
    class Blocks:
        async def on_graph_mutation(self, mutation: GraphMutation, state: GraphState) -> bool:
            if how == "raises":
                raise ValueError("unsure")
            return how != "false"

    wrong = [GraphMutation("add_edge", from_node="a", to_node="nowhere")]
    engine = PromptGraphEngine(
        mutating(*(wrong if how == "bad" else TO_B)),
        hooks=[Blocks()],
        allow_self_modification=how != "off",
        max_mutations_per_run=0 if how == "budget" else 10,
    )
    result = await engine.ainvoke("go")
    assert result.report.nodes_visited == ["a", "z"]
    assert result.report.graph_mutations == 0


async def test_tool_nodes_call_the_same_hooks_and_report_reuse() -> None:
    hook = Recorder()
    counted: list[str] = []

    def count(word: str) -> str:
        """Count."""
        counted.append(word)
        return str(len(counted))

    from graphwright.messages import AIMessage, HumanMessage

    asked = [
        {"id": "1", "name": "count", "args": {"word": "x"}},
        {"id": "2", "name": "count", "args": {"word": "x"}},
        {"id": "3", "name": "count", "args": {"word": "y"}},
    ]
    given = [HumanMessage(content="go"), AIMessage(content="", tool_calls=asked)]
    graph = PromptGraph(nodes=[ToolNode("tools", tools=[count], is_entry=True)])
    result = await PromptGraphEngine(graph, hooks=[hook]).ainvoke(given)
    assert counted == ["x", "y"]
    assert [(m.tool_call_id, m.content) for m in result.messages[2:]] == [("1", "1"), ("2", "1"), ("3", "2")]
    assert ("on_tool_reused", "count", "1") in hook.seen
    assert sum(entry[0] == "pre_tool" for entry in hook.seen) == 2


async def test_twenty_runs_at_once_share_a_hook_and_not_their_states() -> None:
    class Marks:
        async def pre_node(self, node: Any, state: GraphState) -> None:
            state.context.setdefault("me", text_of(state.messages[0]))

    model = ScriptedModel.answering(lambda messages: says(text_of(messages[-1])))
    engine = react(model, Marks())
    results = await asyncio.gather(*(engine.ainvoke(f"run {i}") for i in range(20)))
    assert [result.context["me"] for result in results] == [f"run {i}" for i in range(20)]
