"""Building, checking, copying and drawing a graph."""

from __future__ import annotations

import time
from typing import Any

import pytest

from graphwright.engine import (
    BaseNode,
    Edge,
    GraphMutation,
    NodeFlag,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    ToolNode,
    node,
)
from graphwright.exceptions import ConfigurationError, GraphInvalidError, NodeNotFoundError


def plain(name: str, **options: Any) -> BaseNode:
    @node(name, **options)
    async def step() -> str:
        return f"{name} ran"

    return step


def graph_of(*names: str) -> PromptGraph:
    graph = PromptGraph("g", nodes=[plain(name) for name in names])
    return graph.set_entry(names[0])


def test_methods_chain_and_the_graph_shows_what_was_built() -> None:
    graph = PromptGraph("g").add_node(plain("a")).add_node(plain("b"))
    assert graph.set_entry("a").always("a", "b") is graph
    assert graph.entry == "a"
    assert list(graph.nodes) == ["a", "b"]
    assert graph.edges == [Edge("a", "b")]
    assert graph.has_node("a")
    assert not graph.has_node("z")


def test_an_unknown_node_is_named_with_those_that_exist() -> None:
    graph = graph_of("a", "b")
    with pytest.raises(NodeNotFoundError, match="no node 'z'; its nodes: 'a', 'b'") as caught:
        graph.get_node("z")
    assert isinstance(caught.value, KeyError)
    with pytest.raises(KeyError):
        graph.set_entry("z")


def test_a_node_class_given_for_a_node_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no node"):
        PromptGraph().add_node(PromptNode)  # type: ignore[arg-type]


def test_the_first_entry_node_is_the_entry() -> None:
    graph = PromptGraph(nodes=[plain("a"), plain("b", is_entry=True), plain("c", is_entry=True)])
    assert graph.entry == "b"


@pytest.mark.parametrize("order", [("always", "when"), ("when", "always")])
def test_a_conditional_edge_wins_over_an_unconditional_one_whatever_the_order(order: tuple[str, str]) -> None:
    graph = graph_of("a", "b", "c")
    for method in order:
        if method == "always":
            graph.always("a", "b")
        else:
            graph.when("a", "c", lambda result: True)
    assert [edge.to_node for edge in graph.get_edges_from("a")] == ["c", "b"]


def test_edges_are_tried_by_priority_and_then_in_the_order_they_were_added() -> None:
    graph = graph_of("a", "b", "c", "d")
    graph.add_edge("a", "b", condition=lambda r: True)
    graph.add_edge("a", "c", condition=lambda r: True)
    graph.add_edge("a", "d", priority=1)
    assert [edge.to_node for edge in graph.get_edges_from("a")] == ["d", "b", "c"]
    assert graph.get_edges_from("nowhere") == []


def test_removing_a_node_removes_its_edges_and_its_entry() -> None:
    graph = graph_of("a", "b", "c").sequential("a", "b", "c")
    graph.remove_node("a")
    assert graph.entry is None
    assert graph.edges == [Edge("b", "c")]
    assert graph.get_edges_from("a") == []


def test_a_copy_can_change_without_its_original_and_the_other_way_round() -> None:
    graph = graph_of("a", "b").always("a", "b")
    twin = graph.copy()
    twin.remove_node("b")
    graph.add_node(plain("c"))
    assert list(graph.nodes) == ["a", "b", "c"]
    assert graph.edges == [Edge("a", "b")]
    assert list(twin.nodes) == ["a"]
    assert twin.edges == []
    assert twin.get_node("a") is graph.get_node("a")


