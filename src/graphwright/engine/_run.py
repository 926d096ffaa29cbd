"""What the engine keeps while one run goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

from graphwright.engine.base import NodeContext
from graphwright.engine.hooks import Hooks
from graphwright.engine.state import ExecutionReport, GraphState, NodeResult
from graphwright.exceptions import GraphExecutionError

__all__ = ["GraphRun", "Stop"]


@dataclass(slots=True)
class Stop:
    """Why a run ended before its graph led to the end."""

    kind: Literal["limit", "hook"]
    reason: str
    limit: int = 0
    stopped_by: str = ""


@dataclass(slots=True, eq=False)
class GraphRun:
    """One run of one graph."""

    state: GraphState
    context: NodeContext
    config: dict[str, Any]
    hooks: Hooks
    last_input: Any
    """The last message of the input."""
    allow_mutation: bool = True
    started: float = field(default_factory=perf_counter)
    stop: Stop | None = None
    note: str | None = None
    """A remark of a hook on a node that succeeded."""
    last: NodeResult | None = None
    mutations: int = 0
    guards_passed: int = 0
    guards_failed: int = 0

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
