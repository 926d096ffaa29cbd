"""Change the graph of a run: within its budget, past the hooks, and never half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.condition import parse_condition
from graphwright.engine.edges import END
from graphwright.engine.state import GraphMutation
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph

__all__ = ["apply"]

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