def test_a_graph_of_4000_edges_is_built_in_reasonable_time() -> None:
    graph = graph_of("a", "b")
    started = time.process_time()
    for number in range(4000):
        graph.on_output("a", "b", "n", number)
    assert len(graph.get_edges_from("a")) == 4000
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("method", "args", "result", "expected"),
    [
        ("on_output", ("done",), NodeResult(output={"done": True}), True),
        ("on_output", ("done",), NodeResult(output={"done": False}), False),
        ("on_output", ("kind", "x"), NodeResult(output={"kind": "x"}), True),
        ("on_output", ("done",), NodeResult(output="done"), False),
        ("on_confidence", (), NodeResult(output={"confidence": 0.7}), True),
        ("on_confidence", (0.9,), NodeResult(output={"confidence": 0.8}), False),
        ("on_confidence", (), NodeResult(output={"confidence": "0.8"}), True),
        ("on_confidence", (), NodeResult(output={"confidence": "high"}), False),
        ("on_confidence", (), NodeResult(output={"confidence": True}), False),
        ("on_confidence", (), NodeResult(output={}), False),
        ("on_tool_call", (), NodeResult(tool_calls=[{"name": "t"}]), True),
        ("on_tool_call", (), NodeResult(), False),
        ("on_no_tool_call", (), NodeResult(), True),
        ("on_error", (), NodeResult(error="x"), True),
        ("on_error", (), NodeResult(), False),
        ("on_guard_fail", (), NodeResult(guards_failed=["g"]), True),
        ("on_guard_fail", (), NodeResult(), False),
    ],
)
def test_the_on_methods_open_their_edge_when_they_say(
    method: str, args: tuple[Any, ...], result: NodeResult, expected: bool
) -> None:
    graph = graph_of("a", "b")
    getattr(graph, method)("a", "b", *args)
    (edge,) = graph.get_edges_from("a")
    assert edge.condition is not None
    assert edge.condition(result) is expected


def test_a_loop_keeps_its_limit_and_refuses_one_below_1() -> None:
    graph = graph_of("a", "b").loop_until("a", "b", condition=lambda r: False, max_iterations=3)
    assert graph.loop_limit("a") == (3, "b")
    assert graph.loop_limit("b") is None
    with pytest.raises(ConfigurationError, match="at least 1"):
        graph.loop_until("a", "b", condition=lambda r: False, max_iterations=0)


def test_validate_lists_every_wrong_name_wherever_it_stands() -> None:
    graph = PromptGraph("g")
    graph.add_node(plain("a", transitions={"ok": "nowhere"}, default_next="gone"))
    graph.always("a", "missing")
    graph.loop_until("a", "lost", condition=lambda r: True)
    problems = "\n".join(graph.validate())
    for words in ("no entry is set", "'nowhere'", "'gone'", "'missing'", "'lost'"):
        assert words in problems


def test_validate_finds_dead_ends_and_nodes_that_cannot_be_reached() -> None:
    graph = graph_of("a", "b", "island").always("a", "b").always("island", "a")
    assert graph.validate() == [
        "node 'island' cannot be reached from the entry 'a'",
        "node 'b' is a dead end: nothing leads on from it, not even to '__end__'",
    ]


def test_error_nodes_terminal_nodes_and_named_targets_count_as_reachable() -> None:
    graph = PromptGraph("g").add_node(plain("a", default_next="__end__")).set_entry("a")
    graph.add_node(plain("__error__"))
    graph.add_node(plain("last", is_terminal=True))
    assert graph.validate() == []


async def test_a_graph_that_cannot_run_is_refused_with_all_problems_in_one_error() -> None:
    graph = PromptGraph("g").add_node(plain("a", transitions={"ok": "nowhere"}))
    graph.always("a", "missing")
    with pytest.raises(GraphInvalidError) as caught:
        await PromptGraphEngine(graph).ainvoke("go")
    assert len(caught.value.problems) == 3
    assert isinstance(caught.value, ValueError)


async def test_a_dead_end_is_only_a_warning_and_the_node_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    graph = graph_of("a", "b").always("a", "b")
    engine = PromptGraphEngine(graph)
    result = await engine.ainvoke("go")
    await engine.ainvoke("go")
    assert result.report.nodes_visited == ["a", "b"]
    assert sum("dead end" in record.message for record in caplog.records) == 1


def test_describe_names_every_node_with_its_ways() -> None:
    graph = graph_of("a", "b").always("a", "b").always("b", "__end__")
    assert graph.describe().splitlines()[:2] == ['PromptGraph "g"', "├── [entry] a (_FunctionNode) → b"]


