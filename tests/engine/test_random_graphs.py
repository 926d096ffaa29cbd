"""Whatever graph is built and whatever its nodes do, a run ends properly and goes only where it was allowed to."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from graphwright.engine import BaseNode, GraphState, NodeResult, PromptGraph, PromptGraphEngine, PromptNode, ToolNode
from graphwright.engine import node as make_node
from graphwright.exceptions import GraphExecutionError, GraphIterationLimitError
from graphwright.messages import AIMessage
from graphwright.models.base import ModelRequest
from graphwright.testing import ScriptedModel, calls, raises, says
from graphwright.testing.assertions import assert_valid_conversation

NAMES = ["n0", "n1", "n2", "n3", "n4"]
END = "__end__"
LIMIT = 25
ROUTES = st.sampled_from([*NAMES, END, "yes", "nowhere", "__error__"])
TEXTS = st.sampled_from(["fine", "", "yes", '{"route": "n3"}', '{"_graph_action": "skip_to", "_target": "n4"}'])


class Routed(TypedDict, total=False):
    route: str
    _graph_action: str
    _target: str


def look(what: str) -> str:
    """Look something up."""
    if what == "bad":
        raise ValueError("not found")
    return f"seen {what}"


ANSWERS = st.one_of(
    TEXTS.map(says),
    st.just(raises(RuntimeError("provider is down"))),
    st.sampled_from(["a", "bad"]).map(lambda what: calls("look", what=what)),
    st.just(calls("unknown_tool", x=1)),
)
OUTCOMES = st.one_of(
    TEXTS,
    st.none(),
    st.builds(lambda target: {"route": target}, ROUTES),
    st.builds(lambda target: {"_graph_action": "skip_to", "_target": target}, ROUTES),
    st.builds(lambda text: ("error", text), st.just("no luck")),
    st.just(("tools", "")),
)
CONDITIONS = st.sampled_from(["always", "error", "tool", "no_tool", "when"])


def step(name: str, outcomes: list[Any], **options: Any) -> BaseNode:
    @make_node(name, **options)
    async def run(state: GraphState) -> Any:
        outcome = outcomes[state.node_iterations[name] % len(outcomes)]
        if isinstance(outcome, tuple) and outcome[0] == "error":
            raise ValueError(outcome[1])
        if isinstance(outcome, tuple):
            call = {"name": "look", "args": {"what": "a"}, "id": f"{name}-{state.iteration}"}
            state.messages.append(AIMessage(content="", tool_calls=[call]))
            return NodeResult(output="asked")
        return outcome

    return run


@st.composite
def nodes(draw: st.DrawFn) -> list[Any]:
    made: list[Any] = []
    for name in NAMES[: draw(st.integers(1, 5))]:
        known = st.sampled_from([*NAMES, END])
        options: dict[str, Any] = {
            "max_iterations": draw(st.integers(1, 6)),
            "transitions": draw(st.dictionaries(st.sampled_from(["yes", "error"]), known, max_size=2)),
            "default_next": draw(st.one_of(st.none(), known)),
        }
        kind = draw(st.sampled_from(["step", "prompt", "object", "tool"]))
        if kind == "step":
            made.append(step(name, draw(st.lists(OUTCOMES, min_size=1, max_size=4)), **options))
        elif kind == "tool":
            made.append(ToolNode(name, tools=[look], **options))
        else:
            made.append(PromptNode(name, tools=[look], output_schema=Routed if kind == "object" else None, **options))
    return made


@st.composite
def graphs(draw: st.DrawFn) -> PromptGraph:
    made = draw(nodes())
    names = [node.name for node in made]
    for node in made:
        node.transitions = {key: name for key, name in node.transitions.items() if name in (*names, END)}
        node.default_next = node.default_next if node.default_next in (*names, END) else None
    graph = PromptGraph("random", nodes=made).set_entry("n0")
    edges = st.tuples(st.sampled_from(names), st.sampled_from([*names, END]), CONDITIONS)
    for start, target, kind in draw(st.lists(edges, max_size=8)):
        if kind == "error":
            graph.on_error(start, target)
        elif kind == "tool":
            graph.on_tool_call(start, target)
        elif kind == "no_tool":
            graph.on_no_tool_call(start, target)
        elif kind == "when":
            graph.when(start, target, lambda result: len(result.raw_output) % 2 == 0)
        else:
            graph.always(start, target)
    if draw(st.booleans()):
        looping, out = draw(st.sampled_from(names)), draw(st.sampled_from([*names, END]))
        graph.loop_until(looping, out, condition=lambda result: result.output == "yes", max_iterations=2)
    return graph


def ways(graph: PromptGraph, name: str) -> set[str]:
    """Return where the author of the graph lets a node lead, a further visit of the node itself included."""
    loop = graph.loop_limit(name)
    found = {edge.to_node for edge in graph.get_edges_from(name)} | set(graph.get_node(name).targets().values())
    return found | {name} | ({loop.exit_to} if loop else set())


def spread(graph: PromptGraph, name: str) -> set[str]:
    """Return what a node leads to, also through nodes that may not run again and are passed over."""
    reached: set[str] = set()
    waiting = ways(graph, name)
    while waiting:
        target = waiting.pop()
        if target in reached or not graph.has_node(target):
            continue
        reached.add(target)
        loop = graph.loop_limit(target)
        skipped = graph.get_node(target).transitions.get("error") if loop is None else loop.exit_to
        waiting |= {skipped} - {None}
    return reached


class Watching:
    """Answer from a list, in a circle, and keep what was asked."""

    def __init__(self, answers: list[Any]) -> None:
        self.model = ScriptedModel(answers * (LIMIT * 3))

    @property
    def requests(self) -> list[ModelRequest]:
        return list(self.model.requests)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs(), answers=st.lists(ANSWERS, min_size=1, max_size=5))
def test_a_run_of_any_graph_ends_within_its_limits_by_declared_ways(graph: PromptGraph, answers: list[Any]) -> None:
    watching = Watching(answers)
    visited: list[str] = []
    failures: list[str | None] = []

    class Watch:
        async def pre_node(self, node: Any, state: GraphState) -> None:
            visited.append(node.name)

        async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
            failures.append(result.error)

    engine = PromptGraphEngine(
        graph, watching.model, hooks=[Watch()], max_iterations=LIMIT, allow_self_modification=False
    )

    async def run() -> Any:
        return await asyncio.wait_for(engine.ainvoke("go"), timeout=10)

    try:
        result = asyncio.run(run())
    except GraphExecutionError as error:
        named = error.graph_name
    else:
        named = graph.name
        assert result["messages"][0].content == "go"
        last = result["messages"][-1]
        # Code may end a run without a word, and an author may let a failure lead to the end.
        if isinstance(graph.get_node(visited[-1]), PromptNode) and failures[-1] is None:
            assert last.type == "ai"
            assert last.content
            assert not last.tool_calls

    assert named == "random"
    assert visited[0] == "n0"
    assert len(visited) <= LIMIT
    for before, after in pairwise(visited):
        assert after in spread(graph, before), f"{before} led to {after}: {graph.describe()}"
    for name in set(visited):
        assert visited.count(name) <= graph.get_node(name).max_iterations
    for request in watching.requests:
        assert_valid_conversation(request.messages)


async def outcome(graph: PromptGraph, answers: list[Any], how: str) -> tuple[Any, ...]:
    """Return all that must not depend on how a graph is run."""
    model = Watching(answers).model
    engine = PromptGraphEngine(graph, model, max_iterations=LIMIT, allow_self_modification=False)
    messages: Any = None
    error: tuple[str, str] | None = None
    try:
        if how == "ainvoke":
            messages = (await engine.ainvoke("go"))["messages"]
        elif how == "astream":
            async for chunk in engine.astream("go"):
                messages = chunk["messages"]
        else:
            async for _ in engine.astream_events("go"):
                pass
    except GraphExecutionError as caught:
        error, messages = (type(caught).__name__, str(caught)), None
    shown = None if messages is None or how == "astream_events" else [(m.type, m.content) for m in messages]
    report = engine.last_report
    assert report is not None
    return shown, error, report.nodes_visited, report.tool_calls, report.total_tokens, len(model.requests)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=graphs(), answers=st.lists(ANSWERS, min_size=1, max_size=5))
def test_any_graph_gives_the_same_however_it_is_run(graph: PromptGraph, answers: list[Any]) -> None:
    async def compare() -> None:
        plain = await outcome(graph, answers, "ainvoke")
        streamed = await outcome(graph, answers, "astream")
        watched = await outcome(graph, answers, "astream_events")
        assert streamed == plain
        assert watched[1:] == plain[1:]

    asyncio.run(asyncio.wait_for(compare(), timeout=30))


async def test_a_tool_loop_that_runs_out_with_its_error_route_to_the_end_has_no_answer() -> None:
    asking = PromptNode("ask", tools=[look], max_iterations=2, transitions={"error": END})
    model = ScriptedModel([calls("look", what="a"), calls("look", what="b")])

    with pytest.raises(GraphIterationLimitError) as caught:
        await PromptGraphEngine(PromptGraph(nodes=[asking]).set_entry("ask"), model).ainvoke("go")

    assert caught.value.pending_tools == ["look"]
