"""Keep a gate where the author put it: no change of a running graph may remove, replace or go around it.

A gate is a node whose class says `is_gate = True` or that carries the flag `requires_human`. A way is an edge, a
target that a node's own configuration names, the exit of a loop, and the end of the run where nothing else leads on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from graphwright.engine.edges import END, ERROR
from graphwright.engine.state import GraphMutation, NodeFlag

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph

__all__ = ["bypassed_gate", "is_gate", "refuse_at_gates"]


def is_gate(node: Any) -> bool:
    """Return whether a node is a place that a run has to pass, not one it may go around."""
    return bool(getattr(node, "is_gate", False)) or NodeFlag.REQUIRES_HUMAN in getattr(node, "flags", ())


def refuse_at_gates(graph: PromptGraph, mutation: GraphMutation) -> str | None:
    """Return why a change would touch a gate or lead around one, or `None`."""
    gates = _gates(graph)
    if not gates:
        return None
    if mutation.action == "add_node":
        return _refuse_node(graph, mutation)
    if mutation.action == "remove_node":
        return _refuse_removal(graph, gates, mutation.node_name, f"node {mutation.node_name!r}")
    if mutation.from_node in gates:
        return f"{mutation.from_node!r} is a gate; where it leads to stays as it was declared"
    if mutation.action == "remove_edge":
        shown = f"the edge {mutation.from_node!r} -> {mutation.to_node!r}"
        return _refuse_removal(graph, gates, mutation.to_node, shown)
    if mutation.action == "add_edge":
        return bypassed_gate(graph, mutation.from_node, mutation.to_node)
    return None


def bypassed_gate(graph: PromptGraph, start: str, target: str) -> str | None:
    """Return why a way from `start` to `target` would go around a gate, or `None`.

    It does where a node that can then be reached without the gate could, from `start` or from the entry of the
    graph, only be reached through it, or where a declared way from `start` to that node has the gate on it.
    """
    gates = _gates(graph)
    if not gates:
        return None
    gained = _reached(graph, [target], closed=gates | {start})
    everything = _reached(graph, [graph.entry])
    ahead = _reached(graph, _ways(graph, start), closed={start, target})
    for gate in sorted(gates):
        past = gained - {gate, start}
        around: set[str] = set()
        if gate in ahead and gate != start:
            around = past & _reached(graph, _ways(graph, gate), closed={start, gate})
        if gate != start:
            free = _reached(graph, [graph.entry], closed={gate})
            if start in free or start not in everything:
                around |= (past & everything) - free
        if around:
            reached = ", ".join(map(repr, sorted(around)))
            return f"the way from {start!r} to {target!r} would reach {reached} around the gate {gate!r}"
    return None


def _refuse_node(graph: PromptGraph, mutation: GraphMutation) -> str | None:
    if ERROR in (mutation.node_name, mutation.node_config.get("name")):
        return f"a node {ERROR!r} takes every failure, that of a gate as well; it cannot be added while the graph runs"
    return None


def _refuse_removal(graph: PromptGraph, gates: set[str], start: str, shown: str) -> str | None:
    if start in gates:
        return f"{shown} cannot be removed: {start!r} is a gate"
    behind = sorted(_reached(graph, [start]) & gates)
    if behind:
        return f"{shown} cannot be removed: it leads to the gate {behind[0]!r}"
    return None


def _gates(graph: PromptGraph) -> set[str]:
    return {name for name, node in graph.nodes.items() if is_gate(node)}


def _reached(graph: PromptGraph, starts: Iterable[str | None], closed: Iterable[str] = ()) -> set[str]:
    """Return what can be reached; a closed node is reached, and nothing beyond it."""
    shut = set(closed)
    reached: set[str] = set()
    waiting = [name for name in starts if name is not None]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if name not in shut:
            waiting += _ways(graph, name)
    return reached


def _ways(graph: PromptGraph, name: str) -> set[str]:
    if not graph.has_node(name):
        return set()
    node = graph.get_node(name)
    edges = graph.get_edges_from(name)
    loop = graph.loop_limit(name)
    targets = getattr(node, "targets", None)
    found = {edge.to_node for edge in edges}
    found |= set((targets() if targets is not None else getattr(node, "transitions", None) or {}).values())
    found |= {loop.exit_to} if loop else set()
    leads_on = any(edge.condition is None for edge in edges) or getattr(node, "default_next", None) is not None
    return found if leads_on else found | {END}
