"""A tool for one Redis database, which reads or, when told so, writes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from graphwright._internal.optional import is_installed
from graphwright.exceptions import MissingExtraError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds, cut
from graphwright.tools.builtin._rows import Dsn, checked_dsn, dsn_of

__all__ = ["RedisTool"]

_READS_NAMES = """
    BITCOUNT BITPOS DBSIZE EXISTS EXPIRETIME GEODIST GEOHASH GEOPOS GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET
    HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS LINDEX LLEN LPOS LRANGE MGET PFCOUNT PTTL
    RANDOMKEY SCAN SCARD SDIFF SINTER SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER SSCAN STRLEN SUNION TTL TYPE
    XINFO XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE
    ZRANK ZREVRANGE ZREVRANK ZSCAN ZSCORE
"""
_READS = frozenset(_READS_NAMES.split())
_WRITES_NAMES = """
    APPEND COPY DECR DECRBY DEL EXPIRE EXPIREAT GETDEL GETEX GETSET HDEL HINCRBY HINCRBYFLOAT HSET HSETNX INCR
    INCRBY INCRBYFLOAT LINSERT LMOVE LPOP LPUSH LPUSHX LREM LSET LTRIM MSET MSETNX PERSIST PEXPIRE PFADD
    PFMERGE PSETEX RENAME RENAMENX RPOP RPUSH RPUSHX SADD SET SETBIT SETEX SETNX SETRANGE SMOVE SPOP SREM
    UNLINK XADD XDEL XTRIM ZADD ZINCRBY ZPOPMAX ZPOPMIN ZREM
"""
_WRITES = frozenset(_WRITES_NAMES.split())
# Command -> the one that tells the size of what it would return.
_SIZES = {"GET": "STRLEN", "HGETALL": "HLEN", "HKEYS": "HLEN", "HVALS": "HLEN", "SMEMBERS": "SCARD"}


class RedisTool(BuiltinTool):
    """Read values of the Redis database at `url`, or change them with `write=True`. Needs the extra `redis`.

    Only listed commands are sent, so scripts, settings, blocking commands, `KEYS` and what empties a database never
    are.
    """

    tool_name = "redis"

    def __init__(
        self,
        url: Dsn,
        *,
        write: bool = False,
        max_items: int = 1_000,
        max_chars: int = 50_000,
        command_timeout: float = 10.0,
        name: str | None = None,
    ) -> None:
        self._url = checked_dsn(url, "redis", "rediss")
        self._commands = _READS | _WRITES if write else _READS
        self._max_items = checked_count(max_items, "max_items")
        self._max_chars = checked_count(max_chars, "max_chars")
        self._seconds = checked_seconds(command_timeout, "command_timeout")
        self.risk_level = 2 if write else 1
        self.idempotent = not write
        super().__init__(name=name or ("redis_write" if write else "redis"))
        if not is_installed("redis"):
            raise MissingExtraError("RedisTool", extra="redis", package="redis")

    async def call(self, command: str, arguments: list[str | int | float] | None = None) -> Any:
        """Run one Redis command and return its reply.

        Args:
            command: The name of the command, such as GET or HGETALL; use SCAN to look for keys.
            arguments: Its arguments, in order.
        """
        word, given = command.strip().upper(), arguments or []
        if word not in self._commands:
            more = "" if word not in _WRITES else "; this tool only reads"
            raise ToolError(
                f"{command!r} is no command of {self.name!r}{more}; there are {', '.join(sorted(self._commands))}"
            )
        reply = await self._ask(word, given)
        shown = _plain(reply, self._max_items)
        text = json.dumps(shown, ensure_ascii=False, default=str)
        return shown if len(text) <= self._max_chars else cut(text, self._max_chars)

    async def _ask(self, word: str, given: list[str | int | float]) -> Any:
        from redis.asyncio import Redis
        from redis.exceptions import AuthenticationError, ConnectionError, RedisError

        client: Any = Redis.from_url(
            await dsn_of(self._url), socket_timeout=self._seconds, socket_connect_timeout=self._seconds
        )
        try:
            async with asyncio.timeout(self._seconds):
                if word in _SIZES and given:
                    self._check_size(word, await client.execute_command(_SIZES[word], given[0]))
                return await client.execute_command(word, *given)
        except TimeoutError:
            raise ToolError(f"Redis did not answer within {self._seconds:g} s") from None
        except (OSError, ConnectionError, AuthenticationError) as error:
            # The text of the error may name the host and the user.
            raise ToolError(f"Redis cannot be reached ({type(error).__name__}); try later") from None
        except RedisError as error:
            raise ToolError(f"{word} failed: {error}") from None
        finally:
            await client.aclose()

    def _check_size(self, word: str, size: int) -> None:
        limit = self._max_chars if word == "GET" else self._max_items
        if size > limit:
            part = "GETRANGE" if word == "GET" else "HSCAN or SSCAN"
            raise ToolError(f"{word} would return {size}, and {limit} is the most; read a part with {part}")


def _plain(value: Any, max_items: int) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"<{len(value)} bytes>"
    if isinstance(value, dict):
        return {str(_plain(key, max_items)): _plain(entry, max_items) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set)):
        entries = [_plain(entry, max_items) for entry in list(value)[:max_items]]
        return entries if len(value) <= max_items else [*entries, f"[cut: {len(value) - max_items} more]"]
    return value
