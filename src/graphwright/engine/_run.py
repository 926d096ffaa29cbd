"""What the engine keeps while one run goes on."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from graphwright.engine.base import NodeContext
from graphwright.engine.state import ExecutionReport, GraphState, NodeResult
from graphwright.exceptions import GraphExecutionError
from graphwright.run_scope import Stop

__all__ = ["GraphRun", "Stop"]


class GraphRun:
    """One run of one graph."""

    stop: Stop | None = None
    last: NodeResult | None = None
    mutations = 0
    guards_passed = 0
    guards_failed = 0
    kept: dict[str, str] | None = None
    """What the log holds of the context: a fingerprint by key. Only in a run with a log."""

    def __init__(self, state: GraphState, context: NodeContext, config: dict[str, Any]) -> None:
        self.state = state
        self.context = context
        self.config = config
        self.hooks = context.hooks
        self.last_input = state.messages[-1]
        self.started = perf_counter()

    def report(self, error: str | None = None) -> ExecutionReport:
        """Return the figures of the run so far."""
        state = self.state
        return ExecutionReport(
            state.iteration,
            state.total_tokens,
            (perf_counter() - self.started) * 1000,
            state.visited,
            state.tool_calls_made,
            self.mutations,
            self.guards_passed,
            self.guards_failed,
            error,
        )

    def error(self, reason: str, *, node_name: str, cause: BaseException | None = None) -> GraphExecutionError:
        """Return the error of a run that failed at a node."""
        name = self.state.graph.name
        error = GraphExecutionError(
            f"graph {name!r} failed at node {node_name!r}: {reason}", graph_name=name, node_name=node_name, error=reason
        )
        error.__cause__ = cause
        return error
