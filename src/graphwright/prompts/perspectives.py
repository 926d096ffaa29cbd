"""Points of view: each puts the role in which the model answers in front of the system text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphwright.exceptions import ConfigurationError

__all__ = ["Advisor", "Analyst", "Creative", "Critic", "Perspective", "Planner", "Reviewer"]

ANALYST = (
    "You look at things as an analyst: separate facts from assumptions, name the evidence for every conclusion, and "
    "say how certain it is."
)
CRITIC = (
    "You look at things as a critic: search for errors, weak arguments and missing cases first, and say for each how "
    "serious it is and how it could be put right."
)
ADVISOR = (
    "You look at things as an advisor: weigh the options with their costs and risks for the person who asks, and "
    "recommend one with the reason."
)
CREATIVE = (
    "You look at things as an inventor: consider several unusual ideas before you settle on one, and join what does "
    "not obviously belong together."
)
PLANNER = (
    "You look at things as a planner: think of the goal, the steps to it, what each depends on, and what could stop it."
)
REVIEWER = (
    "You look at things as a reviewer: check the work against what was asked, point by point, and say plainly what is "
    "met and what is not."
)


@dataclass(frozen=True, slots=True)
class Perspective:
    """A point of view in your own words."""

    framing: str

    def __post_init__(self) -> None:
        if not isinstance(self.framing, str) or not self.framing.strip():
            raise ConfigurationError(f"framing is {self.framing!r}; give the text that sets the point of view")

    def apply(self, text: str, context: Any = None) -> str:
        """Return the system text with the framing in front."""
        return f"{self.framing}\n\n{text}" if text else self.framing


@dataclass(frozen=True, slots=True)
class Analyst(Perspective):
    """Evidence first, with how certain it is."""

    framing: str = ANALYST


@dataclass(frozen=True, slots=True)
class Critic(Perspective):
    """Errors and weaknesses first."""

    framing: str = CRITIC


@dataclass(frozen=True, slots=True)
class Advisor(Perspective):
    """Options, risks, and one recommendation."""

    framing: str = ADVISOR


@dataclass(frozen=True, slots=True)
class Creative(Perspective):
    """Several unusual ideas before one."""

    framing: str = CREATIVE


@dataclass(frozen=True, slots=True)
class Planner(Perspective):
    """Goal, steps and what they depend on."""

    framing: str = PLANNER


@dataclass(frozen=True, slots=True)
class Reviewer(Perspective):
    """The work against what was asked."""

    framing: str = REVIEWER
