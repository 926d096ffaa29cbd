"""The traversal of a graph: one loop, flat in the length of the run."""

from __future__ import annotations

import logging
from typing import Any

from graphwright.engine._recorded import recorded_visit
from graphwright.engine._run import GraphRun, Stop
from graphwright.engine._step import visit
from graphwright.engine._transition import SAME_NODE, exhausted_route
from graphwright.engine.edges import END
from graphwright.engine.flags.parallel_safe import group_from, run_together
from graphwright.engine.state import NodeFlag

__all__ = ["traverse"]

logger = logging.getLogger(__name__)


async def traverse(run: GraphRun) -> None:
    """Visit nodes until the run ends, and leave in `run.stop` why it ended when it did not end by itself.

    Raises:
        GraphExecutionError: a node failed and nothing took the failure, or a node led to one that does not exist.
    """
    state, graph, limits, spent = run.state, run.state.graph, run.context.limits, run.context.spent
    current: str = graph.entry
    redirects = 0
    make_visit = visit if run.context.journal is None else recorded_visit
    while current != END:
        node = graph._nodes.get(current)
        if node is None:
            raise run.error(
                f"the next node {current!r} does not exist", node_name=run.last.node_name if run.last else current
            )
        if spent.steps >= limits.max_iterations:
            run.stop = Stop(
                "limit", f"the run's limit of {limits.max_iterations} node executions", limits.max_iterations
            )
            return
        allowed = _allowed(run, node)
        if state.node_iterations.get(current, 0) >= allowed:
            redirects += 1
            onward = _onward(run, node, redirects)
            if onward is None or (onward == END and _in_mid_turn(run)):
                run.stop = Stop("limit", f"the limit of {allowed} executions of node {current!r}", allowed)
                return
            current = onward
            continue
        redirects = 0
        flags = getattr(node, "flags", None)
        if flags and NodeFlag.PARALLEL_SAFE in flags and len(group := group_from(run, node)) > 1:
            current = await run_together(run, group)
        else:
            current = await make_visit(run, node)
        if spent.stop is not None:
            run.stop = spent.stop
            return


def _in_mid_turn(run: GraphRun) -> bool:
    """Whether the last model has not seen yet what it has to answer: ending here would pass a tool result for one."""
    return run.last is not None and run.last.transition_reason in SAME_NODE


def _allowed(run: GraphRun, node: Any) -> int:
    own: int = getattr(node, "max_iterations", 10)
    ceiling = run.context.limits.max_node_iterations
    loops = run.state.graph._loops
    if loops:
        loop = loops.get(node.name)
        if loop is not None and loop.max_iterations < own:
            own = loop.max_iterations
    return own if ceiling is None or own < ceiling else ceiling


def _onward(run: GraphRun, node: Any, redirects: int) -> str | None:
    graph = run.state.graph
    if redirects > len(graph._nodes):
        return None
    loop = graph.loop_limit(node.name)
    onward = loop.exit_to if loop is not None else exhausted_route(graph, node)
    if onward is not None:
        logger.info("node %r has used its executions; the run goes on at %r", node.name, onward)
    return onward
