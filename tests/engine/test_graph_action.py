"""What the output of a node may change in its run, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import (
    BaseNode,
    GraphMutation,
    GraphState,
    HumanNode,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    RunResult,
    node,
)
from graphwright.run_events import GraphMutated
from graphwright.testing import ScriptedModel, says

ANY_OBJECT = {"type": "object", "properties": {}}


def giving(name: str, *outputs: Any, **options: Any) -> BaseNode:
    """Return a node that gives these outputs, one a visit, the last again and again."""

    @node(name, **options)
    async def step(state: GraphState) -> Any:
        count = state.node_iterations[name]
        return outputs[min(count, len(outputs)) - 1] if outputs else f"{name} done"

    return step


def mutating(name: str, *mutations: GraphMutation) -> BaseNode:
    @node(name)
    async def step() -> NodeResult:
        return NodeResult(output="x", raw_output="x", graph_mutations=list(mutations))

    return step


async def run(graph: PromptGraph, model: Any = None, **options: Any) -> tuple[list[str], list[GraphMutated], RunResult]:
    seen: list[GraphMutated] = []

    async def emit(event: Any) -> None:
        if isinstance(event, GraphMutated):
            seen.append(event)

    engine = PromptGraphEngine(graph, model, human_handler=lambda prompt, state: True, **options)
    result = await engine.run("go", emit=emit)
    return result.report.nodes_visited, seen, result


def straight(*nodes: Any) -> PromptGraph:
    graph = PromptGraph("g", nodes=nodes).set_entry(nodes[0].name)
    return graph.sequential(*[step.name for step in nodes])


def act(action: str, **keys: Any) -> dict[str, Any]:
    return {"_graph_action": action, **{f"_{key.rstrip('_')}": value for key, value in keys.items()}}


def human(name: str = "gate") -> HumanNode:
    return HumanNode(name, on_approve="after")


def gated(output: Any) -> PromptGraph:
    graph = PromptGraph("g", nodes=[giving("plan", output), human(), giving("after"), giving("side")])
    return graph.set_entry("plan").always("plan", "gate").always("after", "side")


async def test_skip_to_goes_straight_to_the_target() -> None:
    graph = straight(giving("a", act("skip_to", target="c")), giving("b"), giving("c"))

    visited, seen, _ = await run(graph)

    assert visited == ["a", "c"]
    assert [(event.mutation.action, event.mutation.node_name, event.applied) for event in seen] == [
        ("skip_to", "c", True)
    ]


async def test_retry_with_runs_the_node_again_with_more_context() -> None:
    graph = straight(giving("a", act("retry_with", context_update={"hint": 7}), "fine"), giving("b"))

    visited, _, result = await run(graph)

    assert visited == ["a", "a", "b"]
    assert result["context"]["hint"] == 7


async def test_retry_with_ends_with_the_limit_of_changes() -> None:
    graph = straight(giving("a", act("retry_with", context_update={"x": 1})), giving("b"))

    visited, seen, _ = await run(graph, max_mutations_per_run=3)

    assert visited == ["a"] * 4 + ["b"]
    assert [event.applied for event in seen] == [True, True, True, False]
    assert "3 graph changes" in seen[-1].reason


async def test_an_answer_adds_a_node_and_a_conditional_edge_that_is_honoured() -> None:
    outputs = [
        act("add_node", node_config={"name": "extra", "instructions": "Say hello."}),
        {**act("add_edge", from_="b", to="extra", condition="score >= 5")},
    ]
    for score, expected in ((9, ["a", "b", "b2", "extra"]), (1, ["a", "b", "b2"])):
        graph = straight(
            giving("a", outputs[0]),
            giving("b", act("add_edge", from_="b2", to="extra", condition="score >= 5")),
            giving("b2", {"score": score}),
        )

        visited, seen, _ = await run(graph, ScriptedModel([says("hello")]))

        assert visited == expected
        assert [event.applied for event in seen] == [True, True]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (act("explode"), "unknown"),
        (act("skip_to"), "'_target'"),
        (act("skip_to", target="nowhere"), "no node 'nowhere'"),
        (act("skip_to", target=["b"]), "'_target'"),
        (act("add_node", node_config={"name": "b"}), "already has a node 'b'"),
        (act("add_node", node_config={"instructions": "x"}), "one name"),
        (act("add_node", node_config={"name": "n", "colour": "red"}), "colour"),
        (act("add_node", node_config={"name": "n", "max_iterations": "many"}), "cannot be made"),
        (act("add_node", node_config={"name": "n", "type": "transform"}), "prompt node"),
        (act("add_node", node_config={"name": "n", "inject_tools": True}), "inject_tools"),
        (act("add_node", node_config={"name": "n", "preprocessor": {"$import": "os:getcwd"}}), "not allowed"),
        (act("add_edge", from_="a", to="nowhere"), "nowhere"),
        (act("add_edge", from_="a", to="b", condition="__import__('os')"), "cannot be read"),
        (act("add_edge", from_="a", to="b", condition="'{0.__class__}'.format(x) == 1"), "cannot be read"),
        (act("add_edge", from_="a", to="b", condition="x.__class__ == 1"), "'__'"),
        (act("remove_node", node="a"), "entry"),
        (act("remove_edge", from_="b", to="a"), "no edge"),
        (act("retry_with", context_update={"_private": 1}), "'_private'"),
        (act("retry_with", context_update="x"), "'_context_update'"),
        ({"_graph_action": ["skip_to"]}, "unknown"),
    ],
)
async def test_a_bad_action_is_refused_with_a_reason_and_the_run_goes_on(output: Any, reason: str) -> None:
    visited, seen, result = await run(straight(giving("a", output), giving("b")))

    assert visited == ["a", "b"]
    assert [event.applied for event in seen] == [False]
    assert reason in seen[0].reason
    assert result.report.graph_mutations == 0


async def test_the_next_model_reads_once_why_an_action_was_refused() -> None:
    model = ScriptedModel([says("one"), says("two")])
    steps = [PromptNode("b", instructions="Bee."), PromptNode("c", instructions="Sea.")]
    graph = straight(giving("a", act("skip_to", target="nowhere")), *steps)

    _, _, result = await run(graph, model)

    first, second = [call.messages[0].content for call in model.requests]
    assert first.startswith("Bee.")
    assert "`_graph_action` was refused: graph 'g' has no node 'nowhere'" in first
    assert second == "Sea."
    assert "_graph_action_refused" not in result["context"]


async def test_an_action_is_plain_data_where_self_modification_is_off() -> None:
    graph = straight(giving("a", act("skip_to", target="c")), giving("b"), giving("c"))

    visited, seen, result = await run(graph, allow_self_modification=False)

    assert visited == ["a", "b", "c"]
    assert seen == []
    assert "_graph_action_refused" not in result["context"]


async def test_a_hook_sees_every_action_and_can_refuse_it() -> None:
    class No:
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def on_graph_mutation(self, mutation: GraphMutation, state: GraphState) -> bool:
            self.seen.append(mutation.action)
            return False

    hook = No()
    graph = straight(
        giving("a", act("skip_to", target="c")), giving("b", act("retry_with", context_update={"x": 1})), giving("c")
    )

    visited, _, result = await run(graph, hooks=[hook])

    assert visited == ["a", "b", "c"]
    assert hook.seen == ["skip_to", "retry_with"]
    assert "x" not in result["context"]


@pytest.mark.parametrize(
    "output",
    [
        act("skip_to", target="after"),
        act("skip_to", target="side"),
        act("skip_to", target="__end__"),
        act("add_edge", from_="plan", to="after", condition="x == null"),
        act("add_edge", from_="plan", to="__end__", condition="x == null"),
        act("add_edge", from_="gate", to="side"),
        act("remove_node", node="gate"),
        act("remove_edge", from_="plan", to="gate"),
        act("remove_edge", from_="gate", to="after"),
        act("add_node", node_config={"name": "gate", "instructions": "Approve everything."}),
        act("add_node", node_config={"name": "__error__"}),
    ],
)
async def test_a_gate_is_neither_jumped_nor_removed_nor_replaced(output: Any) -> None:
    visited, seen, _ = await run(gated(output))

    assert visited == ["plan", "gate", "after", "side"]
    assert [event.applied for event in seen] == [False]


async def test_a_gate_is_not_jumped_by_way_of_a_new_node() -> None:
    bridge = {"name": "bridge", "default_next": "after"}
    graph = (
        PromptGraph(
            "g",
            nodes=[
                giving("a", act("add_node", node_config=bridge)),
                giving("plan", act("skip_to", target="bridge")),
                human(),
                giving("after"),
            ],
        )
        .set_entry("a")
        .always("a", "plan")
        .always("plan", "gate")
    )

    visited, seen, _ = await run(graph)

    assert visited == ["a", "plan", "gate", "after"]
    assert [event.applied for event in seen] == [True, False]
    assert "around the gate 'gate'" in seen[1].reason


async def test_code_of_a_node_does_not_get_around_a_gate_either() -> None:
    changes = [
        GraphMutation("add_edge", from_node="plan", to_node="after", condition="error == null"),
        GraphMutation("remove_node", node_name="gate"),
    ]
    graph = PromptGraph("g", nodes=[mutating("plan", *changes), human(), giving("after")])
    graph.set_entry("plan").always("plan", "gate")

    visited, seen, _ = await run(graph)

    assert visited == ["plan", "gate", "after"]
    assert [event.applied for event in seen] == [False, False]


async def test_a_run_may_skip_freely_on_its_side_of_a_gate() -> None:
    graph = (
        PromptGraph(
            "g",
            nodes=[
                giving("plan", act("skip_to", target="gate")),
                giving("more"),
                human(),
                giving("after", act("skip_to", target="last")),
                giving("side"),
                giving("last"),
            ],
        )
        .set_entry("plan")
        .sequential("plan", "more", "gate")
        .sequential("after", "side", "last")
    )

    visited, seen, _ = await run(graph)

    assert visited == ["plan", "gate", "after", "last"]
    assert [event.applied for event in seen] == [True, True]


async def test_a_node_that_requires_a_person_is_a_gate() -> None:
    graph = straight(giving("a", act("remove_node", node="b")), giving("b", flags=["requires_human"]), giving("c"))

    _, seen, _ = await run(graph)

    assert [event.reason for event in seen] == ["node 'b' cannot be removed: 'b' is a gate"]


async def test_the_graph_of_the_author_stays_as_it_was() -> None:
    graph = straight(giving("a", act("remove_edge", from_="a", to="b")), giving("b"))

    assert (await run(graph))[0] == ["a"]
    assert (await run(graph))[0] == ["a"]
    assert len(graph.edges) == 1
