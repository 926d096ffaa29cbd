"""The statements of a SQLite run log: what is written and read inside a transaction."""

from __future__ import annotations

import sqlite3
import time
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Protocol

from graphwright.exceptions import ConfigurationError, SessionAccessDenied, ThreadBusy, UnstorableError
from graphwright.runlog._sqlite_queue import Lease, RowText
from graphwright.runlog.base import ANY_OWNER, Row, RunInfo, ThreadInfo
from graphwright.runlog.codec import dumps, loads
from graphwright.runlog.lease import is_dead, this_process

__all__ = [
    "begin",
    "delete",
    "first_id",
    "info",
    "keys",
    "prunable",
    "prune",
    "reopen",
    "rows",
    "runs",
    "threads",
    "write_row",
]

_PLACES = 1 << 32
_LONGEST = 1 << 28


class Holder(Protocol):
    """The side of the file that knows which leases this process holds."""

    lease_seconds: float

    def holds_here(self, thread: int) -> bool: ...

    def keep(self, lease: Lease) -> None: ...


def first_id(run: int) -> int:
    """Return the number below which no row of a run has its id."""
    return run * _PLACES


def write_row(row: Row, row_id: int, now: float) -> RowText:
    """Return a row as the file has it.

    Raises:
        UnstorableError: a value in it cannot be kept.
    """
    try:
        data = dumps(row.data) if row.data else ""
    except UnstorableError as error:
        raise UnstorableError(f"the {row.kind!r} row of {row.frame!r} cannot be kept: {error}") from None
    if len(data) > _LONGEST:
        raise UnstorableError(
            f"the {row.kind!r} row of {row.frame!r} has {len(data)} characters, and a log takes {_LONGEST}; keep what "
            "is large in a file or store, and its name in the state"
        )
    return row_id, _pack(row.kind), _pack(row.frame), _pack(row.key), now, data


def _pack(text: str) -> str:
    """Return a text that SQLite can hold; half characters, which it cannot, are written in another way."""
    if text.isascii() and not text.startswith("\0"):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        if not text.startswith("\0"):
            return text
    return "\0" + b64encode(text.encode("utf-8", "surrogatepass")).decode()


def _unpack(text: str) -> str:
    return b64decode(text[1:]).decode("utf-8", "surrogatepass") if text.startswith("\0") else text


def _pack_owner(owner: str | None) -> str | None:
    return _pack(owner) if owner is not None else None


def begin(connection: sqlite3.Connection, info: RunInfo, metadata: str, holder: Holder) -> Lease:
    """Take the lease of a thread, making it if it is new, and create the run."""
    now = time.time()
    thread_id, owner = _pack(info.thread_id), _pack_owner(info.owner)
    found = connection.execute(
        "SELECT id, owner, token, holder, expires_at FROM threads WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    if found is not None:
        if found[1] != owner:
            raise SessionAccessDenied(f"thread {info.thread_id!r} belongs to another owner; begin one of your own")
        _refuse_busy(found[0], found[3], found[4], info.thread_id, holder)
    if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (_pack(info.run_id),)).fetchone():
        raise ConfigurationError(f"there is a run {info.run_id!r} already; give every run an id of its own")
    if found is None:
        made = connection.execute(
            "INSERT INTO threads (thread_id, owner, title, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            (thread_id, owner, _pack(info.title), now, now),
        )
        thread, token = made.lastrowid or 0, 0
    else:
        thread, token = found[0], found[2]
    connection.execute(
        "UPDATE threads SET runs = runs + 1, updated_at = ?, token = ?, holder = ?, expires_at = ? WHERE id = ?",
        (now, token + 1, this_process(), now + holder.lease_seconds, thread),
    )
    made = connection.execute(
        "INSERT INTO runs"
        " (run_id, thread, number, graph, graph_digest, title, status, created_at, updated_at, metadata)"
        " VALUES (?, ?, (SELECT runs FROM threads WHERE id = ?), ?, ?, ?, ?, ?, ?, ?)",
        (
            _pack(info.run_id),
            thread,
            thread,
            _pack(info.graph),
            _pack(info.graph_digest),
            _pack(info.title),
            info.status,
            now,
            now,
            metadata,
        ),
    )
    lease = Lease(run=made.lastrowid or 0, thread=thread, token=token + 1, run_id=info.run_id)
    holder.keep(lease)
    return lease


