"""The node that turns raw tool results into entities, facts and findings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from graphwright.engine.reasoning_nodes._reading import Text, Texts, Truth, texts
from graphwright.engine.reasoning_nodes._structured import StructuredNode, complete_active
from graphwright.engine.state import GraphState, NodeResult

__all__ = ["Observation", "ObserveNode"]

OBSERVE_PROMPT = (
    "Read the newest results. Extract the entities, the facts and what matters most for the user's question. "
    "Take nothing that the results do not say."
)

_MOST_KEPT = 100


class Observation(BaseModel):
    """What tool results say."""

    summary: Text = Field(description="The results in one or two sentences.")
    entities: Texts = Field(default_factory=list, description="People, places and things that matter.")
    facts: Texts = Field(default_factory=list, description="Facts that the results show.")
    key_findings: Texts = Field(default_factory=list, description="What matters most for the question.")
    subgoal_complete: Truth = Field(
        default=False, description="Whether the active subgoal of the plan is reached; false without a plan."
    )


class ObserveNode(StructuredNode):
    """Turns tool results into data: `summary`, `entities`, `facts` and `key_findings`.

    Entities and facts gather in the context under `extracted_entities` and `extracted_facts`, each once, the newest
    100. `subgoal_complete` completes the active subgoal of the plan.
    """

    own_prompt = OBSERVE_PROMPT
    own_output_key = "observation"
    own_schema = Observation

    def __init__(self, name: str = "observe", **options: Any) -> None:
        """Configure the node; all keywords of `PromptNode` are taken."""
        super().__init__(name, **options)

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Add what was extracted to the context."""
        for field, key in (("entities", "extracted_entities"), ("facts", "extracted_facts")):
            found = texts(fields.get(field))
            if found:
                kept = [held for held in texts(state.context.get(key)) if held not in found]
                state.context[key] = [*kept, *dict.fromkeys(found)][-_MOST_KEPT:]
        complete_active(fields, state)
