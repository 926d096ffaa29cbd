"""Write nodes and graphs as plain data and make them from it: lossless, or refused.

Loading imports nothing that the data names, unless a pattern of `allow_imports` matches `package.module:name`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from graphwright.engine._encoding import decode, decode_condition, encode, encode_condition, refuse_unknown
from graphwright.engine.base import BaseNode
from graphwright.engine.graph import LoopLimit, PromptGraph
from graphwright.exceptions import ConfigurationError, GraphSerializationError, MissingExtraError

__all__ = [
    "SCHEMA_VERSION",
    "dump_graph",
    "graph_from_config",
    "graph_to_config",
    "load_graph",
    "node_from_config",
    "node_to_config",
]

SCHEMA_VERSION = 1
_MAX_TEXT = 2_000_000
_STANDARD = ("Prompt", "Tool", "Router", "Guard", "Parallel", "Loop", "Human", "Transform", "Subgraph", "Autonomous")
_REASONING = (
    *("Think", "Plan", "Reflect", "Observe", "Justify", "Critique", "Validate", "Synthesize"),
    *("Retry", "FanOut"),
)
_HOMES = {
    **dict.fromkeys(_STANDARD, "graphwright.engine.nodes"),
    **dict.fromkeys(_REASONING, "graphwright.engine.reasoning_nodes"),
    "Stage": "graphwright.engine.prebuilts",
}
_TYPES = {"fan_out" if word == "FanOut" else word.lower(): f"{word}Node" for word in _HOMES}
# `flags` holds what these three set.
_IN_FLAGS = frozenset({"is_entry", "is_terminal", "inject_tools"})
# What these make themselves, from what is written.
_DERIVED = {"fan_out": frozenset({"nodes", "description"}), "retry": frozenset({"description"})}


def node_from_config(config: Mapping[str, Any], *, allow_imports: Iterable[str] = ()) -> BaseNode:
    """Return the node that `config` describes. Its `type` is `"prompt"` when it has none.

    Raises:
        ConfigurationError: the type or a key is unknown, or a value does not fit.
        GraphSerializationError: it names something to import that is not allowed.
    """
    from graphwright.engine.nodes._config import known_keywords

    if not isinstance(config, Mapping):
        raise ConfigurationError(f"the config of a node is {config!r}; write a map")
    rest = dict(config)
    kind = rest.pop("type", "prompt")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ConfigurationError(f"a node of type {kind!r} is unknown; use one of {', '.join(_TYPES)}")
    where = f"node {rest.get('name')!r}"
    if not rest.get("name"):
        raise ConfigurationError(f"the config of a node of type {kind!r} has no 'name'")
    node_class = _class_of(kind)
    refuse_unknown(rest, known_keywords(node_class) - {"extra"} - _DERIVED.get(kind, frozenset()), where)
    patterns = _patterns(allow_imports)
    given = {key: decode(value, f"{where}, {key}", patterns) for key, value in rest.items()}
    try:
        made: BaseNode = node_class(**given)
    except (ConfigurationError, MissingExtraError):
        raise
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise ConfigurationError(f"{where} of type {kind!r} cannot be made: {error}") from error
    return made


def node_to_config(node: BaseNode, *, allow_imports: Iterable[str] = ()) -> dict[str, Any]:
    """Return the config that `node_from_config` makes an equal node of.

    Raises:
        GraphSerializationError: something of the node is no data; the message names it.
    """
    from graphwright.engine.nodes._config import known_keywords

    kind = next(
        (kind for kind in _TYPES if type(node).__name__ == _TYPES[kind] and _class_of(kind) is type(node)), None
    )
    if kind is None:
        raise GraphSerializationError(
            f"node {getattr(node, 'name', node)!r} is a {type(node).__name__}, which data cannot hold; "
            "use one of the node types that graphwright has"
        )
    patterns = _patterns(allow_imports)
    blank = _blank(type(node), node.name)
    written: dict[str, Any] = {"type": kind, "name": node.name}
    for key in sorted(known_keywords(type(node)) - _IN_FLAGS - {"name", "extra"} - _DERIVED.get(kind, frozenset())):
        value = getattr(node, key, _ABSENT)
        if value is not _ABSENT and not _alike(value, blank.get(key, _ABSENT)):
            written[key] = encode(_as_given(value), f"node {node.name!r}, {key}", patterns)
    if "instructions" in written:
        # Some nodes add lines of their own, and would add them again to what is read back.
        read_back = node_from_config(written, allow_imports=patterns).instructions
        added = read_back.removeprefix(written["instructions"])
        written["instructions"] = written["instructions"].removesuffix(added)
    _check_lossless(node, written, patterns)
    return written


def graph_to_config(graph: PromptGraph, *, allow_imports: Iterable[str] = ()) -> dict[str, Any]:
    """Return the graph as plain data.

    Raises:
        GraphSerializationError: something of the graph is no data; the message names it.
    """
    patterns = _patterns(allow_imports)
    edges = []
    for edge in graph.edges:
        written: dict[str, Any] = {"from": edge.from_node, "to": edge.to_node}
        if edge.condition is not None:
            where = f"the condition of the edge {edge.from_node!r} -> {edge.to_node!r}"
            written["condition"] = encode_condition(edge.condition, where, patterns)
        written |= {"label": edge.label} if edge.label else {}
        written |= {"priority": edge.priority} if edge.priority else {}
        edges.append(written)
    loops = {name: loop._asdict() for name in graph.nodes if (loop := graph.loop_limit(name))}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": graph.name,
        "mode": graph.mode,
        "entry": graph.entry,
        "nodes": [node_to_config(node, allow_imports=patterns) for node in graph.nodes.values()],
        "edges": edges,
        **({"loops": loops} if loops else {}),
    }


def graph_from_config(config: Mapping[str, Any], *, allow_imports: Iterable[str] = ()) -> PromptGraph:
    """Return the graph that `config` describes; `validate` of the graph says whether it can run.

    Raises:
        ConfigurationError: the version or a key is unknown, or a value does not fit.
        GraphSerializationError: it names something to import that is not allowed.
    """
    refuse_unknown(config, {"schema_version", "name", "mode", "entry", "nodes", "edges", "loops"}, "the graph")
    version = config.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ConfigurationError(f"schema_version of the graph is {version!r}; this release reads {SCHEMA_VERSION}")
    patterns = _patterns(allow_imports)
    name = config.get("name", "graph")
    if not isinstance(name, str):
        raise ConfigurationError(f"the name of the graph is {name!r}; write a text")
    graph = PromptGraph(name, mode=config.get("mode", "static"))
    for written in _listed(config, "nodes"):
        node = node_from_config(written, allow_imports=patterns)
        if graph.has_node(node.name):
            raise ConfigurationError(f"the graph has two nodes named {node.name!r}; give each its own name")
        graph.add_node(node)
    for written in _listed(config, "edges"):
        _add_edge(graph, written, patterns)
    if config.get("entry") is not None:
        graph.set_entry(config["entry"])
    loops = config.get("loops", {})
    refuse_unknown(loops, graph.nodes, "loops of the graph")
    for looping, limit in loops.items():
        _set_loop(graph, looping, limit)
    return graph


def dump_graph(
    graph: PromptGraph, *, format: Literal["json", "yaml"] = "json", allow_imports: Iterable[str] = ()
) -> str:
    """Return the graph as JSON or YAML text.

    Raises:
        GraphSerializationError: something of the graph is no data; the message names it.
        MissingExtraError: YAML was asked for and PyYAML is not installed.
    """
    config = graph_to_config(graph, allow_imports=allow_imports)
    if format == "json":
        return json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    if format != "yaml":
        raise ConfigurationError(f"format {format!r} is unknown; use 'json' or 'yaml'")
    text: str = _yaml().safe_dump(config, sort_keys=False, allow_unicode=True)
    return text


def load_graph(source: str | Path, *, allow_imports: Iterable[str] = ()) -> PromptGraph:
    """Return the graph of a JSON or YAML text, or of the file at a `Path`.

    Raises:
        ConfigurationError: the text is neither, or describes no graph.
        GraphSerializationError: it names something to import that is not allowed.
    """
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    if len(text) > _MAX_TEXT:
        raise ConfigurationError(f"a graph of {len(text)} characters is too long; use at most {_MAX_TEXT}")
    try:
        return graph_from_config(_parsed(text), allow_imports=allow_imports)
    except RecursionError:
        raise ConfigurationError("the graph is nested too deeply; take its inner graphs apart") from None


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigurationError(f"the graph is no JSON: {error}") from error
    yaml = _yaml()
    try:
        # An alias can make a small text describe an endless graph.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ConfigurationError("the YAML of a graph may not use aliases; write each value where it belongs")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"the graph is no YAML: {error}") from error


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError:
        raise MissingExtraError("graphs in YAML", extra="yaml", package="pyyaml") from None


def _add_edge(graph: PromptGraph, written: Any, patterns: tuple[str, ...]) -> None:
    refuse_unknown(written, {"from", "to", "condition", "label", "priority"}, "an edge")
    start, target = written.get("from"), written.get("to")
    where = f"the edge {start!r} -> {target!r}"
    label, priority = written.get("label", ""), written.get("priority", 0)
    if not all(isinstance(text, str) for text in (start, target, label)) or type(priority) is not int:
        raise ConfigurationError(f"{where} needs texts in 'from', 'to' and 'label' and a whole number in 'priority'")
    condition = written.get("condition")
    if condition is not None:
        condition = decode_condition(condition, f"the condition of {where}", patterns)
    graph.add_edge(start, target, condition=condition, label=label, priority=priority)


def _set_loop(graph: PromptGraph, name: str, limit: Any) -> None:
    refuse_unknown(limit, LoopLimit._fields, f"the loop at {name!r}")
    most, exit_to = limit.get("max_iterations"), limit.get("exit_to")
    if type(most) is not int or most < 1 or not isinstance(exit_to, str):
        raise ConfigurationError(f"the loop at {name!r} needs max_iterations of at least 1 and exit_to, not {limit!r}")
    graph._loops[name] = LoopLimit(most, exit_to)


def _listed(config: Mapping[str, Any], key: str) -> list[Any]:
    value = config.get(key, [])
    if not isinstance(value, list):
        raise ConfigurationError(f"{key!r} of the graph is {value!r}; write a list")
    return value


def _patterns(allow_imports: Iterable[str]) -> tuple[str, ...]:
    if isinstance(allow_imports, str):
        raise ConfigurationError(f"allow_imports is {allow_imports!r}; give a list of patterns")
    return tuple(allow_imports)


def _class_of(kind: str) -> Any:
    name = _TYPES[kind]
    return getattr(import_module(_HOMES[name.removesuffix("Node")]), name)


_ABSENT = object()


def _blank(node_class: type[BaseNode], name: str) -> dict[str, Any]:
    """Return what a node has of which nothing but the name is given."""
    try:
        plain = node_class(name)
    except ConfigurationError:  # it needs more; what its constructor prints has to do
        plain = BaseNode(name)
        found: dict[str, Any] = {}
        for cls in reversed(node_class.__mro__):
            if issubclass(cls, BaseNode) and "__init__" in cls.__dict__:
                parameters = inspect.signature(cls.__dict__["__init__"]).parameters.values()
                found |= {p.name: p.default for p in parameters if p.default is not p.empty}
        return found | vars(plain)
    return {key: getattr(plain, key) for key in dir(plain) if not key.startswith("_")}


def _as_given(value: Any) -> Any:
    from graphwright.tools import ToolSet

    if isinstance(value, ToolSet):
        return list(value)
    if isinstance(value, frozenset):
        return sorted(getattr(item, "value", item) for item in value)
    return dict(value) if isinstance(value, Mapping) and type(value) is not dict else value


def _check_lossless(node: BaseNode, written: dict[str, Any], patterns: tuple[str, ...]) -> None:
    """Refuse a node that its own config would not bring back: something on it was set past the constructor."""
    twin = node_from_config(written, allow_imports=patterns)
    for key, value in vars(node).items():
        if not _alike(value, vars(twin).get(key, _ABSENT)):
            raise GraphSerializationError(
                f"node {node.name!r}: {key} is {value!r}, which its config would not bring back; "
                "set it with the keywords of the constructor, to plain data"
            )


def _alike(one: Any, other: Any) -> bool:
    from graphwright.tools import ToolSet

    if type(one) is not type(other):
        return False
    if isinstance(one, (BaseNode, PromptGraph)):
        return True  # written by themselves, and checked there
    if isinstance(one, ToolSet):
        return [tool.name for tool in one] == [tool.name for tool in other]
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one is other or one == other)
