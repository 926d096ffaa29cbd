"""The agent that chooses its next step itself, from a pool of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.base import BaseNode, NodeProtocol
from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.engine.nodes.autonomous import AutonomousNode
from graphwright.engine.prebuilts._stages import StageNode, answer_stage, stage_text
from graphwright.exceptions import ConfigurationError

__all__ = ["build_autonomous_graph"]

REASON_PROMPT = "Work on the user's question with the tools, and say what you found."
ANALYZE_PROMPT = (
    "Analyze what is known so far: what it means for the user's question, what contradicts, what is missing. "
    "Do not answer yet."
)
SYNTHESIZE_PROMPT = "Write the final answer to the user's question from everything found so far."


def build_autonomous_graph(
    node_pool: Iterable[BaseNode] | None = None,
    system_prompt: str = "",
    *,
    tools: Iterable[Any] | None = None,
    max_steps: int = 15,
    blocks: list[Any] | None = None,
    max_tool_rounds: int = 10,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of one node, `"agent"`, whose model chooses the next of `node_pool` at every step.

    Without a pool there are `reason` (with the tools), `analyze` and `synthesize`, which writes the answer and ends
    the run; `tools`, `blocks` and `max_tool_rounds` (the most model calls of one `reason` step) are theirs.
    `system_prompt` is for the choice, and for the nodes of that pool. Of a pool, the first `is_entry` node runs
    first, and an `is_terminal` node ends the run. With `output_schema` a second node, `"answer"`, puts what was
    found into data of that type.
    """
    if node_pool is None:
        pool = _default_pool(system_prompt, tools, blocks, max_tool_rounds)
    else:
        pool = _checked(node_pool, tools=tools, blocks=blocks)
    agent = AutonomousNode(
        "agent",
        node_pool=pool,
        planner_instructions=system_prompt,
        description="Choose the next step until the question is answered.",
        max_steps=max_steps,
        default_next=END if output_schema is None else "answer",
        is_entry=True,
        is_terminal=output_schema is None,
    )
    graph = PromptGraph("autonomous", nodes=[agent], mode="autonomous")
    if output_schema is not None:
        graph.add_node(answer_stage(system_prompt, blocks=blocks, output_schema=output_schema))
    return graph


def _default_pool(
    system_prompt: str, tools: Iterable[Any] | None, blocks: list[Any] | None, max_tool_rounds: int
) -> list[BaseNode]:
    return [
        StageNode(
            "reason",
            instructions=stage_text(system_prompt, REASON_PROMPT),
            description="Work on the question with the tools.",
            tools=tools,
            inject_tools=True,
            blocks=blocks,
            max_iterations=max_tool_rounds,
        ),
        StageNode(
            "analyze",
            instructions=stage_text(system_prompt, ANALYZE_PROMPT),
            description="Analyze what is known so far.",
            blocks=blocks,
        ),
        StageNode(
            "synthesize",
            instructions=stage_text(system_prompt, SYNTHESIZE_PROMPT),
            description="Write the final answer; this ends the work.",
            blocks=blocks,
            is_terminal=True,
        ),
    ]


def _checked(node_pool: Iterable[BaseNode], **only_default: Any) -> list[BaseNode]:
    pool = list(node_pool)
    if not pool:
        raise ConfigurationError("node_pool is empty; give the nodes to choose from, or leave it out")
    for node in pool:
        if isinstance(node, type) or not isinstance(node, NodeProtocol):
            raise ConfigurationError(f"{node!r} in node_pool is no node; give nodes such as PromptNode")
    given = [name for name, value in only_default.items() if value]
    if given:
        raise ConfigurationError(
            f"{', '.join(f'{name}=' for name in given)} is for the default pool; set it on the nodes of your pool"
        )
    return pool
