"""The node that looks back at the work, and keeps what is to be learned from it."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from graphwright.engine.base import NodeContext
from graphwright.engine.reasoning_nodes._asides import shown
from graphwright.engine.reasoning_nodes._reading import Share, Text, Truth, text
from graphwright.engine.reasoning_nodes._structured import StructuredNode, complete_active
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["ReflectNode", "Reflection"]

REFLECT_PROMPT = (
    "Review the work so far honestly. Say how far it is, name the mistake that matters most, if there is one, and how "
    "to correct it."
)
LAST_STEPS = "Review the work now. The last steps were:\n{steps}"


class Reflection(BaseModel):
    """A look back at the work so far."""

    progress: Text = Field(
        validation_alias=AliasChoices("progress", "progress_assessment"), description="How far the work is."
    )
    mistake: Text = Field(default="", description="The mistake to learn from; empty when there is none.")
    correction: Text = Field(default="", description="What to do instead; empty when there is no mistake.")
    confidence: Share = Field(default=0.5, description="How sure you are that the work is right, from 0 to 1.")
    route: Text = Field(default="", description="Where to go on; empty when no choice is offered.")
    subgoal_complete: Truth = Field(
        default=False, description="Whether the active subgoal of the plan is reached; false without a plan."
    )


class ReflectNode(StructuredNode):
    """Reviews what happened, and stores a mistake and its correction in `state.reflections`.

    The fields are `progress` (also as `progress_assessment`), `mistake`, `correction`, `confidence` and `route`, which
    names a transition; `subgoal_complete` completes the active subgoal of the plan.
    """

    own_prompt = REFLECT_PROMPT
    own_output_key = "reflection"
    own_schema = Reflection

    def __init__(self, name: str = "reflect", *, review_depth: int = 3, **options: Any) -> None:
        """Configure the node; it is shown the outputs of the last `review_depth` steps.

        Raises:
            ConfigurationError: `review_depth` is negative.
        """
        if review_depth < 0:
            raise ConfigurationError(f"review_depth of node {name!r} is {review_depth!r}; it must not be negative")
        self.review_depth = review_depth
        super().__init__(name, **options)

    def aside(self, state: GraphState, context: NodeContext) -> str:
        """Show the last steps."""
        steps = [seen for seen in state.node_history if seen.output not in (None, "")]
        steps = steps[len(steps) - min(self.review_depth, len(steps)) :]
        if not steps:
            return ""
        return LAST_STEPS.format(steps="\n".join(f"- {seen.node_name}: {shown(seen.output)}" for seen in steps))

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Store the mistake, complete the active subgoal when it is reached."""
        progress = text(fields.get("progress", fields.get("progress_assessment")))
        fields["progress"] = fields["progress_assessment"] = progress
        mistake = text(fields.get("mistake"))
        if mistake:
            confidence = fields.get("confidence")
            state.add_reflection(
                state.iteration,
                mistake,
                text(fields.get("correction")),
                0.5 if confidence is None else confidence,
                stage="reflect",
            )
        complete_active(fields, state)
