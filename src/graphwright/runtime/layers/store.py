"""Give a run the conversation of its session, and keep what it adds."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import settle
from graphwright.caller import get_current_caller
from graphwright.conversations import Message, from_stored, to_stored
from graphwright.exceptions import (
    ConversationConflict,
    GraphExecutionError,
    SessionAccessDenied,
    StoreUnavailable,
    UnstorableError,
)
from graphwright.messages import repair_pairs, text_of
from graphwright.run_events import ConversationNotSaved
from graphwright.runtime.durable import find_run

if TYPE_CHECKING:
    from graphwright.conversations.base import AppendingStore
    from graphwright.runlog.base import RunLog
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["MARKS", "Turn", "store_layer"]

logger = logging.getLogger(__name__)

MARKS = frozenset({"_flow"})
"""Keys in the metadata of a stored message that hold notes of layers."""

_RUN = "_run"
"""Key in the metadata of a user's message that holds the run which kept it, where runs can go on later."""

_TITLE_CHARS = 100
_TRIES = 5
_MOST_WAITING = 1000


@dataclass(slots=True)
class Turn:
    """One turn of a conversation that a store keeps."""

    session_id: str
    metadata: dict[str, Any] | None = None
    """Kept with the user's message."""
    version: int | None = None
    """That of the session when the turn began; `None` when it could not be read."""
    is_begun: bool = False
    """Whether the user's message is kept already: the turn was paused."""
    is_resumed: bool = False
    """Whether the turn goes on that was paused or cut off."""
    found: dict[str, Any] = field(default_factory=dict)
    """What layers noted in the newest user's message that has such notes."""
    marks: dict[str, Any] = field(default_factory=dict)
    """What layers note in the user's message of this turn, under one of `MARKS`."""


def store_layer(store: AppendingStore, *, max_messages: int = 0, log: RunLog | None = None) -> Layer:
    """Return the layer that reads the conversation before a run and appends to it afterwards.

    `max_messages` is how many of the newest messages a run is shown; 0 is all of them.
    """
    keeper = _Keeper(store, max_messages)

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        turn = request.conversation
        if request.resume is not None and log is not None:
            info = await find_run(log, request.resume)
            turn = request.conversation = _turn_of(info.metadata)
            request.run_id = info.run_id
        if turn is None:
            return await call_next(request)
        return await keeper.run(request, turn, call_next)

    return layer


def _turn_of(metadata: dict[str, Any]) -> Turn | None:
    kept = metadata.get("conversation")
    if kept is None:
        return None
    return Turn(kept["session_id"], kept.get("metadata"), version=kept["version"], is_resumed=True)


