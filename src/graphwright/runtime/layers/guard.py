"""Judge what the user sent before anything of a run begins, and give the run its guards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphwright.engine.journal import LeavesRun
from graphwright.exceptions import GuardrailViolation
from graphwright.guardrails import RunGuards
from graphwright.messages import as_messages
from graphwright.runtime.layers.deadline import deadline_layer

if TYPE_CHECKING:
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["guard_layer"]


def guard_layer(guards: Sequence[Any], *, max_seconds: float = 0) -> Layer:
    """Return the layer that judges the input; the run begins when the verdict is there, and no sooner.

    The verdict may take `max_seconds`; 0 is no limit.
    """
    limited = deadline_layer(max_seconds) if max_seconds else None

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        checks = RunGuards(guards, emit=request.emit, leaves=_leaving)

        async def check(request: RunRequest) -> None:
            await (_check_input(request, checks) if request.resume is None else _check_answers(request, checks))

        await (check(request) if limited is None else limited(request, check))
        request.guards = checks
        try:
            return await call_next(request)
        except LeavesRun as signal:
            # A part of another run is refused alone: the other one is told of it.
            if request.inside is not None and isinstance(signal.error, GuardrailViolation):
                raise signal.error from None
            raise

    return layer


def _leaving(error: Exception) -> BaseException:
    return LeavesRun(error)


async def _check_answers(request: RunRequest, checks: RunGuards) -> None:
    """Judge what a paused run is answered; it waits as before where that is refused."""
    assert request.resume is not None
    answers = await checks.check_input(request.resume.answers)
    if answers is not request.resume.answers:
        request.resume = replace(request.resume, answers=answers)


async def _check_input(request: RunRequest, checks: RunGuards) -> None:
    """Judge all that was sent: every message, every block and caption of it, and the context."""
    given = request.input
    context: Any = {}
    if isinstance(given, Mapping) and "messages" in given:
        context = dict(given.get("context") or {})
        messages = as_messages(given["messages"])
    else:
        messages = as_messages(given)
    parts = [messages, context, dict(request.context or {})]
    passed = await checks.check_input(parts, beside=_arguments(messages))
    if passed is parts:
        return
    new_messages, new_context, request.context = passed
    if isinstance(given, Mapping) and "messages" in given:
        request.input = {**given, "messages": new_messages}
        if context:
            request.input["context"] = new_context
    else:
        request.input = new_messages


def _arguments(messages: Sequence[Any]) -> list[str]:
    """Return the arguments of calls in messages that were handed in."""
    calls = [call for message in messages for call in getattr(message, "tool_calls", None) or ()]
    return [text for call in calls for text in _strings(call.get("args"))]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for entry in value.values() for text in _strings(entry)]
    return [text for entry in value for text in _strings(entry)] if isinstance(value, (list, tuple)) else []
