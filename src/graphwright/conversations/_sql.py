"""The methods of a conversation store that keeps its sessions in two SQL tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from graphwright.conversations._checks import check_count, check_owner_id, check_page, now_micros, session_changes
from graphwright.conversations._rows import check_session_id, rows_of
from graphwright.conversations._scripts import Script, Scripts
from graphwright.conversations.base import ANY_OWNER, Message, SessionInfo

__all__ = ["SQLStore"]

Value = TypeVar("Value")


class SQLStore(ABC):
    """Checks and encodes what it is given, then lets a script do the work in one transaction."""

    _scripts: Scripts

    @abstractmethod
    async def _run(self, start: Callable[[], Script[Value]], *, write: bool, repeatable: bool = True) -> Value:
        """Run a script in one transaction.

        A script that is `repeatable` may run again when it is unknown whether it was committed.
        """

    async def load_messages(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Load the messages of a session: all, those after a sequence number, or about the `last` ones."""
        check_session_id(session_id)
        first = check_count("after", after or 0)
        if last is not None and check_count("last", last) == 0:
            return []
        return await self._run(
            lambda: self._scripts.load(session_id, last=last, after=first, now=now_micros()), write=False
        )

    async def save_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Replace the messages of a session, creating it if it is new. All of it happens, or nothing."""
        check_session_id(session_id)
        rows = rows_of(messages)
        await self._run(lambda: self._scripts.save(session_id, rows, now=now_micros()), write=True)

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
        if expected_version is not None:
            check_count("expected_version", expected_version)
        return await self._run(
            lambda: self._scripts.append(
                session_id, rows, expected=expected_version, owner=wanted, title=title, now=now_micros()
            ),
            write=True,
            repeatable=expected_version is not None,
        )

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> SessionInfo:
        """Return the session of this owner, creating it if it is new; see `AppendingStore`."""
        check_session_id(session_id)
        check_owner_id(owner)
        return await self._run(
            lambda: self._scripts.claim(session_id, owner, adopt=adopt, now=now_micros()), write=True
        )

    async def get_session(self, session_id: str) -> SessionInfo | None:
        """Return what is known of a session, or `None`."""
        check_session_id(session_id)
        return await self._run(lambda: self._scripts.get(session_id, now=now_micros()), write=False)

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, offset: int = 0, unowned: bool = False
    ) -> list[SessionInfo]:
        """List sessions, the one written last first: all, those of `user_id`, or those that nobody owns."""
        check_page(limit, offset)
        return await self._run(
            lambda: self._scripts.page(user_id=user_id, unowned=unowned, limit=limit, offset=offset, now=now_micros()),
            write=False,
        )

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
        return await self._run(lambda: self._scripts.update(session_id, changes, now=now_micros()), write=True)

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its messages; return whether there was one."""
        check_session_id(session_id)
        return await self._run(lambda: self._scripts.delete(session_id, now=now_micros()), write=True)

    async def cleanup_expired(self) -> int:
        """Delete the sessions whose time is over; return how many there were."""
        return await self._run(lambda: self._scripts.cleanup(now=now_micros()), write=True)

    async def purge_user(self, user_id: str) -> int:
        """Delete every session of this owner; return how many there were."""
        check_owner_id(user_id)
        return await self._run(lambda: self._scripts.purge_user(user_id), write=True)

    @abstractmethod
    async def close(self) -> None:
        """Release what the store holds; it cannot be used afterwards."""
