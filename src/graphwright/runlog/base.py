"""The record of runs: what a log keeps, and what it promises to whoever writes or reads it.

A run is a list of rows that is only ever appended to. A row belongs to a frame (a visit of a node, inside it a call or
a child) and is written once for its (kind, frame, key). What a run still owes is worked out from its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["ANY_OWNER", "BusyPolicy", "Row", "RunInfo", "RunLog", "RunStatus", "RunWriter", "ThreadInfo"]

BusyPolicy = Literal["refuse", "wait"]
"""What a run does when another is at work on its thread."""

RunStatus = Literal["running", "paused", "completed", "aborted", "limit", "rejected", "failed", "abandoned"]


class _AnyOwner:
    def __repr__(self) -> str:
        return "ANY_OWNER"


ANY_OWNER: Any = _AnyOwner()
"""Stands for every owner, where `None` would mean the anonymous one."""


@dataclass(slots=True)
class Row:
    """One thing that happened."""

    kind: str
    """`input`, `reply`, `gate`, `started`, `outcome`, `once`, `interrupt`, `answer`, `delta` or `end`."""

    frame: str = ""
    """Where: `node#visit`, with `/` before what is inside it; empty for the run itself."""

    key: str = ""
    """Which of the frame's rows of this kind."""

    data: dict[str, Any] = field(default_factory=dict)
    """Plain data, LangChain messages, and dataclasses and enums that the codec knows. Never changed afterwards."""

    seq: int = 0
    """Place in the run, from 1; given by the log."""

    at: float = 0.0
    """Seconds since the epoch; given by the log."""


@dataclass(slots=True, kw_only=True)
class RunInfo:
    """What is known of a run besides its rows."""

    run_id: str
    thread_id: str
    owner: str | None = None
    """The caller's isolation key; `None` for an anonymous caller. Never a credential."""
    graph: str = ""
    """Name of the graph."""
    graph_digest: str = ""
    title: str = ""
    """The beginning of what was asked, for lists."""
    status: RunStatus = "running"
    created_at: float = 0.0
    updated_at: float = 0.0
    number: int = 0
    """Place among the runs of its thread, from 1; given by the log."""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ThreadInfo:
    """A thread: runs that go on from each other."""

    thread_id: str
    owner: str | None = None
    runs: int = 0
    status: RunStatus = "running"
    """That of its latest run."""
    title: str = ""
    """That of its first run."""
    created_at: float = 0.0
    updated_at: float = 0.0


class RunWriter(ABC):
    """Appends rows to one run, while it holds the thread's lease. Used from one event loop."""

    run_id: str
    thread_id: str

    @abstractmethod
    def put(self, *rows: Row, soon: bool = False) -> None:
        """Queue rows. They are encoded now and written, in order, with the next write.

        With `soon` the write begins at once, in the background; without, it waits for the next `flush`, `soon` or
        a short time.

        Raises:
            UnstorableError: a value cannot be kept; the message names the row and the place of the value. Nothing
                of this call was queued.
            ThreadBusy: the lease was lost to another writer, or an earlier write failed because of it.
        """

    @abstractmethod
    async def flush(self) -> None:
        """Return when everything that was queued is durable.

        Raises:
            ThreadBusy: the lease was lost to another writer; nothing queued since was written.
            StoreUnavailable: the log could not be written.
        """

    @abstractmethod
    async def close(self, status: RunStatus) -> None:
        """Write what is queued and the run's status, and give the lease back. Safe to call again."""


class RunLog(ABC):
    """Where runs are kept. One object serves any number of runs at once; use it from one event loop at a time."""

    durable: bool = True
    """Whether what was written outlives the process."""

    @abstractmethod
    async def begin(self, info: RunInfo, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the thread's lease and create the run as the thread's latest.

        A thread belongs to the owner of its first run.

        Raises:
            ThreadBusy: another writer holds the lease (with `wait`: still, after `wait_seconds`).
            SessionAccessDenied: the thread belongs to another owner.
        """

    @abstractmethod
    async def reopen(self, run_id: str, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the lease again to go on with a run. Sets its status to `running`.

        Raises:
            KeyError: there is no such run.
            ThreadBusy: as for `begin`.
        """

    @abstractmethod
    async def info(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""

    @abstractmethod
    async def latest(self, thread_id: str) -> RunInfo | None:
        """Return the latest run of a thread."""

    @abstractmethod
    async def rows(self, run_id: str) -> list[Row]:
        """Return the rows of a run in order; empty for an unknown one."""

    @abstractmethod
    async def thread_rows(self, thread_id: str) -> list[tuple[RunInfo, list[Row]]]:
        """Return the runs of a thread with their rows, oldest first."""

    @abstractmethod
    async def runs(
        self,
        *,
        thread_id: str | None = None,
        owner: Any = ANY_OWNER,
        status: RunStatus | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[RunInfo]:
        """Return runs, the latest first."""

    @abstractmethod
    async def threads(self, *, owner: Any = ANY_OWNER, limit: int = 50, offset: int = 0) -> list[ThreadInfo]:
        """Return threads, the one written last first."""

    @abstractmethod
    async def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread with its runs; return whether there was one.

        Raises:
            ThreadBusy: a run is at work on it.
        """

    @abstractmethod
    async def prune(self, *, older_than_seconds: float | None = None, keep_threads: int | None = None) -> int:
        """Delete threads that were not written for long, or beyond the newest `keep_threads`; return how many.

        Threads that a run is at work on, or that are paused, stay.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Write what is queued and release what the log holds. Safe to call again."""

    async def rows_of(self, run_ids: Sequence[str]) -> dict[str, list[Row]]:
        """Return the rows of several runs."""
        return {run_id: await self.rows(run_id) for run_id in run_ids}
