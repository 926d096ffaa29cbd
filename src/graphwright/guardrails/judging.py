"""Ask guards in order and act on the first that objects. What is not a clear yes is a no."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from graphwright.exceptions import ConfigurationError, GuardrailViolation
from graphwright.guardrails.base import SEAMS, Guard, Guarded, GuardVerdict, Seam

__all__ = ["MethodGuard", "as_guards", "is_panic", "judged", "name_of", "seams_of"]

logger = logging.getLogger(__name__)

_METHODS: dict[Seam, str] = {
    "input": "check_input",
    "output": "check_output",
    "tool_arguments": "check_tool_arguments",
    "tool_result": "check_tool_result",
    "memory_write": "check_memory_write",
}


class MethodGuard:
    """A guard made of an object with `check_input`, `check_output` and the like, plain or async.

    Each takes the text, that of a tool the tool's name first, and returns the text that goes on; it raises to refuse.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self.fail_open = getattr(target, "fail_open", False) is True
        found = {seam for seam, name in _METHODS.items() if callable(getattr(target, name, None))}
        if getattr(target, "scan_tool_results", True) is False:
            found.discard("tool_result")
        self.seams = frozenset(found)
        self.name = name_of(target)
        self.hold = getattr(target, "hold", "reply")

    async def judge(self, guarded: Guarded) -> GuardVerdict:
        """Call the method of the seam."""
        method = getattr(self.target, _METHODS[guarded.seam])
        given: Any = guarded.arguments if guarded.seam == "tool_arguments" else guarded.text
        before = deepcopy(given)
        try:
            answer = method(guarded.tool_name, given) if guarded.seam.startswith("tool_") else method(given)
            if inspect.isawaitable(answer):
                answer = await answer
        except GuardrailViolation as violation:
            return GuardVerdict("deny", report=violation.report)
        if isinstance(answer, GuardVerdict):
            return answer
        if not isinstance(answer, dict if guarded.seam == "tool_arguments" else str):
            raise TypeError(f"{_METHODS[guarded.seam]} returned {type(answer).__name__}; let it return what goes on")
        return GuardVerdict() if answer == before else GuardVerdict("rewrite", value=answer)


def as_guards(value: Any) -> tuple[Any, ...]:
    """Return the guards that `guardrails=` stands for: True, a guard, or a list of them.

    Raises:
        ConfigurationError: something there is no guard.
    """
    if value is None or value is False:
        return ()
    if value is True:
        from graphwright.guardrails.scanner import SecurityScanner

        return (SecurityScanner.default(),)
    if isinstance(value, (list, tuple)):
        return tuple(guard for entry in value for guard in as_guards(entry))
    if isinstance(value, type):
        raise ConfigurationError(f"guardrails has the class {value.__name__!r}; give an object of it")
    if isinstance(value, Guard):
        return (value,)
    if not isinstance(value, (str, bytes, Mapping)):
        guard = MethodGuard(value)
        if guard.seams:
            return (guard,)
    raise ConfigurationError(
        f"guardrails is {value!r}; give True, a SecurityScanner, an object with check_input or check_output, or a list"
    )


def seams_of(guards: Iterable[Any]) -> frozenset[Seam]:
    """Return the seams at which any of the guards judges."""
    return frozenset(seam for guard in guards for seam in getattr(guard, "seams", SEAMS))


async def judged(guards: Iterable[Any], guarded: Guarded) -> list[tuple[str, GuardVerdict]]:
    """Return what each guard said that did not simply allow it, in order; the last is the one that ended it.

    Each guard sees what the ones before it have put in place.
    """
    said: list[tuple[str, GuardVerdict]] = []
    for guard in guards:
        if guarded.seam not in getattr(guard, "seams", SEAMS):
            continue
        verdict = await _verdict(guard, guarded)
        if verdict.action == "allow" and not verdict.failed and not verdict.reason:
            continue
        said.append((name_of(guard), verdict))
        if verdict.action in ("deny", "ask"):
            break
        if verdict.action == "rewrite":
            key = "arguments" if isinstance(verdict.value, dict) else "text"
            guarded = replace(guarded, **{key: verdict.value})
    return said


async def _verdict(guard: Any, guarded: Guarded) -> GuardVerdict:
    open_ = getattr(guard, "fail_open", False) is True
    try:
        answer = await guard.judge(replace(guarded, arguments=deepcopy(guarded.arguments)))
        if not isinstance(answer, GuardVerdict):
            raise TypeError(f"it answered with {type(answer).__name__}, which is no GuardVerdict")
        if answer.action == "rewrite" and isinstance(answer.value, dict) != (guarded.seam == "tool_arguments"):
            raise TypeError(f"it put a {type(answer.value).__name__} in place of the {guarded.seam}")
    except BaseException as error:  # a guard is foreign code; one that cannot judge refuses
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        # What it raised may hold the text, so only its kind is told.
        logger.error("guard %r failed at the %s: %s", name_of(guard), guarded.seam, type(error).__name__)
        reason = f"the guard failed: {type(error).__name__}"
        return GuardVerdict("allow" if open_ else "deny", reason, failed=True)
    return answer


def is_panic(error: BaseException) -> bool:
    """Return whether an error is what code written in Rust raises when it breaks: no `Exception`, and no order."""
    return type(error).__name__ == "PanicException"


def name_of(guard: Any) -> str:
    """Return the name by which a guard is reported."""
    name = getattr(guard, "name", None)
    return name if isinstance(name, str) and name else type(guard).__name__
