"""The node that gives the reasons for the last step, for the record."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from graphwright.engine.base import NodeContext
from graphwright.engine.reasoning_nodes._asides import shown
from graphwright.engine.reasoning_nodes._reading import Share, Text, Texts
from graphwright.engine.reasoning_nodes._structured import StructuredNode
from graphwright.engine.state import GraphState, NodeResult

__all__ = ["Justification", "JustifyNode"]

JUSTIFY_PROMPT = (
    "Justify the last step: reason from what is known to the conclusion, step by step, and name the evidence for each "
    "step. Say so where evidence is missing."
)
LAST_ACTION = "Justify the last step, {name!r}. {calls}Its outcome: {output}"
CALLED = "It called {calls}. "

_MOST_KEPT = 5


class Justification(BaseModel):
    """The reasons for a step."""

    reasoning_chain: Texts = Field(description="The steps of the reasoning, in order.")
    evidence: Texts = Field(default_factory=list, description="What supports them.")
    conclusion: Text = Field(description="What follows.")
    confidence: Share = Field(default=0.5, description="How sure the conclusion is, from 0 to 1.")


class JustifyNode(StructuredNode):
    """Justifies the last step: `reasoning_chain`, `evidence`, `conclusion` and `confidence`.

    The newest five are kept in the context under `justifications`, each
    `{iteration, reasoning, conclusion, confidence}`.
    """

    own_prompt = JUSTIFY_PROMPT
    own_output_key = "justification"
    own_schema = Justification

    def __init__(self, name: str = "justify", **options: Any) -> None:
        """Configure the node; all keywords of `PromptNode` are taken."""
        super().__init__(name, **options)

    def aside(self, state: GraphState, context: NodeContext) -> str:
        """Show the step to justify, with the tools it called."""
        last = next((seen for seen in reversed(state.node_history) if seen.node_name != self.name), None)
        if last is None:
            return ""
        called = [
            call["name"] for seen in state.node_history if seen.node_name == last.node_name for call in seen.tool_calls
        ]
        told = CALLED.format(calls=", ".join(dict.fromkeys(called))) if called else ""
        outcome = last.error if last.error is not None else last.output
        return LAST_ACTION.format(name=last.node_name, calls=told, output=shown(outcome))

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Keep the justification for the record."""
        entry = {
            "iteration": state.iteration,
            "reasoning": fields.get("reasoning_chain"),
            "conclusion": fields.get("conclusion"),
            "confidence": fields.get("confidence"),
        }
        state.context["justifications"] = [*(state.context.get("justifications") or ()), entry][-_MOST_KEPT:]
