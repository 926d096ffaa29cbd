"""The sessions of an agent: read, listed, changed and deleted by whoever owns them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphwright.agent._purging import purge
from graphwright.caller import CallerContext, get_current_caller, isolation_key_of
from graphwright.exceptions import ConfigurationError, FeatureOffError, SessionAccessDenied, StoreUnavailable

if TYPE_CHECKING:
    from graphwright.conversations.base import AppendingStore, SessionInfo
    from graphwright.prompts.flows import ConversationFlow
    from graphwright.runtime.layers.flow import Flows

__all__ = ["Sessions", "caller_of"]


class Sessions:
    """What `Agent` has of sessions. A session that has an owner is nobody else's business."""

    _conversations: AppendingStore | None = None
    _flows: Flows | None = None

    async def get_session(
        self, session_id: str, *, user_id: str | None = None, caller: CallerContext | None = None, admin: bool = False
    ) -> SessionInfo | None:
        """Return what is known of a session, or `None` when there is no such session.

        Raises:
            SessionAccessDenied: it belongs to somebody else. `admin=True` asks in nobody's name.
            FeatureOffError: there is no conversation store.
        """
        return await self._session(session_id, caller_of(user_id, caller), admin=admin)

    async def list_sessions(
        self,
        *,
        user_id: str | None = None,
        limit: int = 50,
        offset: int = 0,
        caller: CallerContext | None = None,
        admin: bool = False,
    ) -> list[SessionInfo]:
        """Return the sessions of the caller, the one written last first.

        Without a caller only those that nobody owns; with `admin=True` and no caller, all of them.
        """
        store = self._store()
        owner = _key(caller_of(user_id, caller))
        if owner is not None:
            return await store.list_sessions(user_id=owner, limit=limit, offset=offset)
        return await store.list_sessions(limit=limit, offset=offset, unowned=not admin)

    async def delete_session(
        self, session_id: str, *, user_id: str | None = None, caller: CallerContext | None = None, admin: bool = False
    ) -> bool:
        """Delete a session with its messages; return whether there was one.

        Raises:
            SessionAccessDenied: it belongs to somebody else.
        """
        if await self._session(session_id, caller_of(user_id, caller), admin=admin) is None:
            return False
        return await self._store().delete_session(session_id)

    async def update_session(
        self,
        session_id: str,
        *,
        calling_user_id: str | None = None,
        user_id: Any = ...,
        title: Any = ...,
        metadata: Any = ...,
        caller: CallerContext | None = None,
        admin: bool = False,
    ) -> None:
        """Change what is given of a session: its owner, its title, its metadata.

        Raises:
            SessionAccessDenied: it belongs to somebody else.
        """
        if await self._session(session_id, caller_of(calling_user_id, caller), admin=admin) is None:
            return
        await self._store().update_session(session_id, user_id=user_id, title=title, metadata=metadata)

    def get_flow(
        self, session_id: str | None = None, *, user_id: str | None = None, caller: CallerContext | None = None
    ) -> ConversationFlow | None:
        """Return a copy of the flow of a conversation as it was after its last turn in this process.

        `None` where there was none, or the agent has no flow.
        """
        if self._flows is None:
            return None
        asking = caller_of(user_id, caller)
        return self._flows.of((isolation_key_of(asking if asking is not None else get_current_caller()), session_id))

    async def purge_user(self, user_id: str | None = None, *, caller: CallerContext | None = None) -> dict[str, int]:
        """Remove a person from everything that the agent keeps; return how much was removed, by store.

        The stores are `conversations` (sessions), `memory`, `cache` (answers), `flows`, `lessons`, `observed`
        (entries) and `runlog` (threads), as far as there are any. A user of a tenant is given as `caller`. When a store
        fails, the others are purged all the same, and then its error is raised: purge again.

        Raises:
            ConfigurationError: nobody is named.
            ThreadBusy: a run of theirs is at work; everything else is removed.
        """
        person = caller_of(user_id, caller)
        owner = person.isolation_key if person is not None else None
        if person is None or owner is None:
            raise ConfigurationError("nobody is named; give user_id=, or caller= with a user id")
        return await purge(owner, person, **self._kept())

    def _kept(self) -> dict[str, Any]:
        """Return everything that keeps data of callers, by name."""
        return {"conversations": self._conversations}

    def _store(self) -> AppendingStore:
        if self._conversations is None:
            raise FeatureOffError(
                "this agent has no conversation store, so it has no sessions; give conversation_store="
            )
        return self._conversations

    async def _session(self, session_id: str, caller: CallerContext | None, *, admin: bool) -> SessionInfo | None:
        try:
            info = await self._store().get_session(session_id)
        except (SessionAccessDenied, FeatureOffError):
            raise
        except Exception as error:  # whose session it is cannot be told
            raise StoreUnavailable(f"the owner of session {session_id!r} could not be checked: {error}") from error
        if info is not None and info.user_id is not None and not admin and info.user_id != _key(caller):
            raise SessionAccessDenied(f"session {session_id!r} belongs to somebody else")
        return info


def caller_of(user_id: str | None, caller: CallerContext | None) -> CallerContext | None:
    """Return who asks: `caller`, with `user_id` where it has none."""
    if user_id is None:
        return caller
    if caller is None:
        return CallerContext(user_id=user_id)
    return caller if caller.user_id is not None else replace(caller, user_id=user_id)


def _key(caller: CallerContext | None) -> str | None:
    caller = caller if caller is not None else get_current_caller()
    return caller.isolation_key if caller is not None else None
