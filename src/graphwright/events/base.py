"""The words of events: what is told, and who takes it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args
from uuid import uuid4

from graphwright.exceptions import ConfigurationError

__all__ = ["EVENT_TYPES", "AgentEvent", "EventSink", "Severity"]

Severity = Literal["info", "warning", "error", "critical"]

EVENT_TYPES = (
    "invocation.start",
    "invocation.complete",
    "invocation.error",
    "invocation.timeout",
    "invocation.paused",
    "invocation.aborted",
    "tool.error",
    "tool.slow",
    "tool.progress",
    "guardrail.blocked",
    "guardrail.redacted",
    "approval.requested",
    "approval.granted",
    "approval.denied",
    "approval.timeout",
    "cache.hit",
    "cache.miss",
)
"""What agents tell; `AgentEvent` takes words of your own too."""


@dataclass(slots=True, kw_only=True)
class AgentEvent:
    """One thing that an agent tells the world around it."""

    event_type: str
    severity: Severity = "info"
    timestamp: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    agent_id: str = ""
    user_id: str | None = None
    """The isolation key of the caller; `None` for an anonymous one."""
    session_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    event_id: str = field(default_factory=lambda: uuid4().hex)
    """The same in every attempt to deliver it."""

    def __post_init__(self) -> None:
        if not self.event_type or not isinstance(self.event_type, str):
            raise ConfigurationError(f"event_type is {self.event_type!r}; give a word such as 'tool.error'")
        if self.severity not in get_args(Severity):
            raise ConfigurationError(f"severity is {self.severity!r}; use one of {', '.join(get_args(Severity))}")

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return asdict(self)


class EventSink:
    """Takes events somewhere. One that raises, or takes its time, keeps no other sink waiting."""

    name = "sink"

    def wants(self, event: AgentEvent) -> bool:
        """Return whether the sink takes the event; asked before it is queued."""
        return True

    async def deliver(self, event: AgentEvent) -> None:
        """Bring one event to its place; raising means that it was not delivered."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release what is held."""
