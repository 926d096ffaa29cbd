"""Conversations in Redis; whatever has to happen at once is one script that Redis runs."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Sequence
from typing import Any, cast

from graphwright.conversations import _redis_scripts as lua
from graphwright.conversations._checks import check_count, check_owner_id, check_page, now_micros, session_changes
from graphwright.conversations._rows import (
    Row,
    check_session_id,
    from_micros,
    message_of,
    pack_text,
    rows_of,
    unpack,
    unpack_text,
)
from graphwright.conversations._scripts import check_owner
from graphwright.conversations.base import ANY_OWNER, Message, SessionInfo
from graphwright.exceptions import (
    ConfigurationError,
    ConversationConflict,
    MissingExtraError,
    SessionAccessDenied,
    StoreUnavailable,
)

__all__ = ["RedisConversationStore"]

_PREFIX = re.compile(r"[A-Za-z0-9_.:\-]{0,100}")
_ATTEMPTS = 3


class RedisConversationStore:
    """Keeps conversations in Redis, where they can expire by themselves.

    A session is a hash and a sorted set of its messages, ordered by their sequence number. It needs the extra
    `redis` and one Redis server (or a primary with replicas), not a cluster.
    """

    def __init__(
        self,
        url: str = "redis://localhost:6379",
        key_prefix: str = "promptise:",
        ttl: int = 0,
        max_messages_per_session: int = 0,
        *,
        max_connections: int = 50,
        timeout: float = 30.0,
    ) -> None:
        """Name the server.

        `ttl` is the seconds that a session lives after it was last written to (0: for ever);
        `max_messages_per_session` keeps about the newest ones (0: all); `timeout` is the seconds to wait for a free
        connection or an answer.
        """
        try:
            import redis.asyncio  # noqa: F401  # asked for here, so that a missing package is not found out later
        except ImportError as error:
            raise MissingExtraError("RedisConversationStore", extra="redis", package="redis") from error
        if not _PREFIX.fullmatch(key_prefix):
            raise ConfigurationError(
                f"key_prefix {key_prefix!r} cannot be used; give up to 100 letters, digits and any of '_.:-'"
            )
        self._url = url
        self._prefix = key_prefix
        self._ttl = check_count("ttl", ttl) * 1_000_000
        self._limit = check_count("max_messages_per_session", max_messages_per_session)
        self._most = max(1, check_count("max_connections", max_connections))
        self._timeout = timeout
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def load_messages(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Load the messages of a session: all, those after a sequence number, or about the `last` ones."""
        check_session_id(session_id)
        first = check_count("after", after or 0)
        if last is not None and check_count("last", last) == 0:
            return []
        found = await self._call(lua.LOAD, session_id, now_micros(), first, last or 0)
        return [_message(member) for member in found]

    async def save_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session, creating it if it is new. All of it happens, or nothing."""
        check_session_id(session_id)
        rows = rows_of(messages)
        await self._write(session_id, rows, mode="save", expected=-1, owner=ANY_OWNER, title=None)

    async def append_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        expected_version: int | None = None,
        owner: str | None = ANY_OWNER,
        title: str | None = None,
    ) -> int:
        """Add messages at the end and return the session's new version; see `AppendingStore`."""
        check_session_id(session_id)
        rows = rows_of(messages)
        wanted = owner if owner is ANY_OWNER else check_owner_id(owner)
        expected = -1 if expected_version is None else check_count("expected_version", expected_version)
        return await self._write(session_id, rows, mode="append", expected=expected, owner=wanted, title=title)

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> SessionInfo:
        """Return the session of this owner, creating it if it is new; see `AppendingStore`."""
        check_session_id(session_id)
        check_owner_id(owner)
        now = now_micros()
        fields = await self._call(lua.CLAIM, session_id, now, _owner(owner), int(adopt), self._expiry(now))
        info = _session(session_id, fields)
        check_owner(session_id, info.user_id, owner)
        return info

    async def get_session(self, session_id: str) -> SessionInfo | None:
        """Return what is known of a session, or `None`."""
        check_session_id(session_id)
        fields = await self._call(lua.GET, session_id, now_micros())
        return _session(session_id, fields) if fields else None

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, offset: int = 0, unowned: bool = False
    ) -> list[SessionInfo]:
        """List sessions, the one written last first: all, those of `user_id`, or those that nobody owns."""
        check_page(limit, offset)
        which = "0" if unowned else _owner(user_id) if user_id is not None else ""
        found = await self._call(lua.LIST, "", now_micros(), which, limit, offset)
        return [_session(session_id.decode(), fields) for session_id, fields in found]

    async def update_session(
        self,
        session_id: str,
        *,
        user_id: Any = ...,
        title: Any = ...,
        metadata: Any = ...,
        expires_at: Any = ...,
    ) -> bool:
        """Change what is given and leave the rest; return whether there is such a session."""
        changes = session_changes(session_id, user_id=user_id, title=title, metadata=metadata, expires_at=expires_at)
        if "user_id" in changes:
            changes["user_id"] = _owner(user_id)
        fields = [text for name, value in changes.items() for text in (name, "" if value is None else str(value))]
        if title is None:
            fields[fields.index("title")] = "-title"
        return bool(await self._call(lua.UPDATE, session_id, now_micros(), *fields))

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its messages; return whether there was one."""
        check_session_id(session_id)
        return bool(await self._call(lua.DELETE, session_id, now_micros()))

    async def cleanup_expired(self) -> int:
        """Delete the sessions whose time is over; return how many there were."""
        return int(await self._call(lua.CLEANUP, "", now_micros()))

    async def purge_user(self, user_id: str) -> int:
        """Delete every session of this owner; return how many there were."""
        check_owner_id(user_id)
        return int(await self._call(lua.PURGE, "", now_micros(), _owner(user_id)))

    async def close(self) -> None:
        """Close the connections. The store cannot be used afterwards; closing again does nothing."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()
            await client.connection_pool.disconnect()

    async def _write(
        self, session_id: str, rows: list[Row], *, mode: str, expected: int, owner: Any, title: str | None
    ) -> int:
        now = now_micros()
        wanted = "" if owner is ANY_OWNER else _owner(owner)
        packed = "" if title is None else "1" + pack_text(title)
        # A call that is repeated after its answer was lost finds its name, and does nothing.
        name = secrets.token_hex(8)
        fixed = (now, mode, name, expected, wanted, packed, self._limit, self._expiry(now))
        members = [part for row in rows for part in (row.role, _body(row))]
        answer, version = await self._call(lua.WRITE, session_id, *fixed, *members)
        outcome = answer.decode()
        if outcome == "denied":
            raise SessionAccessDenied(
                f"session {session_id!r} is not this caller's; use the id of a session of their own, or a new one"
            )
        if outcome == "conflict":
            raise ConversationConflict(session_id, expected=expected, actual=int(version))
        return int(version)

    async def _call(self, script: lua.LuaScript, session_id: str, *args: Any) -> Any:
        """Run a script, again where the connection was lost: every script may be run twice."""
        from redis.exceptions import NoScriptError, RedisError

        for attempt in range(1, _ATTEMPTS + 1):
            client = self._connected()
            keys = (self._prefix, session_id)
            try:
                try:
                    return await cast("Awaitable[Any]", client.evalsha(script.sha, 0, *keys, *args))
                except NoScriptError:
                    return await cast("Awaitable[Any]", client.eval(script.text, 0, *keys, *args))
            except (RedisError, OSError) as error:
                if attempt == _ATTEMPTS or not _is_lost_connection(error):
                    raise StoreUnavailable(
                        f"the conversation store in Redis cannot be used: {str(error) or type(error).__name__}; "
                        "whether a write arrived is unknown"
                    ) from error
        raise AssertionError("unreachable")

    def _connected(self) -> Any:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        if self._closed:
            raise StoreUnavailable("the conversation store in Redis is closed; make a new one")
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            pool = BlockingConnectionPool.from_url(
                self._url,
                max_connections=self._most,
                timeout=self._timeout,
                socket_timeout=self._timeout,
                socket_connect_timeout=self._timeout,
                retry=Retry(NoBackoff(), 0),
            )
            self._client, self._loop = Redis(connection_pool=pool), loop
        return self._client

    def _expiry(self, now: int) -> int:
        return now + self._ttl if self._ttl else 0


