"""What the engine keeps while one run goes on."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

from graphwright.engine.base import NodeContext
from graphwright.engine.state import ExecutionReport, GraphState, NodeResult
from graphwright.exceptions import GraphExecutionError, GraphStoppedError

__all__ = ["GraphRun", "Stop"]


@dataclass(slots=True)
class Stop:
    """Why a run ended before its graph led to the end."""

    kind: Literal["limit", "hook"]
    reason: str
    limit: int = 0
    stopped_by: str = ""
    raises: type[GraphStoppedError] = GraphStoppedError
    """What a run raises that a hook ended before there was an answer."""


class GraphRun:
    """One run of one graph."""

    stop: Stop | None = None
    last: NodeResult | None = None
    mutations = 0
    guards_passed = 0
    guards_failed = 0

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
