"""Cached values in Redis, for several processes; whatever has to happen at once is one script that Redis runs."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from graphwright.cache.base import CacheEntry
from graphwright.exceptions import ConfigurationError, MissingExtraError

__all__ = ["RedisBackend"]

_PREFIX = re.compile(r"[A-Za-z0-9_.:\-]{0,100}")
_MOST_OF_GROUP = 1000
_CONNECTIONS = 20

# Every index is a sorted set of "partition:group:name:owner", by the time at which the value runs out.
_SHARED = """
local p = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function drop(member)
  local partition, group, name = string.match(member, '^(%x+):(%x+):(%x+):')
  redis.call('DEL', p .. 'v:' .. partition .. ':' .. group .. ':' .. name)
  redis.call('ZREM', p .. 'i:' .. partition, member)
  redis.call('ZREM', p .. 'g:' .. partition .. ':' .. group, member)
  redis.call('ZREM', p .. 'a', member)
end
local function raise(partition)
  redis.call('INCR', p .. 'n:' .. partition)
  redis.call('EXPIRE', p .. 'n:' .. partition, 604800)
end
"""
_GET = """
local value = redis.call('HGET', p .. 'v:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3], 'd')
return {value, redis.call('GET', p .. 'n:' .. ARGV[1])}
"""
_GROUP = """
local found = {}
local index = p .. 'g:' .. ARGV[1] .. ':' .. ARGV[2]
for _, member in ipairs(redis.call('ZREVRANGEBYSCORE', index, '+inf', now, 'LIMIT', 0, ARGV[3])) do
  local name = string.match(member, '^%x+:%x+:(%x+):')
  local value = redis.call('HGET', p .. 'v:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. name, 'd')
  if value then found[#found + 1] = value end
end
return found
"""
_PUT = """
local partition, group, name, owner = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if (redis.call('GET', p .. 'n:' .. partition) or '0') ~= ARGV[7] then return 0 end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', p .. 'a', '-inf', now, 'LIMIT', 0, 100)) do drop(member) end
local place = partition .. ':' .. group .. ':' .. name
local before = redis.call('HGET', p .. 'v:' .. place, 'o')
if before then drop(place .. ':' .. before) end
local life = tonumber(ARGV[6])
redis.call('HSET', p .. 'v:' .. place, 'o', owner, 'd', ARGV[5])
redis.call('PEXPIRE', p .. 'v:' .. place, life)
for _, index in ipairs({p .. 'a', p .. 'i:' .. partition, p .. 'g:' .. partition .. ':' .. group}) do
  redis.call('ZADD', index, now + life, place .. ':' .. owner)
  if redis.call('PTTL', index) < life then redis.call('PEXPIRE', index, life) end
end
for index, most in pairs({[p .. 'i:' .. partition] = tonumber(ARGV[8]), [p .. 'a'] = tonumber(ARGV[9])}) do
  local over = redis.call('ZCARD', index) - most
  if over > 0 then
    for _, member in ipairs(redis.call('ZRANGE', index, 0, over - 1)) do drop(member) end
  end
end
return 1
"""
_INVALIDATE = """
raise(ARGV[1])
local members = redis.call('ZRANGE', p .. 'i:' .. ARGV[1], 0, -1)
for _, member in ipairs(members) do drop(member) end
return #members
"""
_PURGE = """
raise(ARGV[2])
local count = 0
for _, member in ipairs(redis.call('ZRANGE', p .. 'a', 0, -1)) do
  if string.match(member, ':(%x+)$') == ARGV[1] then
    drop(member)
    count = count + 1
  end
end
return count
"""
_COUNT = "return redis.call('ZCOUNT', p .. 'a', now, '+inf')"


class RedisBackend:
    """Keeps values in Redis, where they run out by themselves. It needs one server, not a cluster."""

    def __init__(
        self, url: str = "redis://localhost:6379", *, key_prefix: str = "graphwright:cache:", timeout: float = 2.0
    ) -> None:
        """Name the server. `timeout` is the seconds to wait for an answer.

        Raises:
            MissingExtraError: the extra `redis` is not installed.
        """
        try:
            import redis.asyncio  # noqa: F401  # asked for here, so that a missing package is not found out later
        except ImportError as error:
            raise MissingExtraError("a cache in Redis", extra="redis", package="redis") from error
        if not _PREFIX.fullmatch(key_prefix):
            raise ConfigurationError(
                f"key_prefix {key_prefix!r} cannot be used; give up to 100 letters, digits and any of '_.:-'"
            )
        self._url = url
        self._prefix = key_prefix
        self._timeout = timeout
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self, partition: str, group: str, name: str) -> tuple[bytes | None, int]:
        """Return one value, and the generation of its partition."""
        value, generation = await self._call(_GET, partition, group, name)
        return value, int(generation or 0)

    async def group(self, partition: str, group: str) -> list[bytes]:
        """Return the values of a group, at most a thousand: those that are kept longest."""
        return list(await self._call(_GROUP, partition, group, _MOST_OF_GROUP))

    async def put(self, entry: CacheEntry, *, generation: int, most_of_partition: int, most: int) -> bool:
        """Keep a value, unless the partition was emptied since; what runs out first makes room."""
        life = max(1, round(entry.seconds * 1000))
        place = (entry.partition, entry.group, entry.name, entry.owner)
        return bool(await self._call(_PUT, *place, entry.value, life, generation, most_of_partition, most))

    async def invalidate(self, partition: str) -> int:
        """Empty a partition and raise its generation; return how many values there were."""
        return int(await self._call(_INVALIDATE, partition))

    async def purge_owner(self, owner: str, partition: str) -> int:
        """Delete every value of this owner's runs, raise the generation of `partition`; return how many there were."""
        return int(await self._call(_PURGE, owner, partition))

    async def count(self) -> int:
        """Return how many values there are."""
        return int(await self._call(_COUNT))

    async def close(self) -> None:
        """Close the connections; the values stay."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()
            await client.connection_pool.disconnect()

    async def _call(self, script: str, *arguments: Any) -> Any:
        return await self._connected().eval(_SHARED + script, 1, self._prefix, *arguments)

    def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            from redis.asyncio import BlockingConnectionPool, Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff

            # A connection belongs to the loop that opened it; those of a loop that has ended go with it.
            pool = BlockingConnectionPool.from_url(
                self._url,
                max_connections=_CONNECTIONS,
                timeout=self._timeout,
                socket_timeout=self._timeout,
                socket_connect_timeout=self._timeout,
                retry=Retry(NoBackoff(), 1),  # once, for a connection that went stale; a cache is not waited for
            )
            self._client = Redis.from_pool(pool)
            self._loop = loop
        return self._client
