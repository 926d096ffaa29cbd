"""The file of a SQLite run log: where it is, how it is opened, what is in it, and how an older one is brought up."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from graphwright.exceptions import StoreUnavailable

__all__ = ["MIGRATIONS", "default_file", "open_reading", "open_writing", "unavailable"]

_FILE = "graphwright-runs.db"
_APPLICATION = 0x67777231

_FIRST = """
CREATE TABLE threads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  thread_id TEXT NOT NULL UNIQUE,
  owner TEXT,
  title TEXT NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  token INTEGER NOT NULL DEFAULT 0,
  holder TEXT,
  expires_at REAL NOT NULL DEFAULT 0
);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  thread INTEGER NOT NULL REFERENCES threads (id),
  number INTEGER NOT NULL,
  graph TEXT NOT NULL,
  graph_digest TEXT NOT NULL,
  title TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  metadata TEXT NOT NULL
);
CREATE INDEX runs_by_thread ON runs (thread, number);
CREATE TABLE rows (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  frame TEXT NOT NULL,
  key TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL
);
"""
# The id of a row is its run's number in the upper half and its place in the run in the lower: one tree, no index, and
# the rows of a run lie side by side.


def _create(connection: sqlite3.Connection) -> None:
    for statement in _FIRST.split(";"):
        connection.execute(statement)


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_create]
"""What brings a file from each version to the next; its version is how many of them it has had."""


def default_file() -> Path:
    """Return the file that is used when none is named."""
    home = os.environ.get("GRAPHWRIGHT_HOME")
    if home:
        return Path(home).expanduser() / _FILE
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "graphwright" / _FILE


def open_writing(path: Path, *, synchronous: str, busy_seconds: float) -> sqlite3.Connection:
    """Open a file for the one thread that writes it, making it or bringing it up to date first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Conversations are in it: made for its owner only, and the files beside it follow.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        _use_wal(connection, path, busy_seconds)
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA secure_delete=ON")
        _bring_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reading(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    """Open a file that exists for reading only."""
    # Not by its plain name, which would make an empty file where the log was taken away.
    name = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(name, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _use_wal(connection: sqlite3.Connection, path: Path, busy_seconds: float) -> None:
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            # The change of mode does not wait for others who open the file at the same moment.
            if not _is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.002, 0.03))
    if mode != "wal":
        raise StoreUnavailable(
            f"the run log {str(path)!r} cannot have a write-ahead log (SQLite says {mode!r}); put it on a local disk"
        )


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise StoreUnavailable(
                f"the run log {str(path)!r} has version {version}, and this version of Graphwright knows up to "
                f"{len(MIGRATIONS)}; use a newer one, or another file"
            )
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreUnavailable(f"{str(path)!r} is a database of something else; name another file for the run log")
        for step in MIGRATIONS[version:]:
            step(connection)
        connection.execute(f"PRAGMA application_id={_APPLICATION}")
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    with closing(connection.execute("PRAGMA user_version")) as found:
        return int(found.fetchone()[0])


def _is_locked(error: BaseException) -> bool:
    return "locked" in str(error) or "busy" in str(error)


_REMEDIES = {
    "locked": "another program has held it for too long; end that, or raise busy_seconds",
    "full": "free some space on its disk",
    "disk I/O": "see that its disk is in order and has space, and that no limit on the size of files is met",
    "readonly": "let this user write the file and its folder",
    "unable to open": "see that its folder exists and this user may write there",
    "not a database": "it is not a run log, or it is damaged; move it away or restore it from a copy",
    "malformed": "it is damaged; move it away or restore it from a copy",
}


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    """Return the error that tells a caller what is wrong with the file, and what to do."""
    if isinstance(error, StoreUnavailable):
        return error
    found = next((remedy for sign, remedy in _REMEDIES.items() if sign in str(error)), None)
    if found is None:
        found = _REMEDIES["unable to open"] if isinstance(error, OSError) else "see the cause"
    made = StoreUnavailable(f"the run log {str(path)!r} cannot be used: {error}; {found}")
    made.__cause__ = error
    return made
