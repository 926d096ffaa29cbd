"""Read the change of the graph that the output of a node asks for, with `_graph_action`, and check it.

| `_graph_action` | other keys |
|---|---|
| `add_node` | `_node_config`: the keywords of a `PromptNode` as data |
| `remove_node` | `_node` |
| `add_edge` | `_from`, `_to`, `_condition` (in the language of conditions; none is always) |
| `remove_edge` | `_from`, `_to` |
| `skip_to` | `_target`: the node that runs next, or `"__end__"` |
| `retry_with` | `_context_update`: what the context holds when this node runs again |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphwright.engine._gates import bypassed_gate, is_gate
from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.engine.state import GraphMutation, GraphState
from graphwright.exceptions import ConfigurationError

__all__ = ["REFUSED", "moves", "read_action", "take_move"]

REFUSED = "_graph_action_refused"
"""The context key under which the next prompt node finds why an action was refused."""

_KEYS = {
    "add_node": {"_node_config"},
    "remove_node": {"_node"},
    "add_edge": {"_from", "_to", "_condition"},
    "remove_edge": {"_from", "_to"},
    "skip_to": {"_target"},
    "retry_with": {"_context_update"},
}
_OPTIONAL = frozenset({"_condition"})
_NOT_FOR_OUTPUT = ("inject_tools", "flags", "tools", "model_override")


def moves(mutation: GraphMutation) -> bool:
    """Return whether the action moves the run, instead of changing its graph."""
    return mutation.action in ("skip_to", "retry_with")


def read_action(output: Mapping[str, Any], node_name: str) -> tuple[GraphMutation, str | None]:
    """Return the change that an output asks for, and why it cannot be understood, if it cannot."""
    action = output["_graph_action"]
    mutation = GraphMutation(action if isinstance(action, str) else repr(action))
    keys = _KEYS.get(mutation.action)
    if keys is None:
        return mutation, f"_graph_action {action!r} is unknown; use one of {', '.join(_KEYS)}"
    for key in sorted(keys):
        kind: type = dict if key in ("_node_config", "_context_update") else str
        value = output.get(key)
        if (value is None and key in _OPTIONAL) or (isinstance(value, kind) and value):
            continue
        shape = "an object" if kind is dict else "a name" if key != "_condition" else "a condition"
        return mutation, f"_graph_action {action!r} needs {shape} in {key!r}, not {value!r}"
    mutation.from_node, mutation.to_node = output.get("_from") or "", output.get("_to") or ""
    mutation.condition = output.get("_condition") or ""
    if action == "add_node":
        mutation.node_config = dict(output["_node_config"])
        mutation.node_name = str(mutation.node_config.get("name") or "")
        return mutation, _refuse_config(mutation.node_config)
    if action == "retry_with":
        mutation.node_name, mutation.node_config = node_name, dict(output["_context_update"])
        return mutation, None
    mutation.node_name = output.get("_target") or output.get("_node") or ""
    return mutation, None


def take_move(graph: PromptGraph, state: GraphState, node: Any, mutation: GraphMutation) -> str:
    """Return the node that runs next.

    Raises:
        ConfigurationError: the run may not go there; nothing was changed.
    """
    if mutation.action == "skip_to":
        target = mutation.node_name
        if target != END and not graph.has_node(target):
            raise ConfigurationError(f"graph {graph.name!r} has no node {target!r} to skip to")
        if refusal := bypassed_gate(graph, node.name, target):
            raise ConfigurationError(refusal)
        return target
    if is_gate(node):
        raise ConfigurationError(f"{node.name!r} is a gate; it is not run again on its own word")
    private = sorted(str(key) for key in mutation.node_config if not isinstance(key, str) or key.startswith("_"))
    if private:
        raise ConfigurationError(f"retry_with may not set {private[0]!r}: keys that begin with '_' are the engine's")
    state.context.update(mutation.node_config)
    return str(node.name)


def _refuse_config(config: Mapping[str, Any]) -> str | None:
    if config.get("type", "prompt") != "prompt":
        return f"a node that an answer adds is a prompt node, not {config['type']!r}"
    for key in _NOT_FOR_OUTPUT:
        if config.get(key):
            return f"a node that an answer adds may not set {key!r}"
    return None
