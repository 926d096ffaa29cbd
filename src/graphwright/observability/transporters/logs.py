"""Show the record where lines are read: the log, the console, a function of yours."""

from __future__ import annotations

import inspect
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from graphwright._internal.outbox import Outbox
from graphwright.observability.base import TimelineEntry, Transporter
from graphwright.observability.collector import ObservabilityCollector

__all__ = ["CallbackTransporter", "ConsoleTransporter", "LogTransporter"]


class LogTransporter(Transporter):
    """Logs each entry as keys and values: `event=... run=... node=... agent=... caller=...`, then those of its data."""

    name = "log"

    def __init__(self, log_file: str | Path | None = None) -> None:
        """Log to `graphwright.observability.record`, or to a file alone."""
        self._logger = logging.getLogger("graphwright.observability.record")
        self._handler: logging.Handler | None = None
        if log_file is not None:
            Path(log_file).parent.mkdir(parents=True, exist_ok=True)
            self._handler = logging.FileHandler(log_file, encoding="utf-8", delay=True)
            self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def export(self, entry: TimelineEntry) -> None:
        """Log one entry: as a warning where it has an error, else as information."""
        level = logging.WARNING if entry.error else logging.INFO
        if self._handler is None and not self._logger.isEnabledFor(level):
            return
        fields = _fields_of(entry)
        # Quoted as JSON, a value can neither end its line nor pass for another field.
        text = " ".join(f"{key}={json.dumps(value, default=str, ensure_ascii=False)}" for key, value in fields.items())
        record = self._logger.makeRecord(
            self._logger.name, level, __file__, 0, text, (), None, extra={"graphwright": fields}
        )
        if self._handler is None:
            self._logger.handle(record)
        else:
            self._handler.handle(record)

    async def flush(self) -> None:
        """Bring what is written to the file."""
        if self._handler is not None:
            self._handler.flush()

    async def close(self) -> None:
        """Close the file."""
        if self._handler is not None:
            self._handler.close()


class ConsoleTransporter(Transporter):
    """Prints each entry as it comes, or a summary when it is flushed."""

    name = "console"

    def __init__(self, collector: ObservabilityCollector, *, live: bool, file: TextIO | None = None) -> None:
        self._collector = collector
        self._live = live
        self._file = file

    def export(self, entry: TimelineEntry) -> None:
        """Print one entry where that is asked for."""
        if self._live:
            took = "" if entry.duration_ms is None else f" {entry.duration_ms:.0f} ms"
            what = entry.data.get("tool") or entry.data.get("model") or entry.data.get("status") or entry.node
            error = f"  {entry.error}" if entry.error else ""
            self._print(f"{entry.event_type:<12} {entry.agent_id} {what}{took}{error}")

    async def flush(self) -> None:
        """Print a summary, unless every entry was printed."""
        if not self._live:
            stats = self._collector.get_stats()
            names = ("runs", "model_calls", "tool_calls", "tool_errors", "errors", "total_tokens")
            self._print("  ".join(f"{name.replace('_', ' ')}: {stats[name]}" for name in names))

    def _print(self, line: str) -> None:
        # An escape sequence in what a tool said would be carried out by the terminal.
        clean = "".join(sign if sign.isprintable() else " " for sign in line)
        print(clean, file=self._file or sys.stderr)


class CallbackTransporter(Transporter):
    """Calls a function, sync or async, with each entry, in the background."""

    name = "callback"

    def __init__(self, callback: Callable[[TimelineEntry], Any], *, max_size: int = 10_000) -> None:
        self._callback = callback
        self._queue: Outbox[TimelineEntry] = Outbox("the callback transporter", self._call, max_size=max_size)

    def export(self, entry: TimelineEntry) -> None:
        """Queue one entry."""
        self._queue.put(entry)

    async def flush(self) -> None:
        """Wait until every entry was handed over."""
        await self._queue.drain(10.0)

    async def close(self) -> None:
        """Hand over what is queued, and stop."""
        await self._queue.close(10.0)

    async def _call(self, entries: list[TimelineEntry]) -> None:
        for entry in entries:
            answer = self._callback(entry)
            if inspect.isawaitable(answer):
                await answer


def _fields_of(entry: TimelineEntry) -> dict[str, Any]:
    """Return the keys and values of a line of the log."""
    own = {
        "event": entry.event_type,
        "run": entry.run_id,
        "node": "/".join(part for part in (entry.path, entry.node) if part),
        "agent": entry.agent_id,
        "caller": entry.caller_key,
        "session": entry.session_id,
        "duration_ms": None if entry.duration_ms is None else round(entry.duration_ms, 3),
        "error": entry.error,
    }
    return {key: value for key, value in {**own, **entry.data}.items() if value not in (None, "")}
