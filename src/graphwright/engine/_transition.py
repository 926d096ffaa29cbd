"""Choose the node after a visit: one order of rules, and nothing that the graph's author did not declare."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphwright.engine.edges import END, ERROR, Edge
from graphwright.engine.state import NodeResult

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph

__all__ = ["ANSWER_RETRY", "SAME_NODE", "TOOL_LOOP", "annotated_route", "error_route", "exhausted_route", "next_node"]

logger = logging.getLogger(__name__)

TOOL_LOOP = "tool_calls_present"
"""The `transition_reason` of a visit that made tool calls: the same node runs again and sees their results."""

ANSWER_RETRY = "answer_does_not_fit"
"""The `transition_reason` of a visit whose answer does not fit its schema: the same node asks again."""

SAME_NODE = frozenset({TOOL_LOOP, ANSWER_RETRY})
"""The reasons for which the same node runs again."""
_ROUTE_KEYS = ("_next", "route", "next_step", "goto")


def next_node(graph: PromptGraph, node: Any, result: NodeResult) -> str:
    """Return where a visit that went well leads.

    In this order: the tool loop, the node's own `next_node`, an output key that matches a transition or a declared
    target, edges by priority, other transitions, `default_next`, the end.
    """
    if result.transition_reason in SAME_NODE:
        return str(node.name)
    if result.next_node is not None:
        return result.next_node
    edges = graph._from.get(node.name, ())
    transitions: Mapping[str, str] = getattr(node, "transitions", None) or {}
    output = result.output
    if type(output) is not str and isinstance(output, Mapping):
        chosen = _named_in_output(output, transitions, edges, node)
        if chosen is not None:
            result.transition_reason = f"output names {chosen!r}"
            return chosen
    for edge in edges:
        if edge.condition is None or _is_open(edge, result):
            result.transition_reason = edge.label or "edge"
            return edge.to_node
    chosen = _matching_transition(output, transitions) if transitions else None
    if chosen is not None:
        result.transition_reason = "transition"
        return chosen
    default = getattr(node, "default_next", None)
    if default is not None:
        result.transition_reason = result.transition_reason or "default_next"
        return str(default)
    return END


def error_route(graph: PromptGraph, node: Any, result: NodeResult) -> str | None:
    """Return where a failed visit leads, or `None` when nothing takes the failure."""
    if result.guards_failed:
        for edge in graph._from.get(node.name, ()):
            if edge.is_guard_route:
                return edge.to_node
    return annotated_route(graph, node) or exhausted_route(graph, node)


def annotated_route(graph: PromptGraph, node: Any) -> str | None:
    """Return the target of the node's `on_error` edge, if it has one."""
    for edge in graph._from.get(node.name, ()):
        if edge.is_error_route:
            return edge.to_node
    return None


def exhausted_route(graph: PromptGraph, node: Any) -> str | None:
    """Return where a node that may not run again leads: its `"error"` transition, else an `__error__` node."""
    target = (getattr(node, "transitions", None) or {}).get("error")
    if target is not None:
        return str(target)
    return ERROR if graph.has_node(ERROR) and node.name != ERROR else None


def _named_in_output(
    output: Mapping[str, Any], transitions: Mapping[str, str], edges: list[Edge] | tuple[()], node: Any
) -> str | None:
    for key in _ROUTE_KEYS:
        value = output.get(key)
        if not isinstance(value, str) or not value:
            continue
        if value in transitions:
            return transitions[value]
        declared = {edge.to_node for edge in edges} | set(transitions.values()) | {getattr(node, "default_next", None)}
        if value in declared:
            return value
    return None


def _matching_transition(output: Any, transitions: Mapping[str, str]) -> str | None:
    if isinstance(output, str):
        word = output.strip()
        return transitions.get(word) if word != "error" else None
    if isinstance(output, Mapping):
        for key, target in transitions.items():
            value = output.get(key)
            if value is True or value == key:
                return target
    return None


def _is_open(edge: Edge, result: NodeResult) -> bool:
    condition = edge.condition
    assert condition is not None
    try:
        return bool(condition(result))
    except Exception:  # a condition of the user's: one that cannot be read is not open
        logger.warning(
            "the condition of the edge %r -> %r raised; the edge is taken as closed",
            edge.from_node,
            edge.to_node,
            exc_info=True,
        )
        return False
