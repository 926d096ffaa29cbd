"""Pieces of prompts: blocks of text under a budget, ways to reason, and points of view."""

from __future__ import annotations

from graphwright.prompts.blocks import Block, BlockSet, Selection
from graphwright.prompts.perspectives import Advisor, Analyst, Creative, Critic, Perspective, Planner, Reviewer
from graphwright.prompts.strategies import (
    ChainOfThought,
    Decompose,
    FewShot,
    PlanAndSolve,
    SelfCritique,
    Strategy,
    StrategyChain,
)

__all__ = [
    "Advisor",
    "Analyst",
    "Block",
    "BlockSet",
    "ChainOfThought",
    "Creative",
    "Critic",
    "Decompose",
    "FewShot",
    "Perspective",
    "PlanAndSolve",
    "Planner",
    "Reviewer",
    "Selection",
    "SelfCritique",
    "Strategy",
    "StrategyChain",
]
