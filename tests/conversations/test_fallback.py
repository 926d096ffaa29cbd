"""A store that has only the five documented methods, used with care."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright.conversations import (
    AppendingStore,
    CarefulStore,
    ConversationConflict,
    InMemoryConversationStore,
    Message,
    SessionAccessDenied,
    SessionInfo,
    as_appending,
)
from graphwright.conversations.fallback import OWNER
from graphwright.exceptions import ConfigurationError, FeatureOffError, StoreUnavailable


class FiveMethods:
    """What a user would write; a save takes a moment, and the oldest messages beyond `most` are dropped."""

    def __init__(self, most: int = 10_000) -> None:
        self.sessions: dict[str, list[Message]] = {}
        self.failing = False
        self.saves = 0
        self.saving = asyncio.Event()
        self.most = most

    async def load_messages(self, session_id: str) -> list[Message]:
        if self.failing:
            raise OSError("no route to host")
        await asyncio.sleep(0)
        return list(self.sessions.get(session_id, []))

    async def save_messages(self, session_id: str, messages: list[Message]) -> None:
        self.saves += 1
        self.sessions[session_id] = []
        self.saving.set()
        await asyncio.sleep(0.001)
        self.sessions[session_id] = list(messages)[-self.most :]

    async def delete_session(self, session_id: str) -> bool:
        return self.sessions.pop(session_id, None) is not None

    async def list_sessions(self, *, user_id: str | None = None, limit: int = 50, offset: int = 0) -> list[SessionInfo]:
        found = [SessionInfo(session_id) for session_id in self.sessions]
        return found[offset : offset + limit]

    async def close(self) -> None:
        self.sessions.clear()


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


def test_a_store_that_can_append_is_taken_as_it_is() -> None:
    store = InMemoryConversationStore()

    assert as_appending(store) is store
    careful = as_appending(FiveMethods())
    assert isinstance(careful, CarefulStore)
    assert isinstance(careful, AppendingStore)
    with pytest.raises(ConfigurationError, match="is no conversation store; it needs load_messages"):
        as_appending(object())


async def test_fifty_writers_lose_nothing() -> None:
    plain = FiveMethods()
    store = as_appending(plain)

    await asyncio.gather(*(store.append_messages("s", said(f"{n}a", f"{n}b"), owner="u") for n in range(50)))

    texts = [message.content for message in await store.load_messages("s")]
    assert sorted(texts) == sorted(f"{n}{half}" for n in range(50) for half in "ab")
    assert all(texts[at][:-1] == texts[at + 1][:-1] for at in range(0, 100, 2))


async def test_a_load_that_fails_leaves_the_store_untouched() -> None:
    plain = FiveMethods()
    store = as_appending(plain)
    await store.append_messages("s", said(*map(str, range(22))))
    saves, plain.failing = plain.saves, True

    with pytest.raises(StoreUnavailable, match=r"could not be loaded: no route to host; nothing was written"):
        await store.append_messages("s", said("x"))
    plain.failing = False

    assert plain.saves == saves
    assert await store.append_messages("s", said("x")) == 23


async def test_a_cancelled_append_waits_for_the_end_of_its_save() -> None:
    plain = FiveMethods()
    store = as_appending(plain)
    await store.append_messages("s", said("old"))
    plain.saving.clear()

    task = asyncio.ensure_future(store.append_messages("s", said("new")))
    await plain.saving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [message.content for message in plain.sessions["s"]] == ["old", "new"]


async def test_the_owner_is_in_the_metadata_and_is_asked_for() -> None:
    plain = FiveMethods()
    store = as_appending(plain)
    await store.append_messages("hers", said("secret"), owner="alice")
    await store.append_messages("open", said("hello"), owner=None)

    assert plain.sessions["hers"][0].metadata == {OWNER: "alice"}
    assert (await store.load_messages("hers"))[0].metadata == {}
    for owner in ("bob", None):
        with pytest.raises(SessionAccessDenied) as denied:
            await store.append_messages("hers", said("x"), owner=owner)
        assert "alice" not in str(denied.value)
        with pytest.raises(SessionAccessDenied):
            await store.claim_session("hers", owner)
    with pytest.raises(SessionAccessDenied):
        await store.claim_session("open", "bob")
    assert (await store.claim_session("open", "bob", adopt=True)).user_id == "bob"
    assert [info.session_id for info in await store.list_sessions(user_id="alice")] == ["hers"]
    assert [info.user_id for info in await store.list_sessions()] == ["alice", "bob"]
    assert await store.list_sessions(unowned=True) == []
    assert await store.purge_user("alice") == 1
    assert list(plain.sessions) == ["open"]


async def test_the_owner_outlives_a_store_that_drops_the_oldest_messages_and_a_save() -> None:
    store = as_appending(FiveMethods(most=3))
    for number in range(5):
        await store.append_messages("s", said(str(number)), owner="alice")
    assert (await store.get_session("s") or SessionInfo("")).user_id == "alice"

    await store.save_messages("s", said("all new"))

    with pytest.raises(SessionAccessDenied):
        await store.append_messages("s", said("x"), owner="bob")


async def test_a_conflict_is_told_and_a_repeated_append_is_known() -> None:
    store = as_appending(FiveMethods())
    first, second = said("a", "b"), said("c")
    await store.append_messages("s", first, expected_version=0)

    assert await store.append_messages("s", first, expected_version=0) == 2
    assert await store.append_messages("s", second, expected_version=2) == 3
    with pytest.raises(ConversationConflict):
        await store.append_messages("s", said("d"), expected_version=2)
    assert [message.seq for message in await store.load_messages("s", after=1)] == [2, 3]


async def test_what_the_store_cannot_do_is_refused() -> None:
    store = as_appending(FiveMethods())
    await store.append_messages("s", said("a"), title="never kept")

    with pytest.raises(FeatureOffError, match="FiveMethods has no update_session, so title cannot be changed"):
        await store.update_session("s", title="x")
    assert await store.update_session("s", user_id="alice") is True
    assert [info.user_id for info in await store.list_sessions()] == ["alice"]
    assert await store.cleanup_expired() == 0


async def test_a_store_with_sessions_of_its_own_says_who_owns_them() -> None:
    class Six(FiveMethods):
        async def get_session(self, session_id: str) -> SessionInfo | None:
            return SessionInfo(session_id, user_id="alice", title="t") if session_id in self.sessions else None

        async def update_session(self, session_id: str, **changes: Any) -> bool:
            return session_id in self.sessions

    plain = Six()
    plain.sessions["s"] = said("secret")
    store = as_appending(plain)

    with pytest.raises(SessionAccessDenied):
        await store.append_messages("s", said("x"), owner="bob")
    assert await store.append_messages("s", said("x"), owner="alice") == 2
    info = await store.get_session("s")
    assert info is not None
    assert (info.user_id, info.title, info.message_count) == ("alice", "t", 2)
