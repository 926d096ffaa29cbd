"""The guards in the box for what a user sends and what the bot answers; a model rates how harmful it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, field_validator

from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.guards.base import GuardDecision
from graphwright.orchestrator.guards.chain import text_usage
from graphwright.orchestrator.guards.judge import Judge, Question, pieces_of
from graphwright.orchestrator.guards.prompts import JUDGE_TEXT, SAFETY_CATEGORIES
from graphwright.usage import Usage

__all__ = ["SafetyInputGuard", "SafetyOutputGuard", "SafetyVerdict"]

_SEVERITIES = ("none", "low", "medium", "high")
_PIECE_CHARS = 6000
_OVERLAP_CHARS = 600
_MOST_PIECES = 200
_REASON_CHARS = 500


class SafetyVerdict(BaseModel):
    """How a model rates a text."""

    severity: str
    """`none`, `low`, `medium` or `high`; any other word blocks."""
    category: str = ""
    reason: str = ""

    @field_validator("category", "reason", mode="before")
    @classmethod
    def _text(cls, value: Any) -> str:
        return value if isinstance(value, str) else ""


class _SafetyGuard:
    """Rates a text, in overlapping parts where it is long. A rating that cannot be had is raised as an error."""

    role: ClassVar[str]

    def __init__(
        self,
        llm: Any,
        custom_categories: Iterable[str] | Mapping[str, str] | None = None,
        block_severities: Iterable[str] = ("medium", "high"),
        *,
        timeout: float | None = 30.0,
        usage: Usage | None = None,
    ) -> None:
        """Build the guard.

        `custom_categories` come on top of the usual ones: names, or a dict of name to what belongs to it. `timeout` is
        the seconds for each part. The tokens go to the run that asks; outside of one, to `usage` where it is given.

        Raises:
            ConfigurationError: an argument does not fit.
        """
        categories = {**SAFETY_CATEGORIES, **_categories(custom_categories)}
        self.block_severities = _severities(block_severities)
        self._judge = Judge(llm, SafetyVerdict, timeout=timeout, objects=self._blocks)
        self._usage = usage
        listed = "\n".join(f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in categories.items())
        self._rules = JUDGE_TEXT.replace("{role}", self.role).replace("{categories}", listed)

    async def __call__(self, text: str) -> GuardDecision:
        """Judge a text.

        Raises:
            JudgeError: there is no verdict.
        """
        if not text.strip():
            return GuardDecision.allow()
        parts = pieces_of(text, _PIECE_CHARS, _OVERLAP_CHARS)
        if len(parts) > _MOST_PIECES:
            return GuardDecision.deny(f"the text has {len(text)} characters, which is too long to be checked")
        questions = [
            Question(
                rules=self._rules,
                data=[("text" if len(parts) == 1 else f"text-part-{number}-of-{len(parts)}", part)],
            )
            for number, part in enumerate(parts, 1)
        ]
        asking = text_usage.get()
        verdict = await self._judge.first_objection(questions, self._usage if asking is None else asking)
        if verdict is None:
            return GuardDecision.allow()
        what = f"{verdict.category or 'unnamed category'}, severity {verdict.severity or 'unknown'}"
        said = verdict.reason[:_REASON_CHARS]
        return GuardDecision.deny(f"{what}: {said}" if said else what)

    def _blocks(self, verdict: SafetyVerdict) -> bool:
        severity = verdict.severity.strip().lower()
        return severity in self.block_severities or severity not in _SEVERITIES

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._judge.model.name!r}, block_severities={sorted(self.block_severities)})"


class SafetyInputGuard(_SafetyGuard):
    """Rejects what a user sends when a model rates it as harmful."""

    role = "sent by a user to an assistant"


class SafetyOutputGuard(_SafetyGuard):
    """Rejects an answer when a model rates it as harmful."""

    role = "written by an assistant for a user"


def _categories(given: Iterable[str] | Mapping[str, str] | None) -> dict[str, str]:
    if given is None:
        return {}
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(f"custom_categories is {given!r}; give a list of names, or a dict of name to meaning")
    found = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    for name, meaning in found.items():
        if not isinstance(name, str) or not name.strip() or not isinstance(meaning, str):
            raise ConfigurationError(f"custom_categories has {name!r}: {meaning!r}; give texts")
    return found


def _severities(given: Iterable[str]) -> frozenset[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(f"block_severities is {given!r}; give a list such as ('medium', 'high')")
    entries = list(given)
    if not entries:
        raise ConfigurationError("block_severities is empty, so nothing would be blocked; give at least one severity")
    for entry in entries:
        if not isinstance(entry, str) or entry.strip().lower() in ("", "none"):
            raise ConfigurationError(f"block_severities has {entry!r}; use 'low', 'medium' and 'high'")
    return frozenset(entry.strip().lower() for entry in entries)
