"""The view for pipes, log files and simple terminals: lines of plain text as things happen."""

from __future__ import annotations

from typing import TextIO

from graphwright.cli._speech import Speaker, Speech
from graphwright.cli._text import one_line, visible
from graphwright.cli._views import OffStage, Outcome, Tally, call_text, place_text, result_text
from graphwright.run_events import (
    GraphMutated,
    ModelFinished,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    Restarted,
    Retrying,
    RunEvent,
    TextDelta,
    ToolFinished,
    ToolStarted,
)

__all__ = ["PlainView"]

_PREVIEW = 120


class PlainView(OffStage):
    """Prints what a model writes line by line, and one line for everything else."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._tally = Tally()
        self._speech = Speech(self._tell, self._close)
        self._open = ""
        self._place = ""

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        self._tally.count(event)
        match event:
            case NodeStarted() if not self._speech.is_open:
                self._go_to(event.path, event.node)
            case NodeFinished():
                self._speech.finish_node(event.path, event.node)
            case NodeFailed():
                self._speech.finish_node(event.path, event.node)
                self._line(f"failed   node {place_text(event)}: {one_line(event.error, _PREVIEW)}")
            case TextDelta():
                self._speech.say(event)
            case ModelFinished():
                self._speech.finish(Speaker(event.path, event.node, event.call_id))
            case Restarted() if self._speech.restart(Speaker(event.path, event.node, event.call_id)):
                self._open = ""
                self._line("again    the model starts its text again")
            case Retrying():
                self._go_to(event.path, event.node)
                self._line(f"retry    in {event.wait_s:.1f} s, after: {one_line(event.reason, _PREVIEW)}")
            case ToolStarted():
                self._go_to(event.path, event.node)
                self._line(f"call     {call_text(event)}")
            case ToolFinished():
                self._line(f"{'result' if event.result.success else 'failed':<8} {result_text(event)}")
            case GraphMutated():
                self._line(f"graph    {'changed' if event.applied else 'not changed'} by {place_text(event)}")

    def note(self, text: str) -> None:
        """Show a remark."""
        self._line(visible(text))

    def end(self, outcome: Outcome) -> None:
        """Show the end."""
        self._speech.finish_all()
        if outcome.status == "completed" and outcome.text != self._speech.last:
            self._line(visible(outcome.text))
        if self._tally.begun:
            done = outcome.status == "completed"
            self._line(f"{'done' if done else outcome.status:<8} {self._tally}")

    def _tell(self, speaker: Speaker, text: str, thinking: bool) -> None:
        if thinking:
            return
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            self._speak(speaker, line)

    def _close(self, speaker: Speaker) -> None:
        if self._open:
            self._speak(speaker, self._open)
        self._open = ""

    def _speak(self, speaker: Speaker, line: str) -> None:
        self._go_to(speaker.path, speaker.node)
        self._line(visible(line))

    def _go_to(self, path: str, node: str) -> None:
        place = f"{path}/{node}" if path else node
        if place != self._place:
            self._place = place
            self._line(f"node     {one_line(place)}")