class _Keeper:
    def __init__(self, store: AppendingStore, max_messages: int) -> None:
        self._store = store
        self._most = max_messages
        # What a store that was away has not taken yet, by session; tried again before the next turn.
        self._waiting: OrderedDict[str, list[Message]] = OrderedDict()

    async def run(self, request: RunRequest, turn: Turn, call_next: Handler) -> Any:
        owner = _owner()
        version = await self._claim(turn.session_id, owner)
        if await self._send_waiting(turn.session_id, owner):
            version = None
        request.history = await self._history(turn, version, request.run_id)
        if not turn.is_resumed:
            kept = {"metadata": turn.metadata} if turn.metadata else {}
            request.metadata = {
                **request.metadata,
                "conversation": {"session_id": turn.session_id, "version": turn.version, **kept},
            }
        seen = _Seen(request)
        try:
            result = await call_next(request)
        except BaseException as error:
            if seen.state is not None:
                done = error.messages if isinstance(error, GraphExecutionError) and error.messages else None
                await settle(asyncio.ensure_future(self._keep(request, turn, owner, seen.added(done))))
            raise
        paused = result.status == "paused"
        if not paused or not (turn.is_begun or seen.state is None):
            added = seen.added(result["messages"])
            await settle(asyncio.ensure_future(self._keep(request, turn, owner, added[:1] if paused else added)))
        return result

    async def _claim(self, session_id: str, owner: str | None) -> int | None:
        try:
            return (await self._store.claim_session(session_id, owner)).version
        except SessionAccessDenied:
            raise
        except Exception as error:  # whose session it is cannot be told, so nothing of it may be shown
            raise StoreUnavailable(
                f"the owner of session {session_id!r} could not be checked, so it was not answered: {error}"
            ) from error

    async def _history(self, turn: Turn, version: int | None, run_id: str | None) -> list[Any]:
        try:
            if turn.is_resumed:
                since = await self._store.load_messages(turn.session_id, after=turn.version or 0)
                turn.is_begun = any(message.metadata.get(_RUN) == run_id for message in since)
            stored = await self._store.load_messages(turn.session_id, last=self._most or None)
        except Exception:  # the answer is given without what was said before
            logger.exception("the messages of session %r could not be read", turn.session_id)
            turn.version = None
            return []
        if turn.is_resumed:
            # The turn goes on with what it began with; what was kept since is its own.
            return from_stored([message for message in stored if message.seq <= (turn.version or 0)])
        turn.version = version if version is not None else stored[-1].seq if stored else 0
        turn.found = _marks_in(stored)
        return from_stored(stored)

    async def _keep(self, request: RunRequest, turn: Turn, owner: str | None, messages: list[Any]) -> None:
        if turn.is_begun:
            messages = messages[1:]
        if not messages:
            return
        stored = to_stored(messages, metadata=None)
        if turn.metadata and not turn.is_begun:
            stored[0].metadata.update(turn.metadata)
        if not turn.is_begun:
            stored[0].metadata.update(turn.marks)
            if request.journal is not None:
                stored[0].metadata[_RUN] = request.run_id
        title = None if turn.is_begun else text_of(messages[0])[:_TITLE_CHARS]
        try:
            await self._append(turn.session_id, stored, None if turn.is_resumed else turn.version, owner, title)
        except UnstorableError:
            raise
        except Exception as error:  # the answer is there, and is given; the messages are tried again later
            logger.exception("%d messages of session %r could not be kept", len(stored), turn.session_id)
            self._wait(turn.session_id, stored)
            if request.emit is not None:
                await request.emit(
                    ConversationNotSaved(
                        turn.session_id, f"{type(error).__name__}: {error}", run_id=request.run_id or ""
                    )
                )

    async def _append(
        self, session_id: str, messages: Sequence[Message], version: int | None, owner: str | None, title: str | None
    ) -> None:
        """Append, also when somebody else has written meanwhile: each turn stays whole."""
        for attempt in range(1, _TRIES + 1):
            try:
                await self._store.append_messages(
                    session_id, messages, expected_version=version, owner=owner, title=title
                )
                return
            except ConversationConflict:
                if attempt == _TRIES:
                    raise
                info = await self._store.get_session(session_id)
                version = info.version if info is not None else 0

    def _wait(self, session_id: str, messages: Sequence[Message]) -> None:
        self._waiting.setdefault(session_id, []).extend(messages)
        self._waiting.move_to_end(session_id)
        if len(self._waiting) > _MOST_WAITING:
            lost, dropped = self._waiting.popitem(last=False)
            logger.error("%d messages of session %r are given up: too many sessions wait", len(dropped), lost)

    async def _send_waiting(self, session_id: str, owner: str | None) -> bool:
        """Append what an earlier turn could not; return whether there was anything."""
        waiting = self._waiting.pop(session_id, None)
        if waiting is None:
            return False
        try:
            await self._append(session_id, waiting, None, owner, None)
        except Exception:  # still away: they wait on, in their order
            logger.exception("messages of session %r still could not be kept", session_id)
            self._waiting.setdefault(session_id, [])[:0] = waiting
        return True


def _marks_in(stored: Sequence[Message]) -> dict[str, Any]:
    for message in reversed(stored):
        marks = {key: value for key, value in message.metadata.items() if key in MARKS}
        if marks and message.role == "user":
            return marks
    return {}


class _Seen:
    """Where in the conversation of a run its own messages begin."""

    def __init__(self, request: RunRequest) -> None:
        self.state: Any = None
        self._question: Any = None
        self._start = 0
        before = request.on_state

        def on_state(state: Any) -> None:
            self.state = state
            self._question = state.turn_question
            self._start = max(0, len(state.messages) - 1)
            if before is not None:
                before(state)

        request.on_state = on_state

    def added(self, messages: Sequence[Any] | None) -> list[Any]:
        """Return the messages of the turn, from the user's on, as pairs that can be replayed."""
        if messages is None:
            messages = self.state.messages if self.state is not None else []
        start = next((at for at, message in enumerate(messages) if message is self._question), self._start)
        return repair_pairs(list(messages[start:]))


def _owner() -> str | None:
    caller = get_current_caller()
    return caller.isolation_key if caller is not None else None
