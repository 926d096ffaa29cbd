"""What the stages of the patterns answer in: data models that decide where a run goes on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from graphwright.engine.reasoning_nodes._reading import Quality, Share, Text, Texts, Truth

__all__ = [
    "DebateCritique",
    "DebateVerdict",
    "PeoatrPlan",
    "PeoatrReflection",
    "PeoatrThought",
    "ResearchVerdict",
]


class PeoatrPlan(BaseModel):
    """A plan."""

    subgoals: Texts = Field(description="The steps to the answer, in order.")
    active_subgoal: Text = Field(description="The subgoal to work on now.")
    quality_score: Quality = Field(description="How good the plan is, from 1 (useless) to 5 (excellent).")


class PeoatrThought(BaseModel):
    """What the last results mean."""

    analysis: Text = Field(description="What the results say, and what is still missing.")
    subgoal_complete: Truth = Field(description="Whether the active subgoal is reached.")
    route: Literal["continue", "reflect"] = Field(
        description="'continue' to act again now, 'reflect' to look at the whole."
    )


class PeoatrReflection(BaseModel):
    """A look back at the work so far."""

    progress: Text = Field(description="How far the work is.")
    mistake: Text = Field(description="The mistake to learn from; empty when there is none.")
    correction: Text = Field(description="What to do instead; empty when there is no mistake.")
    confidence: Share = Field(description="How sure you are that the work so far is right, from 0 to 1.")
    route: Literal["answer", "replan", "continue"] = Field(
        description="'answer' when the question can be answered, 'replan' when the plan is wrong, else 'continue'."
    )


class ResearchVerdict(BaseModel):
    """Whether findings hold."""

    passes: Truth = Field(description="Whether every finding is backed by a tool result and the question is covered.")
    issues: Texts = Field(description="What is missing, unfounded or contradictory; empty when it passes.")


class DebateCritique(BaseModel):
    """What speaks against a proposal."""

    weaknesses: Texts = Field(description="What is wrong with the proposal.")
    improvements: Texts = Field(description="What would make it better.")
    severity: Share = Field(description="How bad the worst weakness is, from 0 (harmless) to 1 (fatal).")


class DebateVerdict(BaseModel):
    """Whether a proposal stands."""

    passes: Truth = Field(description="Whether the proposal is a good answer as it stands.")
    issues: Texts = Field(description="What must change; empty when it passes.")
