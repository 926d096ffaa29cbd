"""Run nodes and graphs inside a run: with its hooks, its limits, its usage, and events that say where they belong.

Everything that runs children goes through here: parallel and looping nodes, retries, subgraphs, the steps that an
autonomous agent chooses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from copy import copy, deepcopy
from typing import Any, TypeVar, cast

from graphwright._internal.aio import settle
from graphwright.engine._finish import finish
from graphwright.engine._loop import traverse
from graphwright.engine._recorded import recorded_visit
from graphwright.engine._run import GraphRun
from graphwright.engine._shares import SpentShare, UsageShare
from graphwright.engine._step import visit
from graphwright.engine._transition import SAME_NODE
from graphwright.engine.base import NodeContext
from graphwright.engine.graph import PromptGraph
from graphwright.engine.journal import AnswerRefused
from graphwright.engine.result import RunResult
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import GraphExecutionError, GraphIterationLimitError
from graphwright.interrupts import Interrupted
from graphwright.run_scope import run_scope

__all__ = ["copy_state", "run_child", "run_child_graph", "take_figures", "together"]

T = TypeVar("T")


async def run_child(node: Any, state: GraphState, context: NodeContext, config: Any, *, name: str = "") -> NodeResult:
    """Run `node` on `state` until it has its result: the whole tool loop, with hooks and events around each visit.

    `state` may be the parent's own, or a copy that nobody else writes. A failure is the result's `error`, with the
    exception as its `cause`; nothing is raised for it. The limits of the node and of the run hold inside.

    Raises:
        GraphIterationLimitError: the run's own limit of node executions fell inside the child.
    """
    outer_node, outer_graph, outer_counts = state.current_node, state.graph, state.node_iterations
    # Edges of the parent's graph are no way on for a child, also where the names are equal.
    state.graph, state.node_iterations = PromptGraph(node.name, nodes=[node]), {}
    child = _child_run(state, context, config, name or node.name)
    limits = context.limits
    own: int = getattr(node, "max_iterations", 10)
    if limits.max_node_iterations is not None:
        own = min(own, limits.max_node_iterations)
    failed = False
    make_visit = visit if context.journal is None else recorded_visit
    token = run_scope.set(child.context) if context.journal is not None else None
    try:
        for _ in range(own):
            _check_steps(child)
            try:
                await make_visit(child, node)
            except GraphExecutionError:
                failed = True
                break
            if context.spent.stop is not None or child.last is None or child.last.transition_reason not in SAME_NODE:
                break
        else:
            failed = True
            _exhausted(child, own)
    finally:
        if token is not None:
            run_scope.reset(token)
        state.current_node, state.graph, state.node_iterations = outer_node, outer_graph, outer_counts
    if child.last is None:
        return NodeResult(node.name, error="a hook ended the run before this step")
    if child.last.error is not None and not failed and context.spent.stop is None:
        # A hook's remark on a step that went well: the history keeps it, and the step has not failed.
        good = copy(child.last)
        good.error = None
        return good
    return child.last


def _check_steps(child: GraphRun) -> None:
    limit = child.context.limits.max_iterations
    if child.context.spent.steps >= limit:
        raise GraphIterationLimitError(
            f"the run reached its limit of {limit} node executions inside {child.context.path!r}",
            limit=limit,
            graph_name=child.state.graph.name,
            node_name=child.context.path,
        )


async def run_child_graph(
    graph: PromptGraph, state: GraphState, context: NodeContext, config: Any, *, name: str
) -> RunResult:
    """Run a whole graph on `state` inside the run, and return its result.

    Raises:
        GraphExecutionError: the graph has no answer; the class says why, as it does for a run of its own.
    """
    outer_node, outer_graph, outer_counts = state.current_node, state.graph, state.node_iterations
    state.graph = graph.copy()
    # The parent may have nodes of the same names; their visits are no visits of these.
    state.node_iterations = {}
    child = _child_run(state, context, config, name)
    token = run_scope.set(child.context) if context.journal is not None else None
    try:
        await traverse(child)
        return finish(child)
    finally:
        if token is not None:
            run_scope.reset(token)
        state.current_node, state.graph, state.node_iterations = outer_node, outer_graph, outer_counts


async def together(children: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run children at the same time, and return their results in order.

    When one fails, the others are cancelled and waited for. When one pauses, the others run to their end first.

    Raises:
        Interrupted: some of them pause; it holds what all of them wait for.
    """
    tasks = [asyncio.create_task(_held(child)) for child in children]
    try:
        ended = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await settle(*tasks)
        raise
    for end in ended:
        if isinstance(end, AnswerRefused):
            raise end  # the others have ended, so that nothing of theirs is unknown
    paused = [item for end in ended if isinstance(end, Interrupted) for item in end.pending]
    if paused:
        raise Interrupted(paused)
    return cast("list[T]", ended)


async def _held(child: Coroutine[Any, Any, T]) -> T | Interrupted | AnswerRefused:
    """Return a signal instead of raising it: it waits until the others have ended."""
    try:
        return await child
    except (Interrupted, AnswerRefused) as signal:
        return signal


def copy_state(state: GraphState) -> GraphState:
    """Return a state that a child can write without anybody else seeing it; messages are shared, never edited."""
    twin = GraphState.of_run(list(state.messages), _copied(state.context), state.graph)
    twin._checked = state._checked
    twin.turn_question, twin.turn_input = state.turn_question, state.turn_input
    for name in ("plan", "completed", "observations", "reflections"):
        held = state.__dict__.get(name)
        if held:
            setattr(twin, name, list(held))
    return twin


def take_figures(state: GraphState, child: GraphState) -> None:
    """Add to the parent's state what a child on a copy of it has used: visits, tokens, tool calls, history."""
    state.visited.extend(child.visited)
    state.node_history.extend(child.node_history)
    state.iteration += child.iteration
    state.total_tokens += child.total_tokens
    state.tool_calls_made += child.tool_calls_made
    for name, ms in child.node_timings.items():
        state.record_node_timing(name, ms)


def _copied(context: dict[str, Any]) -> dict[str, Any]:
    copied = {}
    for key, value in context.items():
        try:
            copied[key] = deepcopy(value)
        except Exception:  # what cannot be copied (a client, a lock) is shared
            copied[key] = value
    return copied


def _child_run(state: GraphState, context: NodeContext, config: Any, name: str) -> GraphRun:
    inner = context.child(name)
    if context.journal is not None:
        inner.usage, inner.spent = UsageShare(context.usage), SpentShare(context.spent)
    configurable = {**config.get("configurable", {}), "graphwright": inner}
    return GraphRun(state, inner, {**config, "configurable": configurable})


def _exhausted(child: GraphRun, own: int) -> None:
    assert child.last is not None
    child.last.error = f"the limit of {own} executions was reached before there was an answer"
