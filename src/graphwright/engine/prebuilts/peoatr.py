"""Plan, act, think, reflect, answer: for tasks that need several steps and a second look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.graph import PromptGraph
from graphwright.engine.prebuilts._stages import (
    ACT_PROMPT,
    PLAN_PROMPT,
    REFLECT_PROMPT,
    StageNode,
    answer_stage,
    plan_stage,
    reflect_stage,
    stage_text,
)
from graphwright.engine.prebuilts.schemas import PeoatrThought
from graphwright.engine.reasoning_nodes import ThinkNode

__all__ = ["build_peoatr_graph"]

THINK_PROMPT = (
    "Look at the newest results. Say what they mean, whether the active subgoal is reached, and whether to act again "
    "now ('continue') or to look at the whole ('reflect')."
)


def build_peoatr_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    planning_instructions: str = "",
    acting_instructions: str = "",
    thinking_instructions: str = "",
    reflecting_instructions: str = "",
    blocks: list[Any] | None = None,
    max_act_steps: int = 12,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of the stages `plan`, `act`, `think`, `reflect` and `answer`.

    `system_prompt` and `blocks` reach every stage, the other texts their own. `max_act_steps` is the most model calls
    of `act` in a run. A stage that fails or has used its budget hands over, so every way leads to `answer`.
    """
    act = StageNode(
        "act",
        instructions=stage_text(system_prompt, ACT_PROMPT, acting_instructions),
        description="Work on the active subgoal, with the tools.",
        tools=tools,
        inject_tools=True,
        blocks=blocks,
        max_iterations=max_act_steps,
        default_next="think",
        transitions={"error": "answer"},
    )
    think = ThinkNode(
        "think",
        instructions=stage_text(system_prompt, THINK_PROMPT, thinking_instructions),
        description="Say what the results mean.",
        blocks=blocks,
        output_schema=PeoatrThought,
        max_iterations=12,
        default_next="reflect",
        transitions={"continue": "act", "reflect": "reflect", "error": "reflect"},
    )
    plan = plan_stage(stage_text(system_prompt, PLAN_PROMPT, planning_instructions), blocks, is_entry=True)
    reflect = reflect_stage(stage_text(system_prompt, REFLECT_PROMPT, reflecting_instructions), blocks)
    answer = answer_stage(system_prompt, blocks=blocks, output_schema=output_schema)
    return PromptGraph("peoatr", nodes=[plan, act, think, reflect, answer])
