"""The node that makes a plan of subgoals, rates it, and plans again when it is poor."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from graphwright._internal.jsonio import dumps
from graphwright.engine.base import NodeContext, context_of
from graphwright.engine.reasoning_nodes._reading import Quality, Text, Texts, quality, texts
from graphwright.engine.reasoning_nodes._structured import StructuredNode
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["Plan", "PlanNode"]

PLAN_PROMPT = (
    "Plan how to answer the user's question: concrete subgoals, the most important first. "
    "Rate the plan honestly from 1 (useless) to 5 (excellent). Do not answer the question yet."
)
MOST = "Give at most {count} subgoals."
KEPT_PLAN = "The plan so far is {plan}; reached are {completed}. Plan what is left."
POOR_PLAN = "The last plan, {plan}, was rated {score:g} of 5, which is below {threshold:g}. Make a better one."


class Plan(BaseModel):
    """A plan."""

    subgoals: Texts = Field(min_length=1, description="The steps to the answer, in order.")
    priorities: Texts = Field(default_factory=list, description="The priority of each subgoal, in the same order.")
    active_subgoal: Text = Field(default="", description="The subgoal to work on now.")
    quality_score: Quality = Field(
        validation_alias=AliasChoices("quality_score", "quality"),
        description="How good the plan is, from 1 (useless) to 5 (excellent).",
    )
    completed: Texts = Field(default_factory=list, description="Subgoals of the earlier plan that are reached.")


class PlanNode(StructuredNode):
    """Makes a plan of subgoals in `state.plan`, and plans again while its own rating is below the threshold.

    The fields are `subgoals`, `priorities`, `active_subgoal` (the first that is not completed) and `quality_score`.
    A poor plan leads to the transition `"replan"`, or to this node again, as long as the node may still run.
    """

    reenterable = True

    own_flags = frozenset({NodeFlag.STATEFUL, NodeFlag.OBSERVABLE})
    own_prompt = PLAN_PROMPT
    own_output_key = "plan_output"
    own_schema = Plan

    def __init__(
        self,
        name: str = "plan",
        *,
        max_subgoals: int = 4,
        quality_threshold: float = 3,
        include_observations: bool = False,
        include_plan: bool = False,
        **options: Any,
    ) -> None:
        """Configure the node; all keywords of `PromptNode` are taken.

        Raises:
            ConfigurationError: `max_subgoals` is below 1.
        """
        if max_subgoals < 1:
            raise ConfigurationError(f"max_subgoals of node {name!r} is {max_subgoals!r}; it must be at least 1")
        self.max_subgoals = max_subgoals
        self.quality_threshold = quality_threshold
        self._extra = MOST.format(count=max_subgoals)
        super().__init__(
            name,
            include_observations=include_observations,
            include_plan=include_plan,
            **options,
        )

    def aside(self, state: GraphState, context: NodeContext) -> str:
        """Tell the model of the plan that there is, and that it was poor if it was."""
        if not state.plan:
            return ""
        told = [KEPT_PLAN.format(plan=dumps(state.plan), completed=dumps(state.completed))] if state.completed else []
        last = next((seen for seen in reversed(state.node_history) if seen.node_name == self.name), None)
        if last is not None and isinstance(last.output, dict):
            score = last.output.get("quality_score")
            if score is not None and score < self.quality_threshold:
                told.append(POOR_PLAN.format(plan=dumps(state.plan), score=score, threshold=self.quality_threshold))
        return "\n".join(told)

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Plan, keep the plan in the state, and plan again if it is poor and there is a visit left."""
        result = await super().execute(state, config)
        fields = result.output
        if result.error is None and isinstance(fields, dict) and fields.get("quality_score") is not None:
            poor = fields["quality_score"] < self.quality_threshold
            if poor and self.may_run_again(state, context_of(config)):
                result.next_node = self.transitions.get("replan", self.name)
                result.transition_reason = "the plan is poor"
        return result

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Keep the plan; what is completed stays completed."""
        for reached in texts(fields.get("completed")):
            if reached in state.plan:
                state.complete_subgoal(reached)
        score = fields.get("quality_score", fields.get("quality"))
        if score is not None:
            fields["quality_score"] = quality(score)
        subgoals = list(dict.fromkeys(texts(fields.get("subgoals"))))[: self.max_subgoals]
        if subgoals:
            state.plan = subgoals
        fields["subgoals"] = list(state.plan)
        fields["active_subgoal"] = state.active_subgoal or ""
