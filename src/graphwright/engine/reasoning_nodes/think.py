"""The node that says what is known, what is missing, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field

from graphwright.engine.reasoning_nodes._reading import Share, Text, Truth
from graphwright.engine.reasoning_nodes._structured import StructuredNode, complete_active
from graphwright.engine.state import GraphState, NodeFlag, NodeResult

__all__ = ["ThinkNode", "Thought"]

THINK_PROMPT = (
    "Think about where the work stands: what is known, what is still missing, and which step should come next. "
    "Be specific. Do not answer the user's question yet."
)
FOCUS = "Pay special attention to: {areas}."


class Thought(BaseModel):
    """Where the work stands."""

    reasoning: Text = Field(description="What the results so far mean.")
    gap_analysis: Text = Field(default="", description="What is still missing to answer the question.")
    next_step: Text = Field(default="", description="The step that should come next.")
    confidence: Share = Field(default=0.5, description="How sure you are, from 0 to 1.")
    subgoal_complete: Truth = Field(
        default=False, description="Whether the active subgoal of the plan is reached; false without a plan."
    )


class ThinkNode(StructuredNode):
    """Analyses the state, finds the gaps, recommends the next step.

    The fields are `gap_analysis`, `confidence`, `next_step` and `reasoning`; `subgoal_complete` completes the active
    subgoal of the plan.
    """

    own_flags = frozenset({NodeFlag.LIGHTWEIGHT})
    own_prompt = THINK_PROMPT
    own_output_key = "think_output"
    own_schema = Thought

    def __init__(
        self,
        name: str = "think",
        *,
        focus_areas: Iterable[str] | None = None,
        include_reflections: bool = False,
        **options: Any,
    ) -> None:
        """Configure the node; `focus_areas` are named to the model, all keywords of `PromptNode` are taken."""
        self.focus_areas = [focus_areas] if isinstance(focus_areas, str) else list(focus_areas or ())
        self._extra = FOCUS.format(areas=", ".join(self.focus_areas)) if self.focus_areas else ""
        super().__init__(name, include_reflections=include_reflections, **options)

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Complete the active subgoal when it is reached."""
        complete_active(fields, state)
