"""Use the guards of `graphwright.guardrails` in a bot: the same verdicts, in the words of its chains."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.exceptions import ConfigurationError
from graphwright.guardrails import Guarded, Seam, as_guards
from graphwright.guardrails.judging import judged, name_of, seams_of
from graphwright.orchestrator.guards.base import GuardContext, GuardDecision

__all__ = ["SharedGuard", "shared_guard"]

_SEAMS: dict[str, Seam] = {"tool_guards": "tool_arguments", "input_guards": "input", "output_guards": "output"}


class SharedGuard:
    """A guard at one seam of a bot. A text that it would rewrite is rejected, since a bot's texts stay whole."""

    def __init__(self, guard: Any, seam: Seam) -> None:
        self.guard, self.seam = guard, seam
        self.name = name_of(guard)

    async def __call__(self, subject: str | GuardContext) -> GuardDecision:
        """Judge a text or a tool call."""
        if isinstance(subject, str):
            guarded = Guarded(self.seam, subject)
        else:
            guarded = Guarded(
                self.seam, dumps(subject.args), tool_name=subject.tool_name, arguments=deepcopy(subject.args)
            )
        args: dict[str, Any] | None = None
        for _, verdict in await judged([self.guard], guarded):
            if verdict.action in ("deny", "ask"):
                return GuardDecision(verdict.action, verdict.reason)
            if verdict.action == "rewrite":
                if not isinstance(verdict.value, dict):
                    return GuardDecision.deny(verdict.reason or "a part of it must not be seen")
                args = verdict.value
        return GuardDecision.allow() if args is None else GuardDecision.rewrite(args)

    def __repr__(self) -> str:
        return f"SharedGuard({self.guard!r}, {self.seam!r})"


def shared_guard(value: Any, argument: str) -> SharedGuard:
    """Return the guard as a bot asks it where it was given.

    Raises:
        ConfigurationError: it judges nothing there.
    """
    seam = _SEAMS[argument]
    (guard,) = as_guards(value)
    if seam not in seams_of([guard]):
        hint = "; give it scan_tool_arguments=True" if seam == "tool_arguments" else ""
        raise ConfigurationError(f"{argument} has {guard!r}, which judges no {seam.replace('_', ' ')}{hint}")
    return SharedGuard(guard, seam)
