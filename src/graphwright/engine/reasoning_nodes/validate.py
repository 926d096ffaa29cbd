"""The node that lets a model judge whether something meets criteria, and takes the way for pass or fail."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from graphwright.engine.edges import END
from graphwright.engine.reasoning_nodes._reading import Share, Texts, Truth, texts, truth
from graphwright.engine.reasoning_nodes._structured import StructuredNode
from graphwright.engine.state import GraphState, NodeResult

__all__ = ["ValidateNode", "Validation"]

VALIDATE_PROMPT = (
    "Judge whether the work so far meets the criteria. Judge strictly by what is there, not by what was meant. "
    "It passes only when every criterion is met."
)
CRITERIA = "Criteria:\n{criteria}"


class Validation(BaseModel):
    """Whether criteria are met."""

    passes: Truth = Field(
        validation_alias=AliasChoices("passes", "pass", "passed"), description="Whether every criterion is met."
    )
    issues: Texts = Field(default_factory=list, description="Which criteria are not met, and why.")
    suggestions: Texts = Field(default_factory=list, description="What would make it pass.")
    confidence: Share = Field(default=0.5, description="How sure you are, from 0 to 1.")


class ValidateNode(StructuredNode):
    """Judges by criteria in plain words: `passes`, `issues`, `suggestions` and `confidence`.

    A pass leads to `on_pass`, a fail to `on_fail`, or along a conditional edge that takes this result. A fail that
    leads nowhere is a failure of the node.
    """

    own_prompt = VALIDATE_PROMPT
    own_output_key = "validation"
    own_schema = Validation

    def __init__(
        self,
        name: str = "validate",
        *,
        criteria: Any = "",
        on_pass: str | None = END,
        on_fail: str | None = None,
        **options: Any,
    ) -> None:
        """Configure the node; `criteria` is a text or a list of texts, all keywords of `PromptNode` are taken.

        With `on_pass=None` a pass follows the edges of the graph.
        """
        self.criteria = criteria
        self.on_pass = on_pass
        self.on_fail = on_fail
        listed = criteria if isinstance(criteria, str) else "\n".join(f"- {one}" for one in criteria or ())
        self._extra = CRITERIA.format(criteria=listed) if listed else ""
        super().__init__(name, **options)

    def targets(self) -> dict[str, str]:
        """Return the nodes that this node's own configuration leads to."""
        found = super().targets()
        for key, target in (("on_pass", self.on_pass), ("on_fail", self.on_fail)):
            if target is not None:
                found[key] = target
        return found

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Choose the way, or fail where a fail leads nowhere."""
        passes = fields["passes"] = truth(fields.get("passes", fields.get("pass")))
        target = self.on_pass if passes else self.on_fail
        if target is not None:
            result.next_node = target
            result.transition_reason = "passed" if passes else "failed"
        elif not passes and not self._edge_takes(state, result):
            issues = "; ".join(texts(fields.get("issues")))
            result.error = f"the validation by node {self.name!r} failed" + (f": {issues}" if issues else "")

    def _edge_takes(self, state: GraphState, result: NodeResult) -> bool:
        edges = state.graph.get_edges_from(self.name) if state.graph is not None else ()
        for edge in edges:
            try:
                if edge.condition is not None and not edge.is_error_route and edge.condition(result):
                    return True
            except Exception:  # a condition of the user's: one that cannot be read takes nothing
                continue
        return False
