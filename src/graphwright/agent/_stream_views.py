"""Show the events of a run in the shapes that the agent's streams are documented to have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from graphwright.agent.stream_events import (
    DoneEvent,
    ErrorEvent,
    InterruptEvent,
    RestartEvent,
    RetryEvent,
    StreamEvent,
    TokenEvent,
    ToolEndEvent,
    ToolProgressEvent,
    ToolStartEvent,
)
from graphwright.engine.result import RunResult
from graphwright.exceptions import GuardrailViolation, ModelError, RunTimeoutError
from graphwright.messages import text_of
from graphwright.run_events import Restarted, Retrying, RunEvent, TextDelta, ToolFinished, ToolProgress, ToolStarted

__all__ = ["ToolsView", "display_name", "summary_of"]

_SUMMARY_CHARS = 120
_FAILED = "The run failed; the exception that follows says why."

_GERUNDS = {
    "add": "Adding", "analyze": "Analyzing", "ask": "Asking", "browse": "Browsing", "calculate": "Calculating",
    "call": "Calling", "check": "Checking", "compare": "Comparing", "compute": "Computing", "convert": "Converting",
    "count": "Counting", "create": "Creating", "delete": "Deleting", "download": "Downloading", "edit": "Editing",
    "execute": "Executing", "explain": "Explaining", "extract": "Extracting", "fetch": "Fetching", "find": "Finding",
    "generate": "Generating", "get": "Getting", "insert": "Inserting", "list": "Listing", "load": "Loading",
    "lookup": "Looking up", "make": "Making", "move": "Moving", "open": "Opening", "parse": "Parsing",
    "plan": "Planning", "post": "Posting", "process": "Processing", "query": "Querying", "read": "Reading",
    "remove": "Removing", "rename": "Renaming", "run": "Running", "save": "Saving", "schedule": "Scheduling",
    "search": "Searching", "send": "Sending", "set": "Setting", "show": "Showing", "start": "Starting",
    "stop": "Stopping", "summarize": "Summarizing", "test": "Testing", "translate": "Translating",
    "update": "Updating", "upload": "Uploading", "validate": "Validating", "verify": "Verifying", "write": "Writing",
}  # fmt: skip


class ToolsView:
    """Shows tool calls, pieces of text and the end of a run."""

    def __init__(self, *, include_arguments: bool = True, display_names: Mapping[str, str] | None = None) -> None:
        self._include_arguments = include_arguments
        self._display_names = display_names or {}
        self._started = perf_counter()
        self._pieces: list[str] = []
        self._numbers: dict[int, int] = {}
        self._calls: list[dict[str, Any]] = []

    def __call__(self, event: RunEvent) -> Iterable[StreamEvent]:
        """Return the stream events of one run event: none or one."""
        if type(event) is TextDelta:
            if event.path and "@" in event.path:
                return ()  # a peer's words are no part of the answer
            pieces = self._pieces
            pieces.append(event.text)
            return (TokenEvent(text=event.text, _pieces=pieces, _count=len(pieces)),)
        match event:
            case ToolStarted():
                return (self._start(event),)
            case ToolProgress():
                return (self._progress(event),)
            case ToolFinished():
                return (self._end(event),)
            case Retrying():
                return (RetryEvent(attempt=event.attempt, wait_s=event.wait_s, message=event.reason),)
            case Restarted():
                return (self._restart(event.dropped),)
        return ()

    def finish(self, result: RunResult) -> Iterable[StreamEvent]:
        """Return the last event of a run that has an answer, or is paused."""
        if result.status == "paused":
            return (InterruptEvent(pending=result.pending, run_id=result.run_id, thread_id=result.thread_id),)
        done = DoneEvent(
            full_response=result.text,
            tool_calls=self._calls,
            duration_ms=(perf_counter() - self._started) * 1000,
            cache_hit=result.cache_hit,
        )
        return (done,)

    def fail(self, error: BaseException) -> Iterable[StreamEvent]:
        """Return the last event of a run without an answer; a run that ran out of time only raises."""
        if isinstance(error, RunTimeoutError):
            return ()
        if isinstance(error, GuardrailViolation):
            return (ErrorEvent(message=str(error), recoverable=False),)
        cause = error.__cause__ or error
        return (ErrorEvent(message=_FAILED, recoverable=isinstance(cause, ModelError) and cause.retryable),)

    def _start(self, event: ToolStarted) -> ToolStartEvent:
        number = len(self._calls) + len(self._numbers)
        self._numbers[id(event.call)] = number
        name = event.call.name
        return ToolStartEvent(
            tool_name=name,
            tool_display_name=self._display_names.get(name) or display_name(name),
            arguments=dict(event.call.args) if self._include_arguments else {},
            tool_index=number,
        )

    def _progress(self, event: ToolProgress) -> ToolProgressEvent:
        return ToolProgressEvent(
            tool_name=event.call.name,
            progress=event.progress,
            total=event.total,
            message=event.message,
            tool_index=self._numbers.get(id(event.call), 0),
        )

    def _end(self, event: ToolFinished) -> ToolEndEvent:
        result = event.result
        summary = "Tool call failed" if result.raised else summary_of(result.message.content)
        self._calls.append({"name": event.call.name, "summary": summary, "success": result.success})
        return ToolEndEvent(
            tool_name=event.call.name,
            tool_summary=summary,
            duration_ms=result.duration_ms,
            success=result.success,
            tool_index=self._numbers.pop(id(event.call), 0),
            reused=result.reused,
        )

    def _restart(self, dropped: str) -> RestartEvent:
        shown = "".join(self._pieces)
        # A new list: the events that were handed out keep what they have shown.
        self._pieces = [shown.removesuffix(dropped)]
        return RestartEvent(dropped=dropped)


def display_name(name: str) -> str:
    """Return what a person reads for a tool: `search_customers` is "Searching customers"."""
    words = [word for word in name.replace("-", "_").replace(".", "_").split("_") if word]
    for position, word in enumerate(words):
        gerund = _GERUNDS.get(word.lower())
        if gerund:
            return " ".join([gerund, *words[position + 1 :]])
    return " ".join(word.capitalize() for word in words) or name


def summary_of(content: Any) -> str:
    """Return a short line about a tool's result."""
    text = text_of(content).strip()
    if not text:
        return "Done"
    try:
        value = json.loads(text)
    except ValueError:
        return _cut(text)
    if isinstance(value, dict):
        shown = ", ".join(f"{key}: {_cut(str(entry))}" for key, entry in list(value.items())[:3])
        more = len(value) - 3
        return _cut(f"{shown} (+{more} more)" if more > 0 else shown) or "Done"
    if isinstance(value, list):
        return f"Found {len(value)} result{'' if len(value) == 1 else 's'}"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _SUMMARY_CHARS else text[: _SUMMARY_CHARS - 3] + "..."
