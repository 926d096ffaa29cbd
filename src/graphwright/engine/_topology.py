"""Find what is wrong with a graph before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.edges import END, ERROR

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph

__all__ = ["errors", "findings"]


def errors(graph: PromptGraph) -> list[str]:
    """Return what keeps the graph from running."""
    nodes = graph.nodes
    problems = []
    if graph.entry is None:
        problems.append("no entry is set; call set_entry(name) or give one node is_entry=True")
    elif graph.entry not in nodes:
        problems.append(f"the entry {graph.entry!r} is no node of the graph")
    for edge in graph.edges:
        problems += [
            f"the edge {edge.from_node!r} -> {edge.to_node!r} names {name!r}, which is no node"
            for name in dict.fromkeys((edge.from_node, edge.to_node))
            if name not in nodes and not (name == END and name == edge.to_node)
        ]
    for name, node in nodes.items():
        problems += [
            f"{what} of node {name!r} leads to {target!r}, which is no node"
            for what, target in _targets(node).items()
            if target not in nodes and target != END
        ]
        limit = graph.loop_limit(name)
        if limit and limit.exit_to not in nodes and limit.exit_to != END:
            problems.append(f"the loop at {name!r} exits to {limit.exit_to!r}, which is no node")
    return problems


def findings(graph: PromptGraph) -> list[str]:
    """Return what is probably a mistake, although the graph runs."""
    nodes = graph.nodes
    if graph.entry not in nodes:
        return []
    reached = _reachable(graph)
    found = [f"node {name!r} cannot be reached from the entry {graph.entry!r}" for name in nodes if name not in reached]
    for name, node in nodes.items():
        leads_on = graph.get_edges_from(name) or _targets(node) or graph.loop_limit(name)
        if not leads_on and not getattr(node, "is_terminal", False) and name != ERROR and len(nodes) > 1:
            found.append(f"node {name!r} is a dead end: nothing leads on from it, not even to {END!r}")
    return found


def _reachable(graph: PromptGraph) -> set[str]:
    nodes = graph.nodes
    starts = [graph.entry, ERROR]
    starts += [name for name, node in nodes.items() if getattr(node, "is_terminal", False)]
    for node in nodes.values():
        chosen = getattr(node, "action_targets", None)
        starts += list(chosen()) if chosen is not None else []
    reached: set[str] = set()
    waiting = [name for name in starts if name in nodes]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        limit = graph.loop_limit(name)
        onward = [edge.to_node for edge in graph.get_edges_from(name)]
        onward += _targets(nodes[name]).values()
        onward += [limit.exit_to] if limit else []
        waiting += [target for target in onward if target in nodes]
    return reached


def _targets(node: Any) -> dict[str, str]:
    targets = getattr(node, "targets", None)
    if targets is not None:
        found: dict[str, str] = targets()
        return found
    return {f"transition {key!r}": name for key, name in (getattr(node, "transitions", None) or {}).items()}
