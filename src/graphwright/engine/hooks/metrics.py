"""Count what nodes do, over all runs of the engines that share the hook."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState, NodeResult

__all__ = ["MetricsHook"]


class MetricsHook:
    """Adds up calls, tokens, milliseconds, errors and tool calls by name of the node, over all runs.

    Use one hook for each run to have the figures of one run.
    """

    def __init__(self) -> None:
        self.metrics: dict[str, dict[str, Any]] = {}
        """By node: `{calls, total_tokens, total_duration_ms, errors, tool_calls, tool_calls_failed}`."""
        self._lock = Lock()

    async def pre_node(self, node: Any, state: GraphState) -> None:
        """Make the entry of a node, so that one that never ends is seen as well."""
        with self._lock:
            self._entry(node.name)

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        """Add the figures of a visit. A denied or failed tool call counts in `tool_calls` and `tool_calls_failed`."""
        with self._lock:
            entry = self._entry(node.name)
            entry["calls"] += 1
            entry["total_tokens"] += result.total_tokens
            entry["total_duration_ms"] += result.duration_ms
            entry["errors"] += result.error is not None
            entry["tool_calls"] += len(result.tool_calls)
            entry["tool_calls_failed"] += result.tool_calls_failed

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return a copy of the figures, which later runs do not change."""
        with self._lock:
            return {name: dict(entry) for name, entry in self.metrics.items()}

    def reset(self) -> None:
        """Forget all figures."""
        with self._lock:
            self.metrics.clear()

    def _entry(self, name: str) -> dict[str, Any]:
        entry = self.metrics.get(name)
        if entry is None:
            entry = self.metrics[name] = {
                "calls": 0,
                "total_tokens": 0,
                "total_duration_ms": 0.0,
                "errors": 0,
                "tool_calls": 0,
                "tool_calls_failed": 0,
            }
        return entry
