"""One visit of a node: hooks around its `execute`, a failure turned into its route, the state brought up to date."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any

from graphwright.engine._mutation import act as _act
from graphwright.engine._mutation import mutate as _mutate
from graphwright.engine._run import GraphRun, Stop
from graphwright.engine._transition import annotated_route, error_route, next_node
from graphwright.engine.edges import END
from graphwright.engine.flags import ACTIVE, execute
from graphwright.engine.flags.skip_on_error import after_failure
from graphwright.engine.state import NodeFlag, NodeResult
from graphwright.exceptions import GraphExecutionError, GraphwrightError, ModelError
from graphwright.run_events import NodeFailed, NodeFinished, NodeStarted

__all__ = ["visit"]

logger = logging.getLogger(__name__)


async def visit(run: GraphRun, node: Any) -> str:
    """Run a node once and return the name of the next.

    Raises:
        GraphExecutionError: the node failed and nothing takes the failure.
    """
    state, hooks, emit = run.state, run.hooks, run.context.emit
    name: str = node.name
    state.current_node = name
    state.visited.append(name)
    state.iteration += 1
    run.context.spent.steps += 1
    count = state.node_iterations.get(name, 0) + 1
    state.node_iterations[name] = count
    before = len(state.messages)
    if emit is not None:
        await emit(NodeStarted(name, _type_of(node), count, run_id=run.context.run_id, path=run.context.path))
    started = perf_counter()
    try:
        if hooks.pre_node:
            redirected_by = await hooks.before_node(node, state)
            if redirected_by is not None:
                return _redirect(run, node, redirected_by, None)
        flags = getattr(node, "flags", None)
        if flags and not flags.isdisjoint(ACTIVE):
            result = await execute(run, node)
        else:
            result = await node.execute(state, run.config)
        if not isinstance(result, NodeResult):
            raise GraphwrightError(f"execute() of node {name!r} returned {type(result).__name__}, not a NodeResult")
    except Exception as error:  # whatever a node, or a hook's veto, raises becomes the node's failure
        result = _failed(error)
    if not result.node_name:
        result.node_name = name
    if not result.node_type:
        result.node_type = _type_of(node)
    result.iteration = count
    result.duration_ms = elapsed = (perf_counter() - started) * 1000
    if not getattr(node, "keeps_messages", False):
        _take_messages(run, result, before)
    failed = result.error is not None
    redirect = await _after_failure(run, node, result) if failed else None
    if getattr(node, "guards", None):
        run.guards_passed += len(result.guards_passed)
        run.guards_failed += len(result.guards_failed)
    if getattr(node, "may_mutate", True) and result.graph_mutations:
        await _mutate(run, node, result.graph_mutations)
    if type(result.output) is dict and "_graph_action" in result.output and not failed:
        redirect = await _act(run, node, result.output)
    timings = state.node_timings
    timings[name] = timings.get(name, 0.0) + elapsed
    state.total_tokens += result.total_tokens
    stopped_by = None
    if hooks.post_node:
        result, stopped_by = await hooks.after_node(node, result, state)
    state.node_history.append(result)
    run.last = result
    next_name = _choose(run, node, result, failed=failed, redirect=redirect, stopped_by=stopped_by)
    if emit is not None:
        context = run.context
        if failed:
            await emit(NodeFailed(name, result.error or "", result, run_id=context.run_id, path=context.path))
        else:
            await emit(NodeFinished(name, result, state.messages, run_id=context.run_id, path=context.path))
    if next_name is None:
        if isinstance(result.cause, GraphExecutionError):
            raise result.cause  # of a graph inside this one: its class says more than a new one would
        raise run.error(result.error or "", node_name=name, cause=_root(result.cause))
    return next_name


def _choose(
    run: GraphRun, node: Any, result: NodeResult, *, failed: bool, redirect: str | None, stopped_by: str | None
) -> str | None:
    """Return the next node, or `None` when the node failed and nothing takes the failure."""
    graph = run.state.graph
    if stopped_by is not None:
        return _redirect(run, node, stopped_by, result)
    if failed:
        flags = getattr(node, "flags", ())
        if flags and NodeFlag.CRITICAL in flags:
            return None
        onward = redirect or error_route(graph, node, result) or after_failure(run.state, node, result)
        if onward is not None:
            result.error_recovered = True
            result.transition_reason = "error"
        return onward
    if result.error is not None:
        # A hook's remark on a node that succeeded: it may change the way, never turn an answer into an exception.
        run.context.spent.note = result.error
        onward = annotated_route(graph, node)
        if onward is not None:
            result.transition_reason = "error"
            return onward
    if redirect is not None:
        result.transition_reason = "graph action"
        return redirect
    return next_node(graph, node, result)


def _redirect(run: GraphRun, node: Any, hook_name: str, result: NodeResult | None) -> str:
    target = run.state.current_node
    if target == END:
        noted = run.state._stop_reason or (result.error if result is not None else None)
        reason, raises = noted or f"stopped by {hook_name}", run.hooks.stop_error(hook_name)
        run.context.spent.stop = Stop("hook", reason, stopped_by=hook_name, raises=raises)
    elif result is not None:
        result.transition_reason = f"redirected by {hook_name}"
    return target


def _failed(error: Exception) -> NodeResult:
    shown = str(error) or type(error).__name__
    if not isinstance(error, GraphwrightError) and str(error):
        shown = f"{type(error).__name__}: {error}"
    result = NodeResult(error=shown)
    result.blame(error)
    return result


def _root(error: BaseException | None) -> BaseException | None:
    """Return the provider's exception behind a model error, else the exception itself."""
    if isinstance(error, ModelError) and error.__cause__ is not None:
        return error.__cause__
    return error


async def _after_failure(run: GraphRun, node: Any, result: NodeResult) -> str | None:
    if not run.hooks.on_error:
        return None
    cause = result.cause or GraphwrightError(result.error or "the node failed")
    return await run.hooks.redirect_on_error(node, cause, run.state)


def _take_messages(run: GraphRun, result: NodeResult, before: int) -> None:
    """Make the state and the result agree on which messages a node added."""
    messages = run.state.messages
    added = messages[before:]
    reported = result.messages_added
    if reported:
        present = {id(message) for message in added}
        missing = [message for message in reported if id(message) not in present]
        messages.extend(missing)
        added = messages[before:]
    if added:
        result.messages_added = added


def _type_of(node: Any) -> str:
    return str(getattr(node, "node_type", "") or type(node).__name__.lower())
