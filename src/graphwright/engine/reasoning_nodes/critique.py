"""The node that speaks against an answer or a plan, and sends it back when that weighs enough."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from graphwright.engine.reasoning_nodes._reading import Share, Texts
from graphwright.engine.reasoning_nodes._structured import StructuredNode
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["Critique", "CritiqueNode"]

CRITIQUE_PROMPT = (
    "Challenge the current answer or plan as a fair opponent: what is wrong, missing or unproven, what speaks against "
    "it, and what would make it better. Rate the worst weakness from 0 (harmless) to 1 (fatal)."
)

_REVISIONS = ("revise", "improve", "retry", "replan")


class Critique(BaseModel):
    """What speaks against an answer."""

    weaknesses: Texts = Field(default_factory=list, description="What is wrong, missing or unproven.")
    counter_arguments: Texts = Field(default_factory=list, description="What speaks against it.")
    improvements: Texts = Field(default_factory=list, description="What would make it better.")
    severity: Share = Field(description="How bad the worst weakness is, from 0 (harmless) to 1 (fatal).")


class CritiqueNode(StructuredNode):
    """Challenges the current answer: `weaknesses`, `counter_arguments`, `improvements` and `severity`.

    A severity above the threshold leads to the first of the transitions `revise`, `improve`, `retry` and `replan`.
    """

    own_prompt = CRITIQUE_PROMPT
    own_output_key = "critique"
    own_schema = Critique

    def __init__(self, name: str = "critique", *, severity_threshold: float = 0.5, **options: Any) -> None:
        """Configure the node; all keywords of `PromptNode` are taken.

        Raises:
            ConfigurationError: the threshold is not from 0 to 1.
        """
        if not 0 <= severity_threshold <= 1:
            raise ConfigurationError(
                f"severity_threshold of node {name!r} is {severity_threshold!r}; it must be from 0 to 1"
            )
        self.severity_threshold = severity_threshold
        super().__init__(name, **options)

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Choose the way to a revision when the critique weighs enough."""
        severity = fields.get("severity")
        if severity is None or severity <= self.severity_threshold:
            return
        target = next((self.transitions[key] for key in _REVISIONS if key in self.transitions), None)
        if target is not None:
            result.next_node = target
            result.transition_reason = f"severity {severity:g} is above {self.severity_threshold:g}"
