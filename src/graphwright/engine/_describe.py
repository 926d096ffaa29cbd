"""Show a graph to a person: as text and as a Mermaid diagram."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphwright.engine._topology import _targets
from graphwright.engine.edges import END

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph

__all__ = ["as_mermaid", "as_text"]

_SIMPLE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = frozenset(
    {
        "end",
        "graph",
        "subgraph",
        "flowchart",
        "style",
        "class",
        "classdef",
        "click",
        "direction",
        "linkstyle",
        "default",
    }
)


def as_text(graph: PromptGraph) -> str:
    """Return one line a node: what it is and where it leads."""
    lines = [f'PromptGraph "{graph.name}"']
    nodes = graph.nodes
    for position, (name, node) in enumerate(nodes.items()):
        branch = "└──" if position == len(nodes) - 1 else "├──"
        mark = "[entry] " if name == graph.entry else ""
        onward = dict.fromkeys(target for target, _ in _ways(graph, name))
        arrow = f" → {', '.join(onward)}" if onward else ""
        lines.append(f"{branch} {mark}{name} ({type(node).__name__}){arrow}")
        description = getattr(node, "description", "")
        if description:
            lines.append(f"{'   ' if position == len(nodes) - 1 else '│  '}   {description}")
    return "\n".join(lines)


def as_mermaid(graph: PromptGraph) -> str:
    """Return a Mermaid flowchart that declares every node and shows every way between them once."""
    nodes = graph.nodes
    ids = {name: _id(name, position) for position, name in enumerate(nodes)}
    ids[END] = "__end__"
    lines = ["graph TD"]
    for name, node in nodes.items():
        label = f"{_escape(name)}<br/>{_escape(type(node).__name__)}"
        shape = f'(["{label}"])' if name == graph.entry else f'["{label}"]'
        lines.append(f"    {ids[name]}{shape}")
    lines.append('    __end__(("end"))')
    for name in nodes:
        for target, label in _ways(graph, name):
            if target in ids:
                arrow = f'-->|"{_escape(label)}"|' if label else "-->"
                lines.append(f"    {ids[name]} {arrow} {ids[target]}")
    return "\n".join(lines)


def _ways(graph: PromptGraph, name: str) -> list[tuple[str, str]]:
    """Return every (target, label) that leads on from a node, each once."""
    ways = [(edge.to_node, edge.label) for edge in graph.get_edges_from(name)]
    for what, target in _targets(graph.nodes[name]).items():
        label = "" if what == "default_next" else what.removeprefix("transition ").strip("'\"")
        ways.append((target, label))
    limit = graph.loop_limit(name)
    if limit:
        ways.append((limit.exit_to, f"after {limit.max_iterations}"))
    return list(dict.fromkeys(ways))


def _id(name: str, position: int) -> str:
    if _SIMPLE_ID.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return f"node_{position}"


def _escape(label: str) -> str:
    escaped = label.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return escaped.replace("|", "#124;").replace("\n", "<br/>")
