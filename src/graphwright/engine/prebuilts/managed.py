"""The tool agent for long chains of calls: its context stays bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.engine.nodes.prompt import PromptNode

__all__ = ["build_managed_graph"]


def build_managed_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    max_node_iterations: int = 30,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of one node, `"reason"`, that reads old tool results as a short ledger of facts.

    A call that the model repeats runs again. `max_node_iterations` is the most model calls of a run.
    """
    reason = PromptNode(
        "reason",
        instructions=system_prompt,
        description="Call tools until the question can be answered, keeping the facts in a ledger.",
        tools=tools,
        inject_tools=True,
        blocks=blocks,
        output_schema=output_schema,
        context_scope="ledger",
        max_iterations=max_node_iterations,
        default_next=END,
        is_entry=True,
        is_terminal=True,
    )
    return PromptGraph("managed", nodes=[reason])
