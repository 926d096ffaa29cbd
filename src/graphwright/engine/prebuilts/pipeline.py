"""Nodes one after another."""

from __future__ import annotations

from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError

__all__ = ["build_pipeline_graph"]


def build_pipeline_graph(*nodes: Any) -> PromptGraph:
    """Return a graph that runs `nodes` in the order given; the last one ends the run."""
    if not nodes:
        raise ConfigurationError("a pipeline has no nodes; give at least one")
    names = [getattr(node, "name", node) for node in nodes]
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigurationError(
            f"the pipeline has more than one node named {', '.join(map(repr, repeated))}; give each its own name"
        )
    graph = PromptGraph("pipeline", nodes=nodes)
    return graph.set_entry(nodes[0].name).sequential(*names, END)
