"""A directed graph of nodes: built by hand, copied for each run, checked before it runs."""

from __future__ import annotations

import logging
from bisect import insort_right
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from graphwright.engine import _describe, _topology
from graphwright.engine._pattern_methods import PatternMethods
from graphwright.engine.base import BaseNode, NodeProtocol
from graphwright.engine.edges import END, Edge, EdgeCondition
from graphwright.engine.state import GraphMutation, NodeResult
from graphwright.exceptions import ConfigurationError, NodeNotFoundError

__all__ = ["Edge", "EdgeCondition", "LoopLimit", "PromptGraph"]

logger = logging.getLogger(__name__)


class LoopLimit(NamedTuple):
    """How often a looping node runs at most, and where the run goes then."""

    max_iterations: int
    exit_to: str


def _rank(edge: Edge) -> tuple[int, bool]:
    return -edge.priority, edge.condition is None


class PromptGraph(PatternMethods):
    """Nodes, the edges between them, and the node that a run starts with.

    A run works on its own copy, so a graph can serve any number of runs at once and changes made while it runs
    stay in that run. Nodes are shared by the copies: they are configuration and keep nothing of a run.
    """

    def __init__(self, name: str = "graph", *, nodes: Iterable[NodeProtocol] = (), mode: str = "static") -> None:
        if mode not in ("static", "autonomous"):
            raise ConfigurationError(f"mode {mode!r} of graph {name!r} is unknown; use 'static' or 'autonomous'")
        self.name = name
        self.mode = mode
        self._nodes: dict[str, Any] = {}
        self._edges: list[Edge] = []
        self._from: dict[str, list[Edge]] = {}
        self._known_edges: set[tuple[str, str, object]] = set()
        self._loops: dict[str, LoopLimit] = {}
        self._entry: str | None = None
        self._shared = False
        self._version = object()
        for node in nodes:
            self.add_node(node)

    @property
    def nodes(self) -> dict[str, Any]:
        """All nodes, by name."""
        return dict(self._nodes)

    @property
    def edges(self) -> list[Edge]:
        """All edges, in the order they were added."""
        return list(self._edges)

    @property
    def entry(self) -> str | None:
        """Name of the node that a run starts with."""
        return self._entry

    def add_node(self, node: NodeProtocol) -> PromptGraph:
        """Add a node; one of the same name is replaced, with a warning. The first `is_entry` node is the entry."""
        if isinstance(node, type) or not hasattr(node, "execute") or not hasattr(node, "name"):
            raise ConfigurationError(
                f"{node!r} is no node; give an object with a name and an async execute(state, config)"
            )
        self._own()
        if node.name in self._nodes:
            logger.warning("graph %r already had a node %r; the new one replaces it", self.name, node.name)
        self._nodes[node.name] = node
        if self._entry is None and getattr(node, "is_entry", False):
            self._entry = node.name
        return self

    def remove_node(self, name: str) -> PromptGraph:
        """Remove a node and every edge from it or to it.

        Raises:
            NodeNotFoundError: there is no such node.
        """
        self.get_node(name)
        self._own()
        del self._nodes[name]
        self._loops.pop(name, None)
        self._set_edges([edge for edge in self._edges if name not in (edge.from_node, edge.to_node)])
        if self._entry == name:
            self._entry = None
        return self

    def get_node(self, name: str) -> Any:
        """Return the node of that name.

        Raises:
            NodeNotFoundError: there is none; the message lists those that there are.
        """
        try:
            return self._nodes[name]
        except KeyError:
            known = ", ".join(map(repr, self._nodes)) or "none yet"
            raise NodeNotFoundError(f"graph {self.name!r} has no node {name!r}; its nodes: {known}") from None

    def has_node(self, name: str) -> bool:
        """Return whether there is a node of that name."""
        return name in self._nodes

    def set_entry(self, node_name: str) -> PromptGraph:
        """Say which node a run starts with.

        Raises:
            NodeNotFoundError: there is no such node.
        """
        self.get_node(node_name)
        self._own()
        self._entry = node_name
        return self

    def add_edge(
        self,
        from_node: str,
        to_node: str,
        *,
        condition: Callable[[NodeResult], bool] | None = None,
        label: str = "",
        priority: int = 0,
    ) -> PromptGraph:
        """Add an edge. A node that does not exist yet is only warned about: it may be added later."""
        if condition is not None and not callable(condition):
            raise ConfigurationError(
                f"condition {condition!r} of the edge {from_node!r} -> {to_node!r} is not callable"
            )
        for name in (from_node, to_node):
            if name not in self._nodes and name != END:
                logger.warning("graph %r: an edge names %r, which is no node yet", self.name, name)
        self._own()
        self._insert(Edge(from_node, to_node, condition, label, priority))
        return self

    def remove_edge(self, from_node: str, to_node: str) -> PromptGraph:
        """Remove every edge from one node to another.

        Raises:
            ConfigurationError: there is no such edge.
        """
        kept = [edge for edge in self._edges if (edge.from_node, edge.to_node) != (from_node, to_node)]
        if len(kept) == len(self._edges):
            raise ConfigurationError(f"graph {self.name!r} has no edge {from_node!r} -> {to_node!r} to remove")
        self._own()
        self._set_edges(kept)
        return self

    def always(self, from_node: str, to_node: str) -> PromptGraph:
        """Add an edge that is always open."""
        return self.add_edge(from_node, to_node)

    def when(
        self,
        from_node: str,
        to_node: str,
        condition: Callable[[NodeResult], bool],
        label: str = "",
        *,
        priority: int = 0,
    ) -> PromptGraph:
        """Add an edge that is open when `condition(result)` is true."""
        return self.add_edge(from_node, to_node, condition=condition, label=label, priority=priority)

    def sequential(self, *node_names: str) -> PromptGraph:
        """Chain nodes one after another."""
        for from_node, to_node in pairwise(node_names):
            self.always(from_node, to_node)
        return self

    def on_tool_call(self, from_node: str, to_node: str) -> PromptGraph:
        """Add an edge that is open when the node made tool calls."""
        return self.add_edge(from_node, to_node, condition=EdgeCondition("tool_called"), label="tool_called")

    def on_no_tool_call(self, from_node: str, to_node: str) -> PromptGraph:
        """Add an edge that is open when the node made no tool call: it gave its answer."""
        return self.add_edge(from_node, to_node, condition=EdgeCondition("no_tool_call"), label="no_tools")

    def on_output(self, from_node: str, to_node: str, key: str, value: Any = True) -> PromptGraph:
        """Add an edge that is open when `output[key] == value`."""
        condition = EdgeCondition("output", key=key, value=value)
        return self.add_edge(from_node, to_node, condition=condition, label=f"{key}={value}")

    def on_confidence(self, from_node: str, to_node: str, min_confidence: float = 0.7) -> PromptGraph:
        """Add an edge that is open when `output["confidence"]` is a number of at least `min_confidence`."""
        condition = EdgeCondition("confidence", min_confidence=min_confidence)
        return self.add_edge(from_node, to_node, condition=condition, label=f"confidence>={min_confidence}")

    def on_error(self, from_node: str, to_node: str) -> PromptGraph:
        """Add the edge that a failure of the node takes."""
        return self.add_edge(from_node, to_node, condition=EdgeCondition("error"), label="error")

    def on_guard_fail(self, from_node: str, to_node: str) -> PromptGraph:
        """Add the edge that is taken when a guard of the node fails."""
        return self.add_edge(from_node, to_node, condition=EdgeCondition("guard_failed"), label="guard_failed")

    def loop_until(
        self, node_name: str, exit_to: str, *, condition: Callable[[NodeResult], bool], max_iterations: int = 5
    ) -> PromptGraph:
        """Let a node run again until `condition(result)` is true, then go to `exit_to`.

        It runs at most `max_iterations` times in a run; after that the run goes to `exit_to` all the same.
        """
        if max_iterations < 1:
            raise ConfigurationError(
                f"max_iterations of the loop at {node_name!r} is {max_iterations!r}; use at least 1"
            )
        self.add_edge(node_name, exit_to, condition=condition, label="loop exit", priority=10)
        self.add_edge(node_name, node_name, label="loop")
        self._loops[node_name] = LoopLimit(max_iterations, exit_to)
        return self

    def loop_limit(self, node_name: str) -> LoopLimit | None:
        """Return `(max_iterations, exit_to)` as `loop_until` set it, or `None`."""
        return self._loops.get(node_name)

    def get_edges_from(self, node_name: str) -> list[Edge]:
        """Return the edges that leave a node, in the order in which they are tried."""
        return list(self._from.get(node_name, ()))

    def apply_mutation(self, mutation: GraphMutation) -> None:
        """Change the graph.

        Raises:
            ConfigurationError: the change cannot be made; the graph is as it was.
        """
        from graphwright.engine._mutation import apply

        apply(self, mutation)

    def copy(self) -> PromptGraph:
        """Return a graph that can be changed without changing this one. Nodes are shared."""
        twin = object.__new__(type(self))
        self._shared = True
        twin.__dict__ = self.__dict__.copy()
        return twin

    def validate(self) -> list[str]:
        """Return everything that is wrong with the graph, one line each.

        Errors keep it from running: no entry, or a node name anywhere that is no node. Nodes that cannot be
        reached and nodes with no way out are findings: the graph runs.
        """
        return [*_topology.errors(self), *_topology.findings(self)]

    def to_config(self, *, allow_imports: Iterable[str] = ()) -> dict[str, Any]:
        """Return the graph as plain data, from which `from_config` makes an equal one.

        Raises:
            GraphSerializationError: something of the graph is no data; the message names it.
        """
        from graphwright.engine.from_config import graph_to_config

        return graph_to_config(self, allow_imports=allow_imports)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, allow_imports: Iterable[str] = ()) -> PromptGraph:
        """Return the graph that plain data describes; nothing it names is imported unless a pattern allows it.

        Raises:
            ConfigurationError: a key is unknown, or a value does not fit.
        """
        from graphwright.engine.from_config import graph_from_config

        return graph_from_config(config, allow_imports=allow_imports)

    def describe(self) -> str:
        """Return the graph as a small tree of text."""
        return _describe.as_text(self)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid diagram."""
        return _describe.as_mermaid(self)

    def __repr__(self) -> str:
        return f"PromptGraph({self.name!r}, {len(self._nodes)} nodes, {len(self._edges)} edges, entry={self._entry!r})"

    @classmethod
    def from_pool(cls, nodes: Iterable[BaseNode], *, system_prompt: str = "", name: str = "autonomous") -> PromptGraph:
        """Return a graph in which the model chooses the next of `nodes` at every step."""
        from graphwright._internal.features import feature

        autonomous: Any = feature("graphwright.engine.nodes", "AutonomousNode", "PromptGraph.from_pool")
        pool = list(nodes)
        entries = [node.name for node in pool if node.is_entry]
        agent = autonomous(
            "orchestrator",
            node_pool=pool,
            planner_instructions=system_prompt,
            entry_node=entries[0] if entries else None,
            terminal_nodes=[node.name for node in pool if node.is_terminal] or None,
        )
        graph = cls(name, mode="autonomous")
        graph.add_node(agent)
        return graph.set_entry(agent.name)

    def _insert(self, edge: Edge) -> None:
        key = (edge.from_node, edge.to_node, edge.condition)
        if _hashable(key):
            if key in self._known_edges:
                logger.warning("graph %r: the edge %r -> %r was added twice", self.name, edge.from_node, edge.to_node)
            self._known_edges.add(key)
        self._edges.append(edge)
        insort_right(self._from.setdefault(edge.from_node, []), edge, key=_rank)

    def _set_edges(self, edges: list[Edge]) -> None:
        self._edges, self._from, self._known_edges = [], {}, set()
        for edge in edges:
            self._insert(edge)

    def _own(self) -> None:
        """Stop sharing containers with copies, and mark the graph as changed."""
        if self._shared:
            self._nodes = dict(self._nodes)
            self._edges = list(self._edges)
            self._from = {name: list(edges) for name, edges in self._from.items()}
            self._known_edges = set(self._known_edges)
            self._loops = dict(self._loops)
            self._shared = False
        self._version = object()


def _hashable(key: tuple[Any, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
