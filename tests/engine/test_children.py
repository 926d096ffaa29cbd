"""What reaches the nodes that run inside another node."""

from __future__ import annotations

from typing import Any

from graphwright.engine import (
    GraphMutation,
    NodeResult,
    ParallelNode,
    PromptGraph,
    PromptGraphEngine,
    SubgraphNode,
    node,
)
from graphwright.engine.hooks import TimingHook


async def test_a_remark_of_a_hook_on_a_child_does_not_make_it_fail() -> None:
    @node("child")
    async def child() -> str:
        return "fine"

    graph = PromptGraph(nodes=[ParallelNode("p", nodes=[child], is_entry=True)])
    result = await PromptGraphEngine(graph, hooks=[TimingHook(default_budget_ms=0.0001)]).ainvoke("go")
    assert "fine" in result.text
    assert result.report.error is not None


async def test_a_graph_inside_cannot_change_itself_where_that_is_off() -> None:
    @node("inner", is_entry=True, default_next="last")
    async def inner() -> NodeResult:
        return NodeResult(output="x", graph_mutations=[GraphMutation("add_edge", from_node="inner", to_node="other")])

    def saying(name: str) -> Any:
        @node(name)
        async def says() -> str:
            return name

        return says

    sub = PromptGraph(nodes=[inner, saying("last"), saying("other")])
    graph = PromptGraph(nodes=[SubgraphNode("sub", subgraph=sub, is_entry=True)])
    for allowed, answer in ((False, "last"), (True, "other")):
        engine = PromptGraphEngine(graph, allow_self_modification=allowed)
        assert (await engine.ainvoke("go")).text == answer
