"""Proposer, critic, judge, answer: an answer is challenged before it is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.graph import PromptGraph
from graphwright.engine.prebuilts._stages import StageNode, answer_stage, stage_text
from graphwright.engine.prebuilts.schemas import DebateCritique, DebateVerdict
from graphwright.engine.reasoning_nodes import CritiqueNode, ValidateNode

__all__ = ["build_debate_graph"]

PROPOSE_PROMPT = (
    "Propose a complete answer to the user's question, using the tools where they help. Where a critique or a verdict "
    "is given, improve the earlier proposal by it, and keep what was right."
)
CRITIC_PROMPT = (
    "Challenge the newest proposal as a strict and fair opponent: look for errors, unfounded claims and gaps, and say "
    "how to mend them. Rate the worst weakness from 0 (harmless) to 1 (fatal). Do not invent weaknesses."
)
JUDGE_PROMPT = "Judge the newest proposal in the light of the critique. You took no side."
JUDGE_CRITERIA = "The proposal answers the question correctly and completely, and no grave weakness is left."


def build_debate_graph(
    system_prompt: str = "",
    *,
    tools: Iterable[Any] | None = None,
    blocks: list[Any] | None = None,
    max_rounds: int = 3,
    max_proposer_steps: int = 12,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of the stages `proposer`, `critic`, `judge` and `answer`.

    `system_prompt` reaches the proposer and the answer, so that critic and judge look from outside; `blocks` reach
    every stage. Critic and judge run at most `max_rounds` times each, the proposer makes at most `max_proposer_steps`
    model calls in a run; then the run goes on, so every way leads to `answer`.
    """
    proposer = StageNode(
        "proposer",
        instructions=stage_text(system_prompt, PROPOSE_PROMPT),
        description="Propose an answer, or improve it.",
        tools=tools,
        inject_tools=True,
        blocks=blocks,
        input_keys=["critique", "verdict"],
        max_iterations=max_proposer_steps,
        default_next="critic",
        transitions={"error": "answer"},
        is_entry=True,
    )
    answer = answer_stage(system_prompt, blocks=blocks, output_schema=output_schema, input_keys=["critique", "verdict"])
    return PromptGraph("debate", nodes=[proposer, _critic(blocks, max_rounds), _judge(blocks, max_rounds), answer])


def _critic(blocks: list[Any] | None, max_rounds: int) -> CritiqueNode:
    return CritiqueNode(
        "critic",
        severity_threshold=0.3,
        instructions=CRITIC_PROMPT,
        description="Challenge the proposal.",
        inherit_instructions=False,
        blocks=blocks,
        output_schema=DebateCritique,
        output_key="critique",
        max_iterations=max_rounds,
        default_next="judge",
        transitions={"revise": "proposer", "error": "judge"},
    )


def _judge(blocks: list[Any] | None, max_rounds: int) -> ValidateNode:
    return ValidateNode(
        "judge",
        criteria=JUDGE_CRITERIA,
        instructions=JUDGE_PROMPT,
        description="Decide whether the proposal stands.",
        inherit_instructions=False,
        blocks=blocks,
        output_schema=DebateVerdict,
        output_key="verdict",
        input_keys=["critique"],
        on_pass="answer",
        on_fail="proposer",
        max_iterations=max_rounds,
        transitions={"error": "answer"},
    )
