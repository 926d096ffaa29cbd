"""The guard that holds every call against the operator's list of what must not be done; a model is the judge."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from graphwright._internal.jsonio import dumps
from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.guards.base import GuardContext, GuardDecision
from graphwright.orchestrator.guards.judge import Judge, JudgeError, Question, pieces_of
from graphwright.orchestrator.guards.prompts import JUDGE_CALL, numbered

__all__ = ["ProhibitedActionsGuard", "ProhibitedVerdict"]

logger = logging.getLogger(__name__)

_REMEMBERED = 512
_MOST_PIECES = 200
_LEAST_CHARS = 100
_GOAL_CHARS = 1000
_DESCRIPTION_CHARS = 500
_REASON_CHARS = 500


class ProhibitedVerdict(BaseModel):
    """What the judge says of one call."""

    violates: bool = Field(strict=True)
    rule_index: int | None = None
    """The number of the rule, from 1."""
    reason: str = ""

    @field_validator("rule_index", mode="before")
    @classmethod
    def _known_or_none(cls, value: Any) -> Any:
        # What is violated is a courtesy; a number that cannot be read must not undo the verdict.
        if isinstance(value, str) and value.strip().isdigit():
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @field_validator("reason", mode="before")
    @classmethod
    def _text(cls, value: Any) -> str:
        return value if isinstance(value, str) else ""


class ProhibitedActionsGuard:
    """Lets no call pass that does what the operator has prohibited, as a model judges it.

    The judge sees the tool, the goal and all arguments as they are, in overlapping parts where they are long. A judge
    that fails twice, or says nothing that can be read, denies the call. What was judged once is remembered by thread,
    run and call.
    """

    def __init__(
        self,
        judge_model: Any,
        prohibited: Iterable[str],
        scope: Literal["risky", "all"] = "risky",
        on_error: Literal["deny", "allow"] = "deny",
        max_arg_chars: int = 1500,
        *,
        timeout: float | None = 30.0,
    ) -> None:
        """Build the guard.

        `scope` says whether calls of tools with risk 0 are judged as well, `max_arg_chars` how much of the arguments
        the judge is shown at a time, and `timeout` the seconds that it has for each part.

        Raises:
            ConfigurationError: an argument does not fit.
        """
        self.prohibited = _rules_in(prohibited)
        for name, value, known in (("scope", scope, ("risky", "all")), ("on_error", on_error, ("deny", "allow"))):
            if value not in known:
                raise ConfigurationError(f"{name} is {value!r}; use {' or '.join(map(repr, known))}")
        if isinstance(max_arg_chars, bool) or not isinstance(max_arg_chars, int) or max_arg_chars < _LEAST_CHARS:
            raise ConfigurationError(
                f"max_arg_chars is {max_arg_chars!r}; give a whole number of at least {_LEAST_CHARS}"
            )
        self.scope, self.on_error, self.max_arg_chars = scope, on_error, max_arg_chars
        self._judge = Judge(judge_model, ProhibitedVerdict, timeout=timeout, objects=lambda verdict: verdict.violates)
        self._rules = JUDGE_CALL.replace("{rules}", numbered(self.prohibited))
        self._known: OrderedDict[tuple[str, ...], GuardDecision] = OrderedDict()

    async def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if self.scope == "risky" and context.risk_level <= 0:
            return GuardDecision.allow()
        arguments = dumps(context.args)
        key = _key(context, arguments)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        parts = pieces_of(arguments, self.max_arg_chars, self.max_arg_chars // 5)
        if len(parts) > _MOST_PIECES:
            return GuardDecision.deny(
                f"the arguments have {len(arguments)} characters, which is too long to be held against the rules"
            )
        questions = [self._question(context, part, number, len(parts)) for number, part in enumerate(parts, 1)]
        # A failure that is to be passed over must not hide what a later part holds.
        gives_up = self.on_error == "deny"
        try:
            verdict = await self._judge.first_objection(questions, context.usage, gives_up=gives_up)
        except JudgeError as error:
            logger.warning("the call of %r could not be held against the rules: %s", context.tool_name, error)
            if self.on_error == "allow":
                return GuardDecision.allow()
            return GuardDecision.deny(f"the call could not be held against the rules: {error}")
        decision = GuardDecision.allow() if verdict is None else GuardDecision.deny(self._reason(verdict))
        self._remember(key, decision)
        return decision

    def _question(self, context: GuardContext, part: str, number: int, count: int) -> Question:
        data = [
            ("tool", context.tool_name),
            ("description", _cut(context.tool_description, _DESCRIPTION_CHARS)),
            ("goal", _cut(context.goal, _GOAL_CHARS)),
            ("arguments" if count == 1 else f"arguments-part-{number}-of-{count}", part),
        ]
        return Question(rules=self._rules, data=data)

    def _reason(self, verdict: ProhibitedVerdict) -> str:
        number = verdict.rule_index
        said = _cut(verdict.reason, _REASON_CHARS)
        if number is None or not 1 <= number <= len(self.prohibited):
            return f"this is prohibited: {said}" if said else "this is prohibited"
        rule = f"rule {number} prohibits this ({self.prohibited[number - 1]})"
        return f"{rule}: {said}" if said else rule

    def _remember(self, key: tuple[str, ...], decision: GuardDecision) -> None:
        if not key[2]:  # a call without an id cannot be told from the next
            return
        self._known[key] = decision
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def __repr__(self) -> str:
        return f"ProhibitedActionsGuard({self._judge.model.name!r}, {list(self.prohibited)}, scope={self.scope!r})"


def _rules_in(prohibited: Iterable[str]) -> tuple[str, ...]:
    if isinstance(prohibited, (str, bytes)) or not isinstance(prohibited, Iterable):
        raise ConfigurationError(f"prohibited is {prohibited!r}; give a list of texts")
    given = list(prohibited)
    for rule in given:
        if not isinstance(rule, str):
            raise ConfigurationError(f"prohibited has {rule!r}; give texts")
    rules = tuple(rule.strip() for rule in given if rule.strip())
    if not rules:
        raise ConfigurationError("prohibited is empty; name at least one thing that must not be done")
    return rules


def _key(context: GuardContext, arguments: str) -> tuple[str, ...]:
    # A provider may give out its call ids again, so what the judge is shown belongs to the key.
    shown = "\0".join((context.tool_name, context.tool_description, context.goal, arguments))
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
    return (context.session_id, context.run_id, context.tool_call_id, digest)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... (cut)"
