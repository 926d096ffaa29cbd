"""Turn what a run reports into events for the world around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from graphwright.caller import IsolationKey
from graphwright.events.base import AgentEvent, Severity
from graphwright.exceptions import GuardrailViolation
from graphwright.interrupts import APPROVAL
from graphwright.messages import text_of
from graphwright.observability.base import RunInfo, RunOutcome, agent_of
from graphwright.run_events import GuardDecided, RunEvent, RunPaused, ToolFinished, ToolProgress

__all__ = ["Invocation"]

_ENDS: dict[str, tuple[str, Severity]] = {
    "completed": ("invocation.complete", "info"),
    "paused": ("invocation.paused", "info"),
    "failed": ("invocation.error", "error"),
    "timeout": ("invocation.timeout", "error"),
    "aborted": ("invocation.aborted", "warning"),
}
_EXPIRED = ("expiry", "timeout")


class Invocation:
    """Tells of one run."""

    def __init__(self, run: RunInfo, tell: Callable[[AgentEvent], Any], *, slow_tool_ms: float) -> None:
        self._run = run
        self._tell = tell
        self._slow_tool_ms = slow_tool_ms
        self._begun = time.perf_counter()
        self._blocked = False
        self._say("invocation.start", resumed=run.is_resumed)

    def take(self, event: RunEvent) -> None:
        """Tell of one event, where it is worth telling."""
        if event.run_id and not self._run.run_id:
            self._run.run_id = event.run_id
        agent = agent_of(event, self._run.agent_id)
        if isinstance(event, ToolFinished):
            self._tool(event, agent)
        elif isinstance(event, ToolProgress):
            told: dict[str, Any] = {"progress": event.progress, "total": event.total, "message": event.message}
            self._say("tool.progress", agent=agent, tool=event.call.name, call_id=event.call.id, **told)
        elif isinstance(event, GuardDecided):
            self._guard(event, agent)
        elif isinstance(event, RunPaused):
            for item in event.pending:
                if item.kind == APPROVAL:
                    told = {"interrupt_id": item.id, "request": item.value}
                    self._say("approval.requested", "warning", agent=agent, **told)

    def end(self, outcome: RunOutcome) -> None:
        """Tell how the run ended."""
        if outcome.run_id:
            self._run.run_id = outcome.run_id
        error = outcome.error
        if isinstance(error, GuardrailViolation) and not self._blocked:
            self._say("guardrail.blocked", "warning", reason=str(error))
        if self._run.asks_cache and outcome.status == "completed":
            self._say("cache.hit" if outcome.cache_hit else "cache.miss")
        event_type, severity = _ENDS.get(outcome.status, _ENDS["failed"])
        data: dict[str, Any] = {"duration_ms": (time.perf_counter() - self._begun) * 1000}
        if outcome.usage is not None:
            data["total_tokens"] = outcome.usage.total_tokens
        if error is not None:
            data |= {"error": str(error), "error_type": type(error).__name__}
        self._say(event_type, severity, **data)

    def _tool(self, event: ToolFinished, agent: str) -> None:
        result = event.result
        about = {"tool": event.call.name, "call_id": event.call.id, "duration_ms": result.duration_ms}
        for note in result.notes or ():
            self._decision(note, about, agent)
        if not result.success and result.verdict not in ("denied", "rejected"):
            self._say("tool.error", "error", agent=agent, **about, error=text_of(result.message))
        if self._slow_tool_ms and not result.reused and result.duration_ms >= self._slow_tool_ms:
            self._say("tool.slow", "warning", agent=agent, **about)

    def _decision(self, note: dict[str, Any], about: dict[str, Any], agent: str) -> None:
        decided = note.get("approval")
        if decided not in ("approved", "denied"):
            return
        told = {key: note[key] for key in ("decided_by", "reviewer_id", "reason") if key in note}
        if decided == "approved":
            self._say("approval.granted", agent=agent, **about, **told)
        elif note.get("decided_by") in _EXPIRED:
            self._say("approval.timeout", "warning", agent=agent, **about, **told)
        else:
            self._say("approval.denied", "warning", agent=agent, **about, **told)

    def _guard(self, event: GuardDecided, agent: str) -> None:
        told: dict[str, Any] = {
            "seam": event.seam,
            "guard": event.guard,
            "reason": event.reason,
            "labels": list(event.labels),
        }
        if event.tool_name:
            told["tool"] = event.tool_name
        if event.action in ("deny", "ask"):
            self._blocked = True
            self._say("guardrail.blocked", "warning", agent=agent, **told)
        elif event.action == "rewrite":
            self._say("guardrail.redacted", agent=agent, **told)

    def _say(self, event_type: str, severity: Severity = "info", *, agent: str | None = None, **data: Any) -> None:
        run = self._run
        self._tell(
            AgentEvent(
                event_type=event_type,
                severity=severity,
                agent_id=run.agent_id if agent is None else agent,
                user_id=None if run.caller_key == IsolationKey.ANONYMOUS else str(run.caller_key),
                session_id=run.session_id or None,
                data=data,
                metadata={"run_id": run.run_id},
            )
        )
