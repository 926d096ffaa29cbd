"""The view for people at a terminal: text as it is written, and tool calls as they run. Needs rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from graphwright.cli._speech import Speaker, Speech
from graphwright.cli._text import one_line, visible
from graphwright.cli._views import Outcome, Tally, call_text, place_text, result_text
from graphwright.run_events import (
    GraphMutated,
    ModelFinished,
    ModelStarted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    Restarted,
    Retrying,
    RunEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)

__all__ = ["TerminalView"]

_PREVIEW = 160


class TerminalView:
    """Writes one line after the other; below them, what is at work now."""

    def __init__(self, out: TextIO) -> None:
        # Nothing that a model or a tool says is read as markup, and NO_COLOR is respected by the console.
        self._console = Console(file=out, markup=False, emoji=False, highlight=False)
        self._tally = Tally()
        self._speech = Speech(self._tell, self._close)
        self._at_work: dict[tuple[str, str, str], Text] = {}
        self._live: Live | None = None
        self._open_style: str | None = None
        self._place = ""

    @contextmanager
    def on_stage(self) -> Iterator[None]:
        """Let what others print appear as lines of their own, above what is at work."""
        with ExitStack() as stack:
            stack.callback(self._stop_live)
            stack.enter_context(redirect_stdout(FileProxy(self._console, sys.stdout)))
            if sys.stderr.isatty():
                stack.enter_context(redirect_stderr(FileProxy(self._console, sys.stderr)))
            yield

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        self._tally.count(event)
        match event:
            case NodeStarted() if not self._speech.is_open:
                self._go_to(event.path, event.node)
            case NodeFinished():
                self._end_of_node(event)
            case NodeFailed():
                self._end_of_node(event)
                self._print(f"✗ node {place_text(event)}: {one_line(event.error, _PREVIEW)}", style="red")
            case ModelStarted():
                self._start(event, event.call_id, Text("asking the model", style="dim"))
            case TextDelta() | ThinkingDelta():
                self._speech.say(event)
            case ModelFinished():
                self._at_work.pop((event.path, event.node, event.call_id), None)
                self._speech.finish(Speaker(event.path, event.node, event.call_id))
                self._refresh()
            case Restarted() if self._speech.restart(Speaker(event.path, event.node, event.call_id)):
                self._print("↻ the model starts its text again", style="yellow")
            case Retrying():
                reason = one_line(event.reason, _PREVIEW)
                self._print(f"↻ again in {event.wait_s:.1f} s, after: {reason}", style="yellow")
            case ToolStarted():
                self._start(event, event.call.id, Text(call_text(event), style="cyan"))
            case ToolFinished():
                self._tool_finished(event)
            case GraphMutated():
                done = "changed" if event.applied else "not changed"
                self._print(f"◆ graph {done} by {place_text(event)}", style="magenta")

    def note(self, text: str) -> None:
        """Show a remark."""
        self._print(visible(text), style="dim")

    def end(self, outcome: Outcome) -> None:
        """Show the end."""
        self._speech.finish_all()
        self._at_work.clear()
        self._stop_live()
        self._close_line()
        if outcome.status == "completed" and outcome.text != self._speech.last:
            self._print(visible(outcome.text), style="")
        if self._tally.begun:
            done = outcome.status == "completed"
            mark = "✓ done" if done else f"✗ {outcome.status}"
            self._print(f"{mark}: {self._tally}", style="green" if done else "red")

    def _tool_finished(self, event: ToolFinished) -> None:
        good = event.result.success
        called = self._at_work.pop((event.path, event.node, event.call.id), None)
        self._go_to(event.path, event.node)
        if called is not None:
            self._print(f"→ {called.plain}", style="cyan")
        self._print(f"{'✓' if good else '✗'} {result_text(event)}", style="dim" if good else "red")
        self._refresh()

    def _end_of_node(self, event: NodeFinished | NodeFailed) -> None:
        self._speech.finish_node(event.path, event.node)
        for key in [key for key in self._at_work if key[:2] == (event.path, event.node)]:
            del self._at_work[key]
        self._refresh()

    def _tell(self, speaker: Speaker, text: str, thinking: bool) -> None:
        """Go on with the open line."""
        self._at_work.pop((speaker.path, speaker.node, speaker.call_id), None)
        self._stop_live()
        self._go_to(speaker.path, speaker.node)
        style = "dim italic" if thinking else ""
        if self._open_style is not None and self._open_style != style:
            self._close_line()
        shown = visible(text)
        self._console.print(Text(shown, style=style), end="", soft_wrap=True)
        self._open_style = None if shown.endswith("\n") else style

    def _close(self, speaker: Speaker) -> None:
        self._close_line()

    def _go_to(self, path: str, node: str) -> None:
        place = f"{path}/{node}" if path else node
        if place != self._place:
            self._place = place
            self._print(f"● {one_line(place)}", style="bold")

    def _print(self, text: str, *, style: str) -> None:
        self._close_line()
        self._console.print(Text(text, style=style), soft_wrap=True)

    def _close_line(self) -> None:
        if self._open_style is not None:
            self._console.print()
            self._open_style = None

    def _start(self, event: ModelStarted | ToolStarted, id: str, shown: Text) -> None:
        self._at_work[event.path, event.node, id] = shown
        self._refresh()

    def _refresh(self) -> None:
        if not self._at_work:
            self._stop_live()
            return
        if self._speech.is_open:  # the line that is being written is what is seen to be at work
            return
        self._close_line()
        rows = Group(*(Spinner("dots", text=text) for text in self._at_work.values()))
        if self._live is None:
            self._live = Live(
                rows,
                console=self._console,
                transient=True,
                refresh_per_second=10,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        else:
            self._live.update(rows)

    def _stop_live(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
