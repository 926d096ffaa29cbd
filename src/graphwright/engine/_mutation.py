"""Change the graph of a run: within its budget, past the hooks, and never half."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from graphwright.engine._gates import refuse_at_gates
from graphwright.engine.condition import parse_condition
from graphwright.engine.edges import END
from graphwright.engine.state import GraphMutation
from graphwright.exceptions import ConfigurationError, NodeNotFoundError
from graphwright.run_events import GraphMutated

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.graph import PromptGraph

__all__ = ["act", "apply", "mutate"]

logger = logging.getLogger(__name__)

ACTIONS = ("add_node", "remove_node", "add_edge", "remove_edge")


def apply(graph: PromptGraph, mutation: GraphMutation) -> None:
    """Make one change to the graph.

    Raises:
        ConfigurationError: the change cannot be made; nothing was changed.
    """
    if mutation.action == "add_node":
        _add_node(graph, mutation)
    elif mutation.action == "remove_node":
        if mutation.node_name == graph.entry:
            raise ConfigurationError(f"node {mutation.node_name!r} is the entry of graph {graph.name!r}; it stays")
        graph.remove_node(mutation.node_name)
    elif mutation.action == "add_edge":
        _add_edge(graph, mutation)
    elif mutation.action == "remove_edge":
        graph.remove_edge(mutation.from_node, mutation.to_node)
    else:
        raise ConfigurationError(f"graph mutation {mutation.action!r} is unknown; use one of {', '.join(ACTIONS)}")


async def mutate(run: GraphRun, node: Any, mutations: list[GraphMutation]) -> None:
    """Make the changes that the code of a node asks for, each by itself; one that is refused is an event."""
    for mutation in mutations:
        refusal = await _refuses(run, mutation)
        if refusal is None:
            refusal = refuse_at_gates(run.state.graph, mutation)
        if refusal is None:
            refusal = _attempt(run, partial(apply, run.state.graph, mutation))
        await _tell(run, node, mutation, refusal)


async def act(run: GraphRun, node: Any, output: Mapping[str, Any]) -> str | None:
    """Do what the output of a node asks for, and return the node that it moves the run to, if it does.

    A refusal is an event, and the next prompt node tells its model why.
    """
    if not run.context.limits.allow_mutation:
        return None
    from graphwright.engine._graph_action import REFUSED, moves, read_action, take_move

    mutation, refusal = read_action(output, node.name)
    moved: list[str] = []
    if refusal is None:
        refusal = await _refuses(run, mutation)
    graph = run.state.graph
    if refusal is None and moves(mutation):
        refusal = _attempt(run, lambda: moved.append(take_move(graph, run.state, node, mutation)))
    elif refusal is None:
        refusal = refuse_at_gates(graph, mutation) or _attempt(run, lambda: apply(graph, mutation))
    if refusal is not None:
        run.state.context[REFUSED] = refusal
    await _tell(run, node, mutation, refusal)
    return moved[0] if moved else None


async def _refuses(run: GraphRun, mutation: GraphMutation) -> str | None:
    limit = run.context.limits.max_mutations
    if not run.context.limits.allow_mutation:
        return "self-modification is off"
    if run.context.spent.mutations >= limit:
        return f"the run has used its {limit} graph changes"
    return await run.hooks.refuses_mutation(mutation, run.state)


def _attempt(run: GraphRun, change: Callable[[], None]) -> str | None:
    try:
        change()
    except (ConfigurationError, NodeNotFoundError) as error:
        return str(error)
    run.mutations += 1
    run.context.spent.mutations += 1
    return None


async def _tell(run: GraphRun, node: Any, mutation: GraphMutation, refusal: str | None) -> None:
    frame = run.context.frame
    if frame is not None and refusal is None and mutation.action in ACTIONS:
        frame.mutations.append(mutation)
    if refusal:
        logger.warning("a change of the graph by node %r was not made: %s", node.name, refusal)
    context = run.context
    if context.emit is not None:
        event = GraphMutated(
            node.name, mutation, refusal is None, refusal or "", run_id=context.run_id, path=context.path
        )
        await context.emit(event)


def _add_node(graph: PromptGraph, mutation: GraphMutation) -> None:
    from graphwright.engine.from_config import node_from_config

    config: dict[str, Any] = dict(mutation.node_config)
    name = config.setdefault("name", mutation.node_name)
    if not name or (mutation.node_name and mutation.node_name != name):
        raise ConfigurationError(
            f"a new node needs one name; node_name is {mutation.node_name!r}, the config says {name!r}"
        )
    if graph.has_node(name):
        raise ConfigurationError(f"graph {graph.name!r} already has a node {name!r}; give the new one another name")
    graph.add_node(node_from_config(config))


def _add_edge(graph: PromptGraph, mutation: GraphMutation) -> None:
    for end, name in (("from_node", mutation.from_node), ("to_node", mutation.to_node)):
        if not graph.has_node(name) and not (end == "to_node" and name == END):
            raise ConfigurationError(f"{end} {name!r} of the new edge is no node of graph {graph.name!r}")
    condition = parse_condition(mutation.condition) if mutation.condition else None
    graph.add_edge(mutation.from_node, mutation.to_node, condition=condition, label=mutation.condition)