def test_mermaid_declares_nodes_escapes_labels_and_avoids_reserved_words() -> None:
    graph = PromptGraph("g", nodes=[plain("end"), plain('say "hi" <b>')]).set_entry("end")
    graph.add_edge("end", 'say "hi" <b>', condition=lambda r: True, label='a|b "c"')
    graph.always('say "hi" <b>', "__end__")
    drawn = graph.to_mermaid()
    assert drawn.splitlines()[0] == "graph TD"
    assert '    node_0(["end<br/>_FunctionNode"])' in drawn
    assert '    node_1["say #quot;hi#quot; #lt;b#gt;<br/>_FunctionNode"]' in drawn
    assert '    node_0 -->|"a#124;b #quot;c#quot;"| node_1' in drawn
    assert "    node_1 --> __end__" in drawn
    assert len(drawn.splitlines()) == len(set(drawn.splitlines()))


def test_mutations_change_the_graph_or_refuse_without_a_trace() -> None:
    graph = graph_of("a", "b").always("a", "b")
    graph.apply_mutation(GraphMutation("add_node", "c", {"instructions": "Think."}))
    graph.apply_mutation(GraphMutation("add_edge", from_node="b", to_node="c", condition="done == true"))
    assert isinstance(graph.get_node("c"), PromptNode)
    (edge,) = graph.get_edges_from("b")
    assert edge.condition is not None
    assert edge.condition(NodeResult(output={"done": True}))
    assert not edge.condition(NodeResult(output={"done": False}))
    graph.apply_mutation(GraphMutation("remove_edge", from_node="b", to_node="c"))
    graph.apply_mutation(GraphMutation("remove_node", "c"))
    before = graph.describe()
    for wrong in (
        GraphMutation("explode"),
        GraphMutation("add_node", "a", {}),
        GraphMutation("add_node", "x", {"name": "y"}),
        GraphMutation("add_node", "x", {"no_such_key": 1}),
        GraphMutation("add_edge", from_node="a", to_node="nowhere"),
        GraphMutation("add_edge", from_node="a", to_node="b", condition="__import__('os')"),
        GraphMutation("remove_edge", from_node="b", to_node="a"),
        GraphMutation("remove_node", "a"),
    ):
        with pytest.raises(ConfigurationError):
            graph.apply_mutation(wrong)
    with pytest.raises(NodeNotFoundError):
        graph.apply_mutation(GraphMutation("remove_node", "nowhere"))
    assert graph.describe() == before


def test_node_flags_are_checked_and_wrong_ones_named() -> None:
    assert PromptNode("a", inject_tools=True).has_flag("inject_tools")
    assert plain("a", flags={"terminal"}).is_terminal
    assert plain("a", flags={NodeFlag.ENTRY}).is_entry
    with pytest.raises(ConfigurationError, match="'fast' is no node flag"):
        plain("a", flags={"fast"})


def test_the_node_decorator_wants_a_coroutine_and_takes_its_description_from_the_docstring() -> None:
    @node("fetch")
    async def fetch() -> None:
        """Get the data.

        More.
        """

    assert fetch.description == "Get the data."
    with pytest.raises(TypeError, match="async def"):
        node("sync")(lambda: None)


def test_prompt_nodes_come_from_config_and_refuse_unknown_keys() -> None:
    made = PromptNode.from_config({"name": "a", "instructions": "Think.", "max_iterations": 3, "output_key": "k"})
    assert (made.name, made.instructions, made.max_iterations, made.output_key) == ("a", "Think.", 3, "k")
    assert made.temperature is None
    assert made.max_tokens is None
    with pytest.raises(ConfigurationError, match="'temprature'"):
        PromptNode.from_config({"name": "a", "temprature": 1})
    with pytest.raises(ConfigurationError, match="no 'name'"):
        PromptNode.from_config({})


def test_tool_nodes_refuse_a_cap_below_1() -> None:
    with pytest.raises(ConfigurationError, match="max_result_chars"):
        ToolNode("t", max_result_chars=0)
