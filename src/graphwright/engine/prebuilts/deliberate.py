"""Think, plan, act, observe, reflect, answer: slower, and more careful at every step."""

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
from graphwright.engine.reasoning_nodes import ObserveNode, ThinkNode

__all__ = ["build_deliberate_graph"]

THINK_PROMPT = (
    "Before anything is done: say what the user really asks for, what is known, what is missing, and what could go "
    "wrong. Do not answer the question yet."
)
OBSERVE_PROMPT = (
    "Read the newest results closely and write down what they show. Add nothing that they do not say. Say whether "
    "the active subgoal of the plan, marked with →, is reached."
)


def build_deliberate_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    max_act_steps: int = 12,
    output_schema: Any = None,
) -> PromptGraph:
    """Return a graph of the stages `think`, `plan`, `act`, `observe`, `reflect` and `answer`.

    `system_prompt` and `blocks` reach every stage. `max_act_steps` is the most model calls of `act` in a run.
    A stage that fails or has used its budget hands over, so every way leads to `answer`.
    """
    think = ThinkNode(
        "think",
        instructions=stage_text(system_prompt, THINK_PROMPT),
        description="Understand the question before acting.",
        blocks=blocks,
        default_next="plan",
        transitions={"error": "plan"},
        is_entry=True,
    )
    act = StageNode(
        "act",
        instructions=stage_text(system_prompt, ACT_PROMPT),
        description="Work on the active subgoal, with the tools.",
        tools=tools,
        inject_tools=True,
        blocks=blocks,
        inherit_context_from="think",
        max_iterations=max_act_steps,
        default_next="observe",
        transitions={"error": "answer"},
    )
    observe = ObserveNode(
        "observe",
        instructions=stage_text(system_prompt, OBSERVE_PROMPT),
        description="Write down what the results show.",
        blocks=blocks,
        default_next="reflect",
        transitions={"error": "reflect"},
    )
    plan = plan_stage(stage_text(system_prompt, PLAN_PROMPT), blocks)
    reflect = reflect_stage(stage_text(system_prompt, REFLECT_PROMPT), blocks)
    answer = answer_stage(system_prompt, blocks=blocks, output_schema=output_schema, input_keys=["observation"])
    return PromptGraph("deliberate", nodes=[think, plan, act, observe, reflect, answer])
