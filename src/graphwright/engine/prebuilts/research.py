"""Search, verify, synthesize: findings are checked against their sources before the answer is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.engine.prebuilts._stages import StageNode, stage_text
from graphwright.engine.prebuilts.schemas import ResearchVerdict
from graphwright.engine.reasoning_nodes import SynthesizeNode, ValidateNode

__all__ = ["build_research_graph"]

SEARCH_PROMPT = (
    "Gather what is needed to answer the user's question, with the tools. Where a check named issues, settle those. "
    "Then summarize your findings, each with the tool result it comes from. Do not guess."
)
VERIFY_PROMPT = "Check the findings above against the tool results they rest on."
VERIFY_CRITERIA = (
    "Every finding is backed by a tool result, nothing contradicts another finding, and the question is covered."
)
SYNTHESIZE_PROMPT = (
    "Write the final answer to the user's question from the findings, and name the source of each claim. Say plainly "
    "what could not be found or confirmed."
)


def build_research_graph(
    search_tools: Iterable[Any] | None = None,
    synthesis_tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    verify: bool = True,
    max_search_steps: int = 12,
    max_verify_rounds: int = 2,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of the stages `search`, `verify` (unless `verify=False`) and `synthesize`.

    A failed check sends the run back to `search` with the issues, at most `max_verify_rounds` times.
    `max_search_steps` is the most model calls of `search` in a run; then `synthesize` writes from what there is.
    """
    search = StageNode(
        "search",
        instructions=stage_text(system_prompt, SEARCH_PROMPT),
        description="Gather findings with the tools.",
        tools=search_tools,
        inject_tools=True,
        blocks=blocks,
        input_keys=["verification"],
        max_iterations=max_search_steps,
        default_next="verify" if verify else "synthesize",
        transitions={"error": "synthesize"},
        is_entry=True,
    )
    synthesize = _synthesize_stage(system_prompt, synthesis_tools, blocks, output_schema)
    stages = [search, _verify_stage(system_prompt, blocks, max_verify_rounds), synthesize]
    return PromptGraph("research", nodes=stages if verify else [search, synthesize])


def _verify_stage(system_prompt: str, blocks: list[Any] | None, max_rounds: int) -> ValidateNode:
    return ValidateNode(
        "verify",
        criteria=VERIFY_CRITERIA,
        instructions=stage_text(system_prompt, VERIFY_PROMPT),
        description="Check the findings against the tool results.",
        blocks=blocks,
        output_schema=ResearchVerdict,
        output_key="verification",
        on_pass="synthesize",
        on_fail="search",
        max_iterations=max_rounds,
        transitions={"error": "synthesize"},
    )


def _synthesize_stage(
    system_prompt: str, tools: Iterable[Any] | None, blocks: list[Any] | None, output_schema: Any
) -> SynthesizeNode:
    return SynthesizeNode(
        "synthesize",
        instructions=stage_text(system_prompt, SYNTHESIZE_PROMPT),
        description="Write the answer from the findings.",
        tools=tools,
        blocks=blocks,
        input_keys=["verification"],
        output_schema=output_schema,
        default_next=END,
        is_terminal=True,
    )