def _owner(user_id: str | None) -> str:
    """Return an owner as one word, so that nobody and every user differ from each other."""
    return "0" if user_id is None else "1" + pack_text(user_id)


def _body(row: Row) -> str:
    return json.dumps([row.content, row.metadata, row.created_at], ensure_ascii=False, separators=(",", ":"))


def _message(member: bytes) -> Message:
    head, _, body = member.decode().partition("|")
    role, seq = head.split(":")
    content, metadata, created_at = json.loads(body)
    return message_of(int(seq), role, content, metadata, created_at)


def _session(session_id: str, fields: Sequence[bytes]) -> SessionInfo:
    texts = [field.decode() for field in fields]
    values = dict(zip(texts[::2], texts[1::2], strict=True))
    expires_at = int(values.get("expires_at") or 0)
    owner = values["user_id"]
    return SessionInfo(
        session_id=session_id,
        user_id=None if owner == "0" else unpack_text(owner[1:]),
        title=unpack_text(values["title"]) if "title" in values else None,
        message_count=int(values["message_count"]),
        created_at=from_micros(int(values["created_at"])),
        updated_at=from_micros(int(values["updated_at"])),
        metadata=unpack(values["metadata"]),
        expires_at=from_micros(expires_at) if expires_at else None,
        version=int(values["version"]),
    )


def _is_lost_connection(error: BaseException) -> bool:
    from redis.exceptions import BusyLoadingError
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError

    if isinstance(error.__cause__, TimeoutError):
        return False  # the connections are in use, or the server does not answer: both have been waited for
    # A server that is starting says that it is busy.
    return isinstance(error, (RedisConnectionError, OSError)) and not isinstance(
        error, (BusyLoadingError, RedisTimeoutError, TimeoutError)
    )
