"""Ask guards in order, and act on the first that objects. What is not a clear yes is a no."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Iterable
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphwright.orchestrator.guards.base import GuardContext, GuardDecision, GuardEvent, guard_name_of
from graphwright.usage import Usage

__all__ = ["ChainVerdict", "IOVerdict", "evaluate_guard_chain", "evaluate_io_guards", "text_usage"]

logger = logging.getLogger(__name__)

Stage = Literal["input", "output"]

text_usage: ContextVar[Usage | None] = ContextVar("graphwright_text_usage", default=None)
"""Where a guard of texts adds the tokens of the models that it asks, while it is asked."""


@dataclass(slots=True)
class ChainVerdict:
    """What the guards want to become of a tool call."""

    action: Literal["allow", "deny", "ask"]
    args: dict[str, Any]
    """The arguments that would run: those of the call, or of the last rewrite, also where a later guard asks."""
    rewritten: bool = False
    reason: str = ""
    guard_name: str = ""
    """The guard that denied or asked."""
    events: list[GuardEvent] = field(default_factory=list)
    """One for each decision that was not `allow`."""


@dataclass(slots=True)
class IOVerdict:
    """What the guards say of a text."""

    allowed: bool = True
    guard: str = ""
    """The guard that rejected it."""
    reason: str = ""
    events: list[GuardEvent] = field(default_factory=list)
    failed: bool = False
    """Whether it was rejected because a guard could not judge: it raised, or gave no decision."""


async def evaluate_guard_chain(guards: Iterable[Any], context: GuardContext) -> ChainVerdict:
    """Ask the guards in order; each sees the arguments as the guards before it have left them.

    The first `deny` or `ask` ends the chain. A guard that raises, or answers with anything but a decision, denies.
    """
    verdict = ChainVerdict("allow", context.args)
    for guard in guards:
        decision = await _tool_decision(guard, context, verdict.args)
        if decision.action == "allow":
            continue
        name = decision.guard_name or guard_name_of(guard)
        verdict.events.append(_event(decision, name, context.tool_name, context.tool_call_id))
        if decision.action == "rewrite":
            assert decision.args_override is not None
            verdict.args, verdict.rewritten = decision.args_override, True
            continue
        verdict.action = decision.action
        verdict.reason, verdict.guard_name = decision.reason, name
        break
    return verdict


async def evaluate_io_guards(
    guards: Iterable[Any], text: str, *, stage: Stage, usage: Usage | None = None
) -> IOVerdict:
    """Ask the guards about a text; the first that does not allow it rejects it.

    The tokens of guards that ask a model are added to `usage`.
    """
    for guard in guards:
        token = text_usage.set(usage)
        try:
            decision, failed = await _decision(guard, text)
        finally:
            text_usage.reset(token)
        if decision.action == "allow":
            continue
        name = decision.guard_name or guard_name_of(guard)
        event = _event(decision, name, "", "")
        event["stage"] = stage
        return IOVerdict(False, name, decision.reason, [event], failed)
    return IOVerdict()


async def _tool_decision(guard: Any, context: GuardContext, args: dict[str, Any]) -> GuardDecision:
    """Return what a guard says of a call; what it is shown and what it gives share nothing with anybody."""
    try:
        shown = replace(context, args=deepcopy(args), tool_counts=dict(context.tool_counts))
    except Exception as error:  # arguments that cannot be copied could be changed by a guard behind everybody's back
        logger.exception("the arguments of %r cannot be copied for guard %r", context.tool_name, guard_name_of(guard))
        return GuardDecision.deny(f"the arguments cannot be shown to the guard: {type(error).__name__}")
    decision, _ = await _decision(guard, shown)
    if decision.action != "rewrite":
        return decision
    try:
        return replace(decision, args_override=deepcopy(decision.args_override))
    except Exception as error:  # as above: nobody may hold on to what is going to run
        logger.exception("what guard %r gave as arguments cannot be copied", guard_name_of(guard))
        return GuardDecision.deny(f"the guard gave arguments that cannot be used: {type(error).__name__}")


async def _decision(guard: Any, subject: Any) -> tuple[GuardDecision, bool]:
    """Return what a guard says, and whether it failed to say anything."""
    try:
        answer = guard(subject)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:  # a guard is foreign code; one that cannot judge refuses
        logger.exception("guard %r failed", guard_name_of(guard))
        return GuardDecision.deny(f"the guard failed: {type(error).__name__}"), True
    if isinstance(answer, GuardDecision):
        return answer, False
    kind = type(answer).__name__
    logger.error("guard %r answered with %s, which is no GuardDecision", guard_name_of(guard), kind)
    return GuardDecision.deny(f"the guard answered with {kind}, which is no GuardDecision"), True


def _event(decision: GuardDecision, name: str, tool_name: str, tool_call_id: str) -> GuardEvent:
    return {
        "type": "guard_decision",
        "guard": name,
        "tool_name": tool_name,
        "tool_call_id": tool_call_id,
        "action": decision.action,
        "reason": decision.reason,
        "ts": time.time(),
    }