def reopen(connection: sqlite3.Connection, run_id: str, holder: Holder) -> tuple[Lease, int]:
    """Take the lease of a run's thread; return it with the place of the run's last row."""
    found = connection.execute(
        "SELECT runs.id, threads.id, threads.thread_id, token, holder, expires_at FROM runs"
        " JOIN threads ON threads.id = runs.thread WHERE run_id = ?",
        (_pack(run_id),),
    ).fetchone()
    if found is None:
        raise KeyError(run_id)
    run, thread, thread_id, token, held_by, expires_at = found
    _refuse_busy(thread, held_by, expires_at, _unpack(thread_id), holder)
    now = time.time()
    connection.execute(
        "UPDATE threads SET token = ?, holder = ?, expires_at = ?, updated_at = ? WHERE id = ?",
        (token + 1, this_process(), now + holder.lease_seconds, now, thread),
    )
    connection.execute("UPDATE runs SET status = 'running', updated_at = ? WHERE id = ?", (now, run))
    last = connection.execute("SELECT max(id) FROM rows WHERE id > ? AND id < ?", _span(run)).fetchone()[0]
    lease = Lease(run=run, thread=thread, token=token + 1, run_id=run_id)
    holder.keep(lease)
    return lease, last - first_id(run) if last is not None else 0


def _refuse_busy(thread: int, held_by: str | None, expires_at: float, thread_id: str, holder: Holder) -> None:
    if _is_held(thread, held_by, expires_at, holder):
        raise ThreadBusy(f"another run is at work on thread {thread_id!r}; wait for it, or use another thread")


def _is_held(thread: int, held_by: str | None, expires_at: float, holder: Holder) -> bool:
    # A lease of this process holds as long as its writer lives, whatever the clock did meanwhile.
    return holder.holds_here(thread) or (held_by is not None and expires_at > time.time() and not is_dead(held_by))


def _span(run: int) -> tuple[int, int]:
    return first_id(run), first_id(run + 1)


def keys(connection: sqlite3.Connection, run: int) -> list[tuple[str, str, str]]:
    """Return what the rows of a run are known by."""
    found = connection.execute("SELECT kind, frame, key FROM rows WHERE id > ? AND id < ?", _span(run))
    return [(_unpack(kind), _unpack(frame), _unpack(key)) for kind, frame, key in found]


def rows(connection: sqlite3.Connection, run_id: str) -> list[Row]:
    """Return the rows of a run in order."""
    found = connection.execute("SELECT id FROM runs WHERE run_id = ?", (_pack(run_id),)).fetchone()
    if found is None:
        return []
    start, end = _span(found[0])
    listed = connection.execute(
        "SELECT id, kind, frame, key, at, data FROM rows WHERE id > ? AND id < ? ORDER BY id", (start, end)
    )
    return [
        Row(_unpack(kind), _unpack(frame), _unpack(key), loads(data) if data else {}, row_id - start, at)
        for row_id, kind, frame, key, at, data in listed
    ]


_RUN = (
    "SELECT run_id, threads.thread_id, owner, graph, graph_digest, runs.title, status, runs.created_at,"
    " runs.updated_at, number, metadata FROM runs JOIN threads ON threads.id = runs.thread"
)


def _info(found: Sequence[Any]) -> RunInfo:
    run_id, thread_id, owner, graph, digest, title, status, created_at, updated_at, number, metadata = found
    return RunInfo(
        run_id=_unpack(run_id),
        thread_id=_unpack(thread_id),
        owner=_unpack(owner) if owner is not None else None,
        graph=_unpack(graph),
        graph_digest=_unpack(digest),
        title=_unpack(title),
        status=status,
        created_at=created_at,
        updated_at=updated_at,
        number=number,
        metadata=loads(metadata) if metadata else {},
    )


