"""Edges between nodes, and the conditions that open them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graphwright.engine.state import NodeResult

__all__ = ["END", "ERROR", "Edge", "EdgeCondition"]

END = "__end__"
"""The name that ends a run wherever a node name is asked for."""

ERROR = "__error__"
"""A node of this name takes every failure that has no route of its own."""

ConditionKind = Literal["tool_called", "no_tool_call", "output", "error", "confidence", "guard_failed"]


@dataclass(frozen=True, slots=True)
class EdgeCondition:
    """A condition that can be compared and written down, as the `on_*` methods of a graph make them."""

    kind: ConditionKind
    key: str = ""
    value: Any = True
    min_confidence: float = 0.0

    def __call__(self, result: NodeResult) -> bool:
        """Return whether the edge is open after this result."""
        return _CHECKS[self.kind](self, result)


@dataclass
class Edge:
    """A way from one node to another."""

    from_node: str
    to_node: str
    condition: Callable[[NodeResult], bool] | None = None
    """When the way is open; `None` is always."""
    label: str = ""
    priority: int = 0
    """Of several open edges the highest wins; of equal ones a conditional edge wins, then the one added first."""

    @property
    def is_error_route(self) -> bool:
        """Whether the edge was made by `on_error`."""
        return isinstance(self.condition, EdgeCondition) and self.condition.kind == "error"

    @property
    def is_guard_route(self) -> bool:
        """Whether the edge was made by `on_guard_fail`."""
        return isinstance(self.condition, EdgeCondition) and self.condition.kind == "guard_failed"


def _output(condition: EdgeCondition, result: NodeResult) -> bool:
    return isinstance(result.output, Mapping) and bool(result.output.get(condition.key) == condition.value)


def _confidence(condition: EdgeCondition, result: NodeResult) -> bool:
    if not isinstance(result.output, Mapping):
        return False
    value = result.output.get("confidence")
    if isinstance(value, bool) or value is None:
        return False
    try:
        return float(value) >= condition.min_confidence
    except (TypeError, ValueError):
        return False


_CHECKS: dict[str, Callable[[EdgeCondition, NodeResult], bool]] = {
    "tool_called": lambda _, result: bool(result.tool_calls),
    "no_tool_call": lambda _, result: not result.tool_calls,
    "error": lambda _, result: result.error is not None,
    "guard_failed": lambda _, result: bool(result.guards_failed),
    "output": _output,
    "confidence": _confidence,
}
