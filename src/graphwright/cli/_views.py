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
    Restarted,
    Retrying,
    RunEvent,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from graphwright.usage import Usage

__all__ = ["Outcome", "PlainView", "Tally", "View", "call_text", "choose_view", "result_text"]

_DUMB = frozenset({"dumb", "unknown"})
_PREVIEW = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended."""

    status: Literal["completed", "failed", "aborted"]

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
    if out.isatty() and os.environ.get("TERM", "") not in _DUMB and is_installed("rich"):
        from graphwright.cli._terminal import TerminalView

        return TerminalView(out)
    return PlainView(out)


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


class _OffStage:
    """A view whose output is not to be mixed with what tools print."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def on_stage(self) -> AbstractContextManager[Any]:
        return contextlib.redirect_stdout(sys.stderr)

    def _line(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class JsonView(_OffStage):
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


class QuietView(_OffStage):
    """Prints the answer and nothing else."""

    def show(self, event: RunEvent) -> None:
        return

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr)

    def end(self, outcome: Outcome) -> None:
        if outcome.status == "completed":
            self._line(visible(outcome.text))


class PlainView(_OffStage):
    """Prints lines of plain text as things happen: what a pipe, a log file or a simple terminal can take."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._tally = Tally()
        self._text = _Lines(self._line)

    def show(self, event: RunEvent) -> None:
        self._tally.count(event)
        match event:
            case ModelStarted():
                self._text.begin()
            case TextDelta():
                self._text.add(event.text)
            case ModelFinished():
                self._text.flush()
            case Restarted():
                self._text.begin()
                self._line("again    the model starts its text again")
            case Retrying():
                self._line(f"retry    in {event.wait_s:.1f} s, after: {one_line(event.reason, _PREVIEW)}")
            case ToolStarted():
                self._line(f"call     {call_text(event)}")
            case ToolFinished():
                self._line(f"{'result' if event.result.success else 'failed':<8} {result_text(event)}")
            case NodeFailed():
                self._text.flush()
                self._line(f"failed   node {one_line(event.node)}: {one_line(event.error, _PREVIEW)}")
            case GraphMutated():
                self._line(f"graph    {'changed' if event.applied else 'not changed'} by {one_line(event.node)}")

    def note(self, text: str) -> None:
        self._line(visible(text))

    def end(self, outcome: Outcome) -> None:
        self._text.flush()
        if outcome.status == "completed" and outcome.text != self._text.shown:
            self._line(visible(outcome.text))
        if self._tally.begun:
            done = outcome.status == "completed"
            self._line(f"{'done' if done else outcome.status:<8} {self._tally}")


class _Lines:
    """Text that comes in pieces, printed line by line."""

    def __init__(self, line: Any) -> None:
        self._line = line
        self._open = ""
        self.shown = ""
        """All text of the model call that is shown."""

    def begin(self) -> None:
        self._open = self.shown = ""

    def add(self, piece: str) -> None:
        self.shown += piece
        *lines, self._open = (self._open + piece).split("\n")
        for line in lines:
            self._line(visible(line))

    def flush(self) -> None:
        if self._open:
            self._line(visible(self._open))
        self._open = ""


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
