"""`parallel_safe`: consecutive nodes that do not depend on each other run together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine._transition import error_route, next_node
from graphwright.engine.flags.skip_on_error import after_failure
from graphwright.engine.state import GraphState, NodeFlag, NodeResult

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun

__all__ = ["group_from", "run_together"]


def group_from(run: GraphRun, node: Any) -> list[Any]:
    """Return the nodes that can run together with `node`, in graph order; fewer than two means none.

    They carry the flag, are joined only by `always` edges, and none reads a context key that another writes. Stateful
    nodes and gates run alone.
    """
    group: list[Any] = []
    current = node
    while _may_join(current, group) and run.state.node_iterations.get(current.name, 0) < current.max_iterations:
        group.append(current)
        onward = _only_way(run, current)
        if onward is None:
            break
        current = onward
    return group


def _may_join(node: Any, group: list[Any]) -> bool:
    flags: frozenset[NodeFlag] = getattr(node, "flags", frozenset())
    alone = NodeFlag.STATEFUL in flags or NodeFlag.REQUIRES_HUMAN in flags or getattr(node, "is_gate", False)
    if NodeFlag.PARALLEL_SAFE not in flags or alone:
        return False
    if node in group or not _declares_reads(node):
        return False
    return all(not (_reads(node) & _writes(other) or _writes(node) & _reads(other)) for other in group)


def _declares_reads(node: Any) -> bool:
    """Whether it can be known what the node reads: a prompt node says it, other code says it in its metadata."""
    return hasattr(node, "input_keys") or "reads" in getattr(node, "metadata", {})


def _reads(node: Any) -> set[str]:
    inherited = getattr(node, "inherit_context_from", None)
    named = {*getattr(node, "input_keys", ()), *getattr(node, "context_layers", ()), *node.metadata.get("reads", ())}
    return named | ({f"{inherited}_output"} if inherited else set())


def _writes(node: Any) -> set[str]:
    key = getattr(node, "output_key", None)
    return {f"{node.name}_output", *node.metadata.get("writes", ())} | ({key} if key else set())


def _only_way(run: GraphRun, node: Any) -> Any | None:
    graph = run.state.graph
    edges = graph.get_edges_from(node.name)
    if len(edges) != 1 or edges[0].condition is not None or node.transitions:
        return None
    target = edges[0].to_node
    return graph.get_node(target) if graph.has_node(target) else None


async def run_together(run: GraphRun, group: list[Any]) -> str:
    """Run the nodes on copies of the state, merge them in graph order, and return the node after the last.

    A node that fails takes its own error route; what stands before it in graph order is merged.

    Raises:
        GraphExecutionError: one of them failed and nothing takes the failure, or the run's limit fell inside.
    """
    if run.context.journal is None:
        return await _run_group(run, group)
    from graphwright.engine._recorded import enter, leave

    entered = enter(run, group[0], "+".join(node.name for node in group))
    if isinstance(entered, str):
        return entered
    mark, frame = entered
    next_name = await _run_group(run, group)
    leave(run, group[0], frame, mark, next_name)
    return next_name


async def _run_group(run: GraphRun, group: list[Any]) -> str:
    from graphwright.engine._children import copy_state, run_child, take_figures, together

    state = run.state
    copies = [copy_state(state) for _ in group]
    before = copy_state(state)
    results = await together(
        run_child(node, copy, run.context, run.config, name=node.name) for node, copy in zip(group, copies, strict=True)
    )
    for node, copy, result in zip(group, copies, results, strict=True):
        state.increment_node_iteration(node.name)
        take_figures(state, copy)
        run.last = result
        if result.error is not None:
            return _after_failure(run, node, result)
        _merge(state, copy, before)
    return next_node(state.graph, group[-1], results[-1])


def _after_failure(run: GraphRun, node: Any, result: NodeResult) -> str:
    onward = None
    if NodeFlag.CRITICAL not in node.flags:
        onward = error_route(run.state.graph, node, result) or after_failure(run.state, node, result)
    if onward is None:
        raise run.error(result.error or "", node_name=node.name, cause=result.cause)
    result.error_recovered = True
    result.transition_reason = "error"
    return onward


def _merge(state: GraphState, copy: GraphState, before: GraphState) -> None:
    """Take over what a node wrote into its copy."""
    state.messages.extend(copy.messages[len(before.messages) :])
    written = {k: v for k, v in copy.context.items() if k not in before.context or before.context[k] != v}
    state.context.update(written)
    for name in ("observations", "reflections", "completed"):
        known = getattr(before, name)
        getattr(state, name).extend(entry for entry in getattr(copy, name) if entry not in known)
    if copy.plan != before.plan:
        state.plan = list(copy.plan)
