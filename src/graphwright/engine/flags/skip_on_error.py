"""`skip_on_error`: a failure passes over such nodes, up to one that can deal with it."""

from __future__ import annotations

from typing import Any

from graphwright.engine._transition import next_node
from graphwright.engine.edges import END
from graphwright.engine.node_result import NodeResult
from graphwright.engine.state import GraphState, NodeFlag

__all__ = ["after_failure"]


def after_failure(state: GraphState, node: Any, result: NodeResult) -> str | None:
    """Return the first node without the flag behind a failed one, or `None` when the failure is to be raised.

    Only where the node that comes next by the normal order carries the flag. Each skipped node has a result in the
    history that says so.
    """
    graph = state.graph
    name = next_node(graph, node, result)
    skipped: list[NodeResult] = []
    while name != END and graph.has_node(name):
        following = graph.get_node(name)
        if NodeFlag.SKIP_ON_ERROR not in getattr(following, "flags", ()):
            if not skipped:
                return None
            state.node_history.extend(skipped)
            return str(name)
        if len(skipped) > len(graph.nodes):
            return None
        skipped.append(NodeResult(following.name, transition_reason="skipped: an earlier step failed"))
        name = next_node(graph, following, NodeResult(following.name))
    return None
