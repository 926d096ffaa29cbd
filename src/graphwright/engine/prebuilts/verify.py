"""One node that plans, solves and checks within one answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.engine.nodes.prompt import PromptNode
from graphwright.engine.prebuilts._stages import stage_text

__all__ = ["build_verify_graph"]

VERIFY_PROMPT = (
    "Work in three steps within one answer. Plan: say in a line or two how you will solve it. Solve: carry the plan "
    "out. Check: test the result another way, look for slips in numbers, units and conditions, and correct what is "
    "wrong. End with the checked answer, plainly marked."
)


def build_verify_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    max_node_iterations: int = 6,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of one node, `"reason"`, that plans, solves and checks its answer in one generation.

    `max_node_iterations` is the most model calls of a run. With `output_schema` the answer is data of that type.
    """
    reason = PromptNode(
        "reason",
        instructions=stage_text(system_prompt, VERIFY_PROMPT),
        description="Plan, solve and check in one answer.",
        tools=tools,
        inject_tools=True,
        context_scope="auto",
        blocks=blocks,
        output_schema=output_schema,
        max_iterations=max_node_iterations,
        default_next=END,
        is_entry=True,
        is_terminal=True,
    )
    return PromptGraph("verify", nodes=[reason])
