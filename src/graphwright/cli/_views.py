"""How a run is shown: the port that every view stands behind, and the views for pipes and programs."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TextIO

from graphwright._internal.jsonio import dumps
from graphwright._internal.optional import is_installed
from graphwright.cli._event_json import as_json, event_dict
from graphwright.cli._text import one_line, visible
from graphwright.run_events import (
    GraphMutated,
    ModelFinished,
    ModelStarted,
    NodeFailed,
    RunEvent,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from graphwright.usage import Usage

__all__ = [
    "OffStage",
    "Outcome",
    "Tally",
    "View",
    "call_text",
    "choose_view",
    "is_terminal",
    "place_text",
    "result_text",
]

_DUMB = frozenset({"dumb", "unknown"})
_PREVIEW = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended."""

    status: Literal["completed", "paused", "failed", "aborted", "limit", "rejected"]

    exit_code: int

    text: str = ""
    """The answer."""

    output: Any = None
    """What the last node gave: the text, or data."""

    error: str | None = None


class View(Protocol):
    """Shows one run. It is told everything that the run reports, and then once how the run ended."""

    def show(self, event: RunEvent) -> None:
        """Show an event."""

    def note(self, text: str) -> None:
        """Show a remark about the run that is no part of it."""

    def end(self, outcome: Outcome) -> None:
        """Show the end. An error is printed by somebody else."""

    def on_stage(self) -> AbstractContextManager[Any]:
        """Return what stands around the run: it keeps what tools print out of the view."""
        ...


def choose_view(*, json: bool, quiet: bool) -> View:
    """Return the view that was asked for, else the one that fits where the output goes."""
    out = sys.stdout
    if json:
        return JsonView(out)
    if quiet:
        return QuietView(out)
    if is_terminal(out) and is_installed("rich"):
        from graphwright.cli._terminal import TerminalView

        return TerminalView(out)
    from graphwright.cli._plain import PlainView

    return PlainView(out)


def is_terminal(out: TextIO) -> bool:
    """Return whether output goes to a terminal that can do more than show lines."""
    return out.isatty() and os.environ.get("TERM", "") not in _DUMB


@dataclass(slots=True)
class Tally:
    """What a run has used so far, whether it ends well or not."""

    started: float = field(default_factory=time.perf_counter)
    begun: bool = False
    model_calls: int = 0
    tool_calls: int = 0
    failed_tools: int = 0
    usage: Usage = field(default_factory=Usage)

    def count(self, event: RunEvent) -> None:
        """Add what an event says."""
        if isinstance(event, RunStarted):
            if not self.begun:  # a run that was paused begins again
                self.started = time.perf_counter()
            self.begun = True
        elif isinstance(event, ModelStarted):
            self.model_calls += 1
        elif isinstance(event, ModelFinished) and event.usage is not None:
            self.usage.add(event.usage)
        elif isinstance(event, ToolFinished):
            self.tool_calls += 1
            self.failed_tools += not event.result.success

    def __str__(self) -> str:
        used = [_number(self.model_calls, "model call"), _number(self.tool_calls, "tool call")]
        if self.failed_tools:
            used[-1] += f" ({self.failed_tools} failed)"
        elapsed = time.perf_counter() - self.started
        used.append(f"{elapsed:.2f} s" if elapsed < 1 else f"{elapsed:.1f} s")
        if self.usage.input_tokens is not None or self.usage.output_tokens is not None:
            used.append(f"{self.usage.input_tokens or 0:,} tokens in, {self.usage.output_tokens or 0:,} out")
        return ", ".join(used)


class OffStage:
    """A view whose output is not to be mixed with what tools print."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def on_stage(self) -> AbstractContextManager[Any]:
        return contextlib.redirect_stdout(sys.stderr)

    def _line(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class JsonView(OffStage):
    """Prints one JSON object a line: each event, then the result."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._last: dict[str, Any] = {"seq": 0, "run_id": ""}
        self._tally = Tally()

    def show(self, event: RunEvent) -> None:
        self._tally.count(event)
        self._last = event_dict(event)
        self._line(as_json(self._last))

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr)

    def end(self, outcome: Outcome) -> None:
        tally = self._tally
        result = {
            "type": "result",
            "seq": self._last["seq"] + 1,
            "at": time.time(),
            "run_id": self._last["run_id"],
            "path": "",
            "status": outcome.status,
            "exit_code": outcome.exit_code,
            "text": outcome.text,
            "output": outcome.output,
            "error": outcome.error,
            "model_calls": tally.model_calls,
            "tool_calls": tally.tool_calls,
            "duration_ms": (time.perf_counter() - tally.started) * 1000,
            "usage": tally.usage.as_dict(),
        }
        self._line(as_json(result))


class QuietView(OffStage):
    """Prints the answer and nothing else."""

    def show(self, event: RunEvent) -> None:
        return

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr)

    def end(self, outcome: Outcome) -> None:
        if outcome.status == "completed":
            self._line(visible(outcome.text))


def place_text(event: GraphMutated | NodeFailed) -> str:
    """Return the node that an event is about, with those around it."""
    return one_line(f"{event.path}/{event.node}" if event.path else event.node)


def call_text(event: ToolStarted) -> str:
    """Return a tool call as one line: its name and arguments."""
    args = ", ".join(f"{name}={_value(value)}" for name, value in event.call.args.items())
    return one_line(f"{event.call.name}({args})", 2 * _PREVIEW)


def result_text(event: ToolFinished) -> str:
    """Return the result of a tool call as one line: its name, its time and how it begins."""
    content = event.result.message.content
    shown = content if isinstance(content, str) else dumps(content)
    return f"{one_line(event.call.name)}, {event.result.duration_ms:.0f} ms: {one_line(shown, _PREVIEW)}"


def _value(value: Any) -> str:
    return repr(value) if isinstance(value, str) else dumps(value)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
