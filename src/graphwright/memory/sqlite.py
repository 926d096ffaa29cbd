"""Keep memories in an SQLite file and find them by their words, ranked with BM25."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from graphwright._internal.threads import run_in_thread
from graphwright.caller import IsolationKey
from graphwright.exceptions import ConfigurationError
from graphwright.memory.base import (
    MemoryResult,
    MemoryScope,
    checked_content,
    partition_of,
    purged_partition,
    words_of,
)

__all__ = ["SQLiteMemoryProvider"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, content TEXT NOT NULL, metadata TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS memories_owner ON memories (owner);
CREATE VIRTUAL TABLE IF NOT EXISTS memories_words USING fts5 (partition, content);
"""

_FIND = """
SELECT m.id, m.content, m.metadata, f.rank FROM memories_words AS f JOIN memories AS m ON m.seq = f.rowid
WHERE memories_words MATCH ? AND f.rank MATCH 'bm25(0.0, 1.0)' AND (? OR m.owner = ?) ORDER BY f.rank LIMIT ?
"""


class SQLiteMemoryProvider:
    """Memories in the SQLite file `path`, ranked with BM25; `":memory:"` keeps them in this object."""

    def __init__(self, path: str | Path = "memory.db", *, scope: MemoryScope = MemoryScope.PER_USER) -> None:
        self._path = str(path)
        self._shared = MemoryScope(scope) is MemoryScope.SHARED
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    async def search(self, query: str, *, limit: int = 5, user_id: str | None = None) -> list[MemoryResult]:
        """Return the memories that hold words of the query, best first."""
        owner, words = partition_of(user_id), words_of(query)
        if not words or limit < 1:
            return []
        return await run_in_thread(self._search, owner, words, limit)

    async def add(self, content: str, *, metadata: Mapping[str, Any] | None = None, user_id: str | None = None) -> str:
        """Keep `content` in one transaction and return its id."""
        owner, text = partition_of(user_id), checked_content(content)
        try:
            noted = json.dumps(dict(metadata or {}), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"metadata {metadata!r} is not JSON ({error}); give plain values") from error
        return await run_in_thread(self._add, owner, text, noted)

    async def delete(self, memory_id: str, *, user_id: str | None = None) -> bool:
        """Remove a memory of this caller's and say whether there was one."""
        owner = partition_of(user_id)
        return bool(await run_in_thread(self._remove, "id = ? AND (? OR owner = ?)", (memory_id, self._shared, owner)))

    async def purge_user(self, user_id: str | None, *, tenant_id: str | None = None) -> int:
        """Remove everything that a caller stored, also where all is shared."""
        return await run_in_thread(self._remove, "owner = ?", (purged_partition(user_id, tenant_id),))

    async def close(self) -> None:
        """Close the file; the next call opens it again."""
        await run_in_thread(self._close)

    def _search(self, owner: IsolationKey, words: list[str], limit: int) -> list[MemoryResult]:
        # Each word is a quoted string of letters and digits, so nothing in a query is read as FTS5 syntax.
        sought = "content : (" + " OR ".join(f'"{word}"' for word in words) + ")"
        if not self._shared:
            sought = f'partition : "{_token(owner)}" AND {sought}'
        with self._lock:
            rows = self._connection().execute(_FIND, (sought, self._shared, owner, limit)).fetchall()
        return [
            MemoryResult(content, _share(rank), memory_id, json.loads(noted))
            for memory_id, content, noted, rank in rows
        ]

    def _add(self, owner: IsolationKey, text: str, noted: str) -> str:
        memory_id = uuid4().hex
        with self._lock, self._connection() as connection:
            row = connection.execute(
                "INSERT INTO memories (id, owner, content, metadata) VALUES (?, ?, ?, ?)",
                (memory_id, owner, text, noted),
            )
            connection.execute(
                "INSERT INTO memories_words (rowid, partition, content) VALUES (?, ?, ?)",
                (row.lastrowid, _token(owner), text),
            )
        return memory_id

    def _remove(self, where: str, values: tuple[Any, ...]) -> int:
        with self._lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                f"DELETE FROM memories_words WHERE rowid IN (SELECT seq FROM memories WHERE {where})", values
            )
            return connection.execute(f"DELETE FROM memories WHERE {where}", values).rowcount

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            opened = sqlite3.connect(self._path, timeout=30, check_same_thread=False)
            opened.execute("PRAGMA journal_mode = WAL")
            opened.executescript(_SCHEMA)
            self._open = opened
        return self._open

    def _close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None


def _token(owner: IsolationKey) -> str:
    return "p" + hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()


def _share(rank: float) -> float:
    """Turn a BM25 rank, which is below zero and has no bound, into a score from 0 to 1."""
    return -rank / (1 - rank) if rank < 0 else 0.0
