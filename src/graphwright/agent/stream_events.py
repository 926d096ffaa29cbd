"""What `astream_with_tools` yields."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = [
    "DoneEvent",
    "ErrorEvent",
    "InterruptEvent",
    "RestartEvent",
    "RetryEvent",
    "StreamEvent",
    "TokenEvent",
    "ToolEndEvent",
    "ToolProgressEvent",
    "ToolStartEvent",
]


@dataclass(slots=True, kw_only=True)
class StreamEvent:
    """Something that happened while an agent answered; `type` says what."""

    type: str = ""
    timestamp: float = field(default_factory=time.monotonic)
    """`time.monotonic()` seconds."""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if not entry.name.startswith("_")}

    def to_json(self) -> str:
        """Return the event as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, default=str)


@dataclass(slots=True, kw_only=True)
class ToolStartEvent(StreamEvent):
    """A tool call begins."""

    type: str = "tool_start"
    tool_name: str = ""
    tool_display_name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    tool_index: int = 0
    """Number of the call in the run, from 0."""


@dataclass(slots=True, kw_only=True)
class ToolProgressEvent(StreamEvent):
    """A tool that is at work says how far it is."""

    type: str = "tool_progress"
    tool_name: str = ""
    progress: float = 0.0
    total: float | None = None
    """What `progress` will be in the end, where that is known."""
    message: str | None = None
    tool_index: int = 0
    """The number that its start had."""


@dataclass(slots=True, kw_only=True)
class ToolEndEvent(StreamEvent):
    """A tool call has its answer."""

    type: str = "tool_end"
    tool_name: str = ""
    tool_summary: str = ""
    duration_ms: float = 0.0
    success: bool = True
    tool_index: int = 0
    """The number that its start had."""
    reused: bool = False


@dataclass(slots=True, kw_only=True)
class TokenEvent(StreamEvent):
    """A piece of text that the model just wrote."""

    type: str = "token"
    text: str = ""
    _pieces: list[str] = field(default_factory=list, repr=False)
    _count: int = field(default=0, repr=False)

    @property
    def cumulative_text(self) -> str:
        """All text shown so far, this piece included. Put together when it is asked for."""
        return "".join(self._pieces[: self._count])

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict."""
        return {
            "type": self.type,
            "timestamp": self.timestamp,
            "text": self.text,
            "cumulative_text": self.cumulative_text,
        }


@dataclass(slots=True, kw_only=True)
class RetryEvent(StreamEvent):
    """The provider failed in a way that can pass; it is asked again."""

    type: str = "retry"
    attempt: int = 0
    wait_s: float = 0.0
    message: str = ""


@dataclass(slots=True, kw_only=True)
class RestartEvent(StreamEvent):
    """The model starts its current text again: take `dropped` back from the end of what was shown."""

    type: str = "restart"
    dropped: str = ""


@dataclass(slots=True, kw_only=True)
class DoneEvent(StreamEvent):
    """The run has its answer."""

    type: str = "done"
    full_response: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """One `{name, summary, success}` a call."""
    duration_ms: float = 0.0
    cache_hit: bool = False


@dataclass(slots=True, kw_only=True)
class ErrorEvent(StreamEvent):
    """The run has no answer. The exception that says why is raised right after."""

    type: str = "error"
    message: str = ""
    recoverable: bool = False


@dataclass(slots=True, kw_only=True)
class InterruptEvent(StreamEvent):
    """The run pauses and waits for answers; the last event of such a stream."""

    type: str = "interrupt"
    pending: list[Any] = field(default_factory=list)
    """What it waits for: `Interrupt` objects."""
    run_id: str = ""
    thread_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict."""
        shown = [{"id": item.id, "kind": item.kind, "value": item.value} for item in self.pending]
        return {
            "type": self.type,
            "timestamp": self.timestamp,
            "pending": shown,
            "run_id": self.run_id,
            "thread_id": self.thread_id,
        }
