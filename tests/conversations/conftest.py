"""Servers and stores for the tests of conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.servers import PostgresServer, RedisServer, postgres_server, redis_server

from graphwright.conversations import (
    AppendingStore,
    InMemoryConversationStore,
    PostgresConversationStore,
    RedisConversationStore,
    SQLiteConversationStore,
)

KINDS = ("memory", "sqlite", "postgres", "redis")

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of conversations."""
    pytest.importorskip("asyncpg", reason="asyncpg is not installed; install the extra postgres")
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """A Redis server for all tests of conversations."""
    pytest.importorskip("redis", reason="redis is not installed; install the extra redis")
    with redis_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., AppendingStore]:
    """Return what makes a fresh, empty store of each kind; `name` gives two stores the same data."""
    kind: str = request.param

    def make(name: str | None = None, **options: Any) -> AppendingStore:
        name = name or f"t{next(_numbers)}"
        if kind == "memory":
            return InMemoryConversationStore(**options)
        if kind == "sqlite":
            return SQLiteConversationStore(tmp_path / "conversations.db", table_prefix=f"{name}_", **options)
        if kind == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            return PostgresConversationStore(server.dsn, table_prefix=f"{name}_", pool_min=1, pool_max=4, **options)
        redis_: RedisServer = request.getfixturevalue("redis")
        return RedisConversationStore(redis_.url, key_prefix=f"{name}:", **options)

    return make
