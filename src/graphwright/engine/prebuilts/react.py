"""The standard agent: one node that calls tools until it can answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.graph import PromptGraph
from graphwright.engine.nodes import PromptNode

__all__ = ["build_react_graph"]


def build_react_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    max_node_iterations: int = 15,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of one node, `"reason"`: the model calls tools until it answers.

    Once the tool loop is long, the model is shown the facts of its earlier rounds in place of the rounds themselves.
    `max_node_iterations` is the most model calls of a run. With `output_schema` the answer is data of that type.
    """
    reason = PromptNode(
        "reason",
        instructions=system_prompt,
        description="Call tools until the question can be answered.",
        tools=tools,
        inject_tools=True,
        blocks=blocks,
        context_scope="auto",
        output_schema=output_schema,
        max_iterations=max_node_iterations,
        default_next="__end__",
        is_entry=True,
        is_terminal=True,
    )
    return PromptGraph("react", nodes=[reason])