def info(connection: sqlite3.Connection, run_id: str) -> RunInfo | None:
    """Return what is known of a run."""
    found = connection.execute(f"{_RUN} WHERE run_id = ?", (_pack(run_id),)).fetchone()
    return _info(found) if found is not None else None


def runs(
    connection: sqlite3.Connection,
    *,
    thread_id: str | None = None,
    owner: Any = ANY_OWNER,
    status: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[RunInfo]:
    """Return runs, the latest first."""
    wishes: list[str] = []
    values: list[Any] = []
    if thread_id is not None:
        wishes.append("threads.thread_id = ?")
        values.append(_pack(thread_id))
    if owner is not ANY_OWNER:
        wishes.append("owner IS ?")
        values.append(_pack_owner(owner))
    if status is not None:
        wishes.append("status = ?")
        values.append(status)
    where = f" WHERE {' AND '.join(wishes)}" if wishes else ""
    found = connection.execute(f"{_RUN}{where} ORDER BY runs.id DESC LIMIT ? OFFSET ?", (*values, limit, offset))
    return [_info(line) for line in found]


def threads(connection: sqlite3.Connection, *, owner: Any, limit: int, offset: int) -> list[ThreadInfo]:
    """Return threads, the one written last first."""
    where, values = ("", []) if owner is ANY_OWNER else (" WHERE owner IS ?", [_pack_owner(owner)])
    found = connection.execute(
        "SELECT thread_id, owner, runs, status, threads.title, threads.created_at, threads.updated_at FROM threads"
        f" JOIN runs ON runs.thread = threads.id AND number = runs{where}"
        " ORDER BY threads.updated_at DESC, threads.id DESC LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [
        ThreadInfo(
            thread_id=_unpack(thread_id),
            owner=_unpack(held_by) if held_by is not None else None,
            runs=count,
            status=status,
            title=_unpack(title),
            created_at=created_at,
            updated_at=updated_at,
        )
        for thread_id, held_by, count, status, title, created_at, updated_at in found
    ]


def delete(connection: sqlite3.Connection, thread_id: str, holder: Holder) -> bool:
    """Delete a thread; return whether there was one."""
    found = connection.execute(
        "SELECT id, holder, expires_at FROM threads WHERE thread_id = ?", (_pack(thread_id),)
    ).fetchone()
    if found is None:
        return False
    thread, held_by, expires_at = found
    _refuse_busy(thread, held_by, expires_at, thread_id, holder)
    _delete(connection, thread)
    return True


def _delete(connection: sqlite3.Connection, thread: int) -> None:
    for (run,) in connection.execute("SELECT id FROM runs WHERE thread = ?", (thread,)).fetchall():
        connection.execute("DELETE FROM rows WHERE id > ? AND id < ?", _span(run))
    connection.execute("DELETE FROM runs WHERE thread = ?", (thread,))
    connection.execute("DELETE FROM threads WHERE id = ?", (thread,))


def prunable(connection: sqlite3.Connection, oldest: float | None, keep_threads: int | None) -> list[tuple[int, float]]:
    """Return the threads that may go, each with the time it was last written."""
    newest_first = connection.execute("SELECT id, updated_at FROM threads ORDER BY updated_at DESC, id DESC").fetchall()
    kept = keep_threads if keep_threads is not None else len(newest_first)
    return [
        (thread, updated_at)
        for place, (thread, updated_at) in enumerate(newest_first)
        if place >= kept or (oldest is not None and updated_at < oldest)
    ]


def prune(connection: sqlite3.Connection, doomed: Sequence[tuple[int, float]], holder: Holder) -> int:
    """Delete those of the threads that nothing was written to meanwhile, nor is at work on, nor are paused."""
    deleted = 0
    for thread, updated_at in doomed:
        found = connection.execute(
            "SELECT holder, expires_at, status, threads.updated_at FROM threads"
            " JOIN runs ON runs.thread = threads.id AND number = runs WHERE threads.id = ?",
            (thread,),
        ).fetchone()
        if found is None or found[2] == "paused" or found[3] != updated_at:
            continue
        if not _is_held(thread, found[0], found[1], holder):
            _delete(connection, thread)
            deleted += 1
    return deleted
