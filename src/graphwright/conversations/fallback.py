"""The careful use of a store that has only the five documented methods.

Such a store can replace a conversation but not add to it, and does not know owners. Here an append first loads what
is there, and writes nothing when that fails; the owner of a session is kept in the metadata of its messages. Writers
in one process wait for each other; writers in several processes need a store that has `append_messages`.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from graphwright._internal.aio import settle
from graphwright.conversations._checks import check_count, check_owner_id, check_page
from graphwright.conversations._rows import check_session_id, rows_of
from graphwright.conversations._scripts import check_owner
from graphwright.conversations._window import newest
from graphwright.conversations.base import ANY_OWNER, AppendingStore, ConversationStore, Message, SessionInfo
from graphwright.exceptions import (
    ConfigurationError,
    ConversationConflict,
    FeatureOffError,
    SessionError,
    StoreUnavailable,
)

__all__ = ["OWNER", "CarefulStore", "as_appending"]

logger = logging.getLogger(__name__)

OWNER = "_owner"
"""Key of the metadata that holds the owner of a session, on its first message and every later one: a store may drop
the oldest."""

_PAGE = 100


def as_appending(store: Any) -> AppendingStore:
    """Return a store that can append: the given one, or a `CarefulStore` around one that has only five methods.

    Raises:
        ConfigurationError: it is no conversation store.
    """
    if isinstance(store, AppendingStore):
        return store
    if isinstance(store, ConversationStore) and not isinstance(store, type):
        return CarefulStore(store)
    raise ConfigurationError(
        f"{store!r} is no conversation store; it needs load_messages, save_messages, delete_session, list_sessions "
        "and close"
    )


class CarefulStore:
    """Appends to and asks for owners of a store that knows neither."""

    def __init__(self, store: ConversationStore) -> None:
        self.store = store
        """The store that keeps everything."""
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def load_messages(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Load the messages of a session, numbered from 1 as they come."""
        first = check_count("after", after or 0)
        found = [_without_owner(message) for message in await self._load(session_id) if message.seq > first]
        if last is None:
            return found
        return newest(found, last) if check_count("last", last) else []

    async def save_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session; its owner stays."""
        rows_of(messages)
        async with self._alone(session_id):
            owner = await self._owner(session_id, await self._load(session_id))
            await self._save(session_id, messages, owner)

    async def append_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        expected_version: int | None = None,
        owner: str | None = ANY_OWNER,
        title: str | None = None,
    ) -> int:
        """Add messages at the end; the version is the number of messages. See `AppendingStore`.

        Raises:
            StoreUnavailable: the session could not be loaded; nothing was written.
        """
        rows = rows_of(messages)
        wanted = owner if owner is ANY_OWNER else check_owner_id(owner)
        async with self._alone(session_id):
            there = await self._load(session_id)
            actual = await self._owner(session_id, there, new=wanted)
            check_owner(session_id, actual, wanted)
            if expected_version is not None and len(there) != expected_version:
                arrived = [_without_owner(message) for message in there[expected_version:][: len(messages)]]
                if rows and [row[1:] for row in rows_of(arrived)] == [row[1:] for row in rows]:
                    return expected_version + len(rows)
                raise ConversationConflict(session_id, expected=expected_version, actual=len(there))
            if messages:
                await self._save(session_id, [*there, *messages], actual)
            if title is not None and not there:
                await self._set_title(session_id, title)
            return len(there) + len(messages)

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> SessionInfo:
        """Return the session of this owner. A new one becomes theirs with its first message; see `AppendingStore`."""
        check_owner_id(owner)
        async with self._alone(session_id):
            there = await self._load(session_id)
            actual = await self._owner(session_id, there, new=owner)
            if there and adopt and actual is None and owner is not None:
                await self._save(session_id, there, owner)
                actual = owner
            check_owner(session_id, actual, owner)
            return self._info(session_id, there, actual)

    async def get_session(self, session_id: str) -> SessionInfo | None:
        """Return what is known of a session, or `None` when it has no messages."""
        there = await self._load(session_id)
        known = await self._known(session_id)
        if not there and known is None:
            return None
        owner = await self._owner(session_id, there)
        if known is not None:
            return replace(known, user_id=owner, version=len(there), message_count=len(there))
        return self._info(session_id, there, owner)

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, offset: int = 0, unowned: bool = False
    ) -> list[SessionInfo]:
        """List sessions. To find those of an owner, every session has to be loaded."""
        check_page(limit, offset)
        if user_id is None and not unowned:
            page = await self.store.list_sessions(limit=limit, offset=offset)
            return [await self._with_owner(info) for info in page]
        wanted = None if unowned else user_id
        found: list[SessionInfo] = []
        async for info in self._all():
            if len(found) >= offset + limit:
                break
            owned = await self._with_owner(info)
            if owned.user_id == wanted:
                found.append(owned)
        return found[offset : offset + limit]

    async def update_session(
        self,
        session_id: str,
        *,
        user_id: Any = ...,
        title: Any = ...,
        metadata: Any = ...,
        expires_at: Any = ...,
    ) -> bool:
        """Change the owner; anything else only where the store itself can.

        Raises:
            FeatureOffError: the store has no `update_session`.
        """
        others = {"title": title, "metadata": metadata, "expires_at": expires_at}
        changes = {name: value for name, value in others.items() if value is not ...}
        update = getattr(self.store, "update_session", None)
        if changes and update is None:
            raise FeatureOffError(
                f"{type(self.store).__name__} has no update_session, so {', '.join(changes)} cannot be changed; "
                "add the method, or use a store of this package"
            )
        async with self._alone(session_id):
            there = await self._load(session_id)
            if user_id is not ... and there:
                await self._save(session_id, there, check_owner_id(user_id))
            if update is not None and (changes or user_id is not ...):
                given = changes if user_id is ... else {**changes, "user_id": user_id}
                return bool(await update(session_id, **given))
            return bool(there)

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its messages; return whether there was one."""
        async with self._alone(session_id):
            return await self.store.delete_session(session_id)

    async def cleanup_expired(self) -> int:
        """Delete expired sessions, where the store knows of any."""
        cleanup = getattr(self.store, "cleanup_expired", None)
        return 0 if cleanup is None else int(await cleanup())

    async def purge_user(self, user_id: str) -> int:
        """Delete every session of this owner; return how many there were."""
        check_owner_id(user_id)
        mine = [info.session_id async for info in self._all() if (await self._with_owner(info)).user_id == user_id]
        return sum([await self.delete_session(session_id) for session_id in mine])

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    async def _load(self, session_id: str) -> list[Message]:
        check_session_id(session_id)
        try:
            found = await self.store.load_messages(session_id)
        except SessionError:
            raise
        except Exception as error:  # foreign code; without the messages nothing may be written
            raise StoreUnavailable(
                f"session {session_id!r} could not be loaded: {error}; nothing was written"
            ) from error
        return [replace(message, seq=place) for place, message in enumerate(found, 1)]

    async def _save(self, session_id: str, messages: Sequence[Message], owner: str | None) -> None:
        # A save that is cut in two can lose what was there, so a cancelled caller waits for its end.
        whole = [_with_owner(message, owner) for message in messages]
        task = asyncio.ensure_future(self.store.save_messages(session_id, whole))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await settle(task)
            raise

    async def _owner(self, session_id: str, messages: Sequence[Message], *, new: Any = None) -> str | None:
        """Return who owns the session; `new` for one that does not exist yet."""
        for message in messages:
            if OWNER in message.metadata:
                return str(message.metadata[OWNER])
        known = await self._known(session_id)
        if known is not None:
            return known.user_id
        return None if messages or new is ANY_OWNER else new

    async def _known(self, session_id: str) -> SessionInfo | None:
        get = getattr(self.store, "get_session", None)
        info = None if get is None else await get(session_id)
        return info if isinstance(info, SessionInfo) else None

    async def _with_owner(self, info: SessionInfo) -> SessionInfo:
        messages = await self._load(info.session_id)
        return replace(info, user_id=await self._owner(info.session_id, messages) or info.user_id)

    async def _set_title(self, session_id: str, title: str) -> None:
        update = getattr(self.store, "update_session", None)
        if update is None:
            return
        try:
            await update(session_id, title=title)
        except Exception:  # the messages are written, and a title is no reason to say otherwise
            logger.exception("the title of session %r could not be set", session_id)

    async def _all(self) -> AsyncIterator[SessionInfo]:
        offset = 0
        while page := await self.store.list_sessions(limit=_PAGE, offset=offset):
            for info in page:
                yield info
            offset += len(page)

    def _info(self, session_id: str, messages: Sequence[Message], owner: str | None) -> SessionInfo:
        info = SessionInfo(session_id=session_id, user_id=owner, message_count=len(messages), version=len(messages))
        if messages:
            info.created_at, info.updated_at = messages[0].created_at, messages[-1].created_at
        return info

    @asynccontextmanager
    async def _alone(self, session_id: str) -> AsyncIterator[None]:
        key = (id(asyncio.get_running_loop()), session_id)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            yield


def _with_owner(message: Message, owner: str | None) -> Message:
    metadata = {key: value for key, value in message.metadata.items() if key != OWNER}
    if owner is not None:
        metadata[OWNER] = owner
    return replace(message, metadata=metadata)


def _without_owner(message: Message) -> Message:
    metadata = {key: copy.deepcopy(value) for key, value in message.metadata.items() if key != OWNER}
    return replace(message, metadata=metadata)
