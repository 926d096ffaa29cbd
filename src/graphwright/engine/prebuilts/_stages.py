"""What the patterns share: how the text of a stage is put together, and the stages that more than one has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.prebuilts.schemas import PeoatrPlan, PeoatrReflection
from graphwright.engine.reasoning_nodes import PlanNode, ReflectNode
from graphwright.engine.reasoning_nodes._asides import AsideNode

__all__ = [
    "ACT_PROMPT",
    "ANSWER_PROMPT",
    "PLAN_PROMPT",
    "REFLECT_PROMPT",
    "StageNode",
    "answer_stage",
    "plan_stage",
    "reflect_stage",
    "stage_text",
]

ANSWER_PROMPT = (
    "Write the final answer to the user's question now, from the results above. Say plainly what could not be found. "
    "Do not mention the steps that led here."
)
PLAN_PROMPT = (
    "Plan how to answer the user's question with concrete subgoals, in order. Rate the plan honestly from 1 (useless) "
    "to 5 (excellent). Do not answer the question yet."
)
ACT_PROMPT = (
    "Work on the active subgoal of the plan, marked with →. Use the tools where they help. When nothing more can be "
    "done for it now, say in a few sentences what you found."
)
REFLECT_PROMPT = (
    "Review the work so far. Name the mistake that matters most, if there is one, and its correction. Then choose: "
    "'answer' when the question can be answered, 'replan' when the plan is wrong, 'continue' when work is left."
)


class StageNode(AsideNode):
    """A stage that writes text, in a conversation that may end on the text of an earlier stage.

    What it is shown of a long conversation is compacted, as the settings of the run say.
    """

    def __init__(self, name: str, **options: Any) -> None:
        """Configure the stage; all keywords of `PromptNode` are taken."""
        options.setdefault("context_scope", "auto")
        super().__init__(name, **options)


def stage_text(*parts: str) -> str:
    """Return the instructions of a stage: its parts in order, empty ones left out."""
    return "\n\n".join(part for part in parts if part)


def answer_stage(
    system_prompt: str,
    *,
    blocks: list[Any] | None,
    output_schema: Any = None,
    input_keys: Iterable[str] | None = None,
) -> StageNode:
    """Return the stage `"answer"`, which writes the reply and ends the run."""
    return StageNode(
        "answer",
        instructions=stage_text(system_prompt, ANSWER_PROMPT),
        description="Write the answer.",
        blocks=blocks,
        input_keys=input_keys,
        output_schema=output_schema,
        default_next=END,
        is_terminal=True,
    )


def plan_stage(instructions: str, blocks: list[Any] | None, *, is_entry: bool = False) -> PlanNode:
    """Return the stage `"plan"`: it plans again while its plan is poor, and hands over to `act` all the same."""
    return PlanNode(
        "plan",
        instructions=instructions,
        description="Make a plan of subgoals.",
        blocks=blocks,
        output_schema=PeoatrPlan,
        max_iterations=3,
        default_next="act",
        transitions={"error": "act"},
        is_entry=is_entry,
    )


def reflect_stage(instructions: str, blocks: list[Any] | None) -> ReflectNode:
    """Return the stage `"reflect"`: it chooses between answering, planning anew and going on."""
    return ReflectNode(
        "reflect",
        instructions=instructions,
        description="Review the work and choose the way on.",
        blocks=blocks,
        output_schema=PeoatrReflection,
        max_iterations=4,
        default_next="answer",
        transitions={"answer": "answer", "replan": "plan", "continue": "act", "error": "answer"},
    )
