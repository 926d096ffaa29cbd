"""Keep what agents do: one bounded record that any number of agents and runs may share."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from graphwright._internal.ids import new_run_id
from graphwright._internal.redact import redact
from graphwright.caller import CallerContext, IsolationKey, get_current_caller, isolation_key_of
from graphwright.exceptions import ConfigurationError
from graphwright.observability.base import TimelineEntry, Transporter
from graphwright.observability.statistics import Statistics

__all__ = ["ObservabilityCollector", "json_line"]

logger = logging.getLogger(__name__)

Sanitizer = Callable[[Any], Any]


class ObservabilityCollector:
    """A record of what agents do. Safe to use from any number of runs and threads at once."""

    def __init__(
        self, session_name: str = "graphwright", max_entries: int = 100_000, sanitizer: Sanitizer | None = redact
    ) -> None:
        """Keep up to `max_entries`, of which the oldest make room.

        `sanitizer` is given each entry's data and error and returns what is kept. By default it takes credentials
        out; `None` keeps all. When it fails, the data is left out.
        """
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ConfigurationError(f"max_entries is {max_entries!r}; give a whole number above 0")
        self.session_name = session_name
        self.record_id = new_run_id()[:-24]
        """Tells records of one name apart, by the time at which they began; it is a part of the names of files."""
        self.max_entries = max_entries
        self.transporters: list[Transporter] = []
        self._sanitizer = sanitizer
        self._entries: deque[TimelineEntry] = deque(maxlen=max_entries)
        self._lock = threading.Lock()
        self._recorded = 0
        self._purged = 0
        self._figures = Statistics()
        self._failed: set[tuple[int, str]] = set()

    def record(self, event_type: str, **fields: Any) -> TimelineEntry:
        """Record something; keywords are those of `TimelineEntry`, and all others go into its data."""
        own = {name: fields.pop(name) for name in _FIELDS if name in fields}
        data = {**dict(own.pop("data", None) or {}), **fields}
        own.setdefault("at", time.time())
        if "caller_key" not in own:
            own["caller_key"] = isolation_key_of(get_current_caller())
        return self.record_event(TimelineEntry(event_type=event_type, data=data, **own))

    def record_event(self, entry: TimelineEntry) -> TimelineEntry:
        """Record an entry, clean it, hand it to every transporter, and return it."""
        if self._sanitizer is not None:
            self._clean(entry)
        with self._lock:
            self._recorded += 1
            entry.seq = self._recorded
            self._entries.append(entry)
            self._figures.add(entry)
        for transporter in self.transporters:
            try:
                transporter.export(entry)
            except Exception:  # the others get the entry all the same
                self._complain(transporter, "export")
        return entry

    def _clean(self, entry: TimelineEntry) -> None:
        assert self._sanitizer is not None
        try:
            entry.data = self._sanitizer(entry.data)
            if entry.error:
                entry.error = self._sanitizer(entry.error)
        except Exception:  # what could not be cleaned is not kept
            logger.exception("an entry could not be cleaned, so its data was left out")
            entry.data, entry.error = {"left_out": "it could not be cleaned"}, "(left out)" if entry.error else ""

    @contextmanager
    def span(self, event_type: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Record the block when it ends, with its duration; an error that leaves it is noted and goes on.

        Gives a dict whose items go into the entry's data.
        """
        begun, at = time.perf_counter(), time.time()
        more: dict[str, Any] = {}
        error = ""
        try:
            yield more
        except BaseException as problem:
            error = f"{type(problem).__name__}: {problem}"
            raise
        finally:
            took = (time.perf_counter() - begun) * 1000
            self.record(event_type, **{"at": at, "error": error, **fields, "duration_ms": took, **more})

    def query(
        self,
        *,
        event_type: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        session_id: str | None = None,
        since: float | None = None,
        until: float | None = None,
        errors_only: bool = False,
        limit: int | None = None,
    ) -> list[TimelineEntry]:
        """Return the entries that fit everything given, oldest first; `limit` keeps the newest of them.

        `event_type` may end in `*`, as in `"tool.*"`. `since` and `until` are seconds since the epoch.
        """
        found = [
            entry
            for entry in self.get_timeline()
            if (event_type is None or _fits(event_type, entry.event_type))
            and (agent_id is None or entry.agent_id == agent_id)
            and (run_id is None or entry.run_id == run_id)
            and (session_id is None or entry.session_id == session_id)
            and (since is None or entry.at >= since)
            and (until is None or entry.at <= until)
            and (entry.error or not errors_only)
        ]
        if limit is None:
            return found
        return found[-limit:] if limit > 0 else []

    def get_timeline(self, run_id: str | None = None) -> list[TimelineEntry]:
        """Return all entries that are kept, or those of one run, in the order in which they were recorded."""
        with self._lock:
            entries = list(self._entries)
        return entries if run_id is None else [entry for entry in entries if entry.run_id == run_id]

    def get_stats(self) -> dict[str, Any]:
        """Return figures over all that was recorded since the last `clear`, what made room since included.

        Tokens, durations and statuses are of whole runs: a run that another one made is counted with it.
        """
        with self._lock:
            kept = len(self._entries)
            return {
                "session_name": self.session_name,
                "total_entries": kept,
                "dropped_entries": self._recorded - self._purged - kept,
                **self._figures.as_dict(),
            }

    def for_user(self, user: str | CallerContext, *, tenant_id: str | None = None) -> list[TimelineEntry]:
        """Return the entries of one caller: a user id, with its tenant where there is one, a key or a caller."""
        key = _key_of(user, tenant_id)
        return [entry for entry in self.get_timeline() if entry.caller_key == key]

    def purge_user(self, user: str | CallerContext, *, tenant_id: str | None = None) -> int:
        """Remove the entries of one caller and return how many there were. Figures of all callers stay."""
        key = _key_of(user, tenant_id)
        with self._lock:
            kept = [entry for entry in self._entries if entry.caller_key != key]
            removed = len(self._entries) - len(kept)
            if removed:
                self._entries = deque(kept, maxlen=self.max_entries)
                self._purged += removed
        return removed

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {"stats": self.get_stats(), "entries": [entry.to_dict() for entry in self.get_timeline()]}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the record as JSON; what JSON has no form for becomes text."""
        return json.dumps(self.to_dict(), indent=indent, default=str, ensure_ascii=False)

    def to_ndjson(self) -> str:
        """Return the entries as JSON lines."""
        return "".join(json_line(entry) + "\n" for entry in self.get_timeline())

    def add_transporter(self, transporter: Transporter) -> None:
        """Hand later entries to `transporter` too.

        Raises:
            ConfigurationError: it is none.
        """
        if not isinstance(transporter, Transporter):
            raise ConfigurationError(f"transporter is {transporter!r}; give an object whose class is a Transporter")
        if transporter not in self.transporters:
            self.transporters = [*self.transporters, transporter]

    def clear(self) -> None:
        """Forget all entries and figures."""
        with self._lock:
            self._entries.clear()
            self._recorded = self._purged = 0
            self._figures = Statistics()

    async def flush(self) -> None:
        """Let every transporter bring what it has to its place; one that fails is logged."""
        await self._each("flush", self.transporters)

    async def close(self, transporters: Iterable[Transporter] | None = None) -> None:
        """Flush and close transporters, all of them unless some are given; the record itself stays."""
        chosen = list(self.transporters if transporters is None else transporters)
        self.transporters = [item for item in self.transporters if item not in chosen]
        await self._each("close", chosen)

    async def _each(self, method: str, transporters: Iterable[Transporter]) -> None:
        for transporter in list(transporters):
            try:
                await getattr(transporter, method)()
            except Exception:  # the others are served all the same
                self._complain(transporter, method)

    def _complain(self, transporter: Transporter, method: str) -> None:
        if (id(transporter), method) not in self._failed:
            self._failed.add((id(transporter), method))
            logger.exception("the %s transporter failed to %s; it is not said again", transporter.name, method)


_FIELDS = (
    "at", "agent_id", "run_id", "caller_key", "session_id", "path", "node", "duration_ms", "error", "data"
)  # fmt: skip


def json_line(entry: TimelineEntry) -> str:
    """Return one entry as a line of JSON."""
    return json.dumps(entry.to_dict(), default=str, ensure_ascii=False)


def _fits(pattern: str, event_type: str) -> bool:
    return event_type.startswith(pattern[:-1]) if pattern.endswith("*") else event_type == pattern


def _key_of(user: str | CallerContext, tenant_id: str | None) -> str:
    if isinstance(user, CallerContext):
        return isolation_key_of(user)
    if isinstance(user, IsolationKey):
        return user
    return isolation_key_of(CallerContext(user_id=user, tenant_id=tenant_id))
