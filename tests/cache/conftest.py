"""The places where a cache keeps its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from tests.servers import RedisServer, redis_server

from graphwright.cache import MemoryBackend, RedisBackend, SemanticCache

_numbers = count(1)


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """A Redis server for all tests of caches."""
    pytest.importorskip("redis", reason="redis is not installed; install the extra redis")
    with redis_server() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
async def make_cache(request: pytest.FixtureRequest) -> Any:
    """Return what makes a cache in each kind of place; caches of one test share theirs."""
    if request.param == "memory":
        backend: Any = MemoryBackend()
    else:
        server: RedisServer = request.getfixturevalue("redis")
        backend = RedisBackend(server.url, key_prefix=f"c{next(_numbers)}:")

    def make(**options: Any) -> SemanticCache:
        return SemanticCache(backend, **options)

    made: Callable[..., SemanticCache] = make
    yield made
    await backend.close()
