"""The values of a conversation: messages, sessions, ids, and the text in which they are kept."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.conversations import InMemoryConversationStore, Message, SessionInfo, generate_session_id
from graphwright.conversations._rows import pack, pack_text, unpack, unpack_text
from graphwright.conversations.base import MessageRole

ROLES: tuple[MessageRole, ...] = ("user", "assistant", "system", "tool")

texts = st.text(st.characters(exclude_categories=())) | st.just("\x02b64\x03") | st.just("\ud83d\udc00")
plain: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | texts
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.just(UTC) | st.none()).map(lambda at: at.replace(fold=0)),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(texts | st.just("$type"), inner)
        | st.dictionaries(st.integers(), inner)
    ),
    max_leaves=12,
)


@given(texts)
def test_any_text_comes_back_from_what_every_database_takes(text: str) -> None:
    packed = pack_text(text)

    packed.encode("utf-8")
    assert "\x00" not in packed
    assert unpack_text(packed) == text


@settings(max_examples=100, deadline=None)
@given(plain)
def test_any_plain_value_comes_back_from_strict_json(value: Any) -> None:
    packed = pack({"value": value}, "it")

    assert packed.isascii()
    assert "\x00" not in packed
    assert repr(unpack(packed)) == repr({"value": value})


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(unpack(pack([math.nan], "it"))[0])


def test_a_message_goes_through_a_dict() -> None:
    message = Message("user", "hi", {"ip": "::1"}, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))

    data = message.to_dict()

    assert data == {
        "role": "user",
        "content": "hi",
        "metadata": {"ip": "::1"},
        "created_at": "2026-01-02T03:04:05.000006+00:00",
    }
    assert Message.from_dict(data) == message
    assert Message.from_dict({"role": "tool", "content": "x"}).metadata == {}


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="'robot' is unknown; use user, assistant"):
        Message("robot", "hi")  # type: ignore[arg-type]


async def test_times_are_kept_to_the_microsecond_and_come_back_in_utc() -> None:
    store = InMemoryConversationStore()
    east = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=timezone(timedelta(hours=5)))
    naive = datetime(1969, 12, 31, 23, 59, 59, 1)

    await store.append_messages("s", [Message("user", "a", {}, east), Message("user", "b", {}, naive)])

    found = await store.load_messages("s")
    assert [message.created_at for message in found] == [east, naive.replace(tzinfo=UTC)]
    assert {message.created_at.tzinfo for message in found} == {UTC}


def test_ids_cannot_be_guessed_and_say_what_they_are() -> None:
    ids = {generate_session_id() for _ in range(1000)} | {generate_session_id("chat")}

    assert len(ids) == 1001
    assert all(re.fullmatch(r"(sess|chat)_[0-9a-f]{32}", session_id) for session_id in ids)


def test_a_session_needs_only_an_id() -> None:
    info = SessionInfo("s")

    assert (info.user_id, info.title, info.message_count, info.metadata, info.expires_at) == (None, None, 0, {}, None)
    assert info.created_at.tzinfo is UTC


async def test_the_memory_store_drops_the_session_that_was_written_longest_ago() -> None:
    store = InMemoryConversationStore(max_sessions=2)
    for session_id in ("a", "b", "a", "c"):
        await store.append_messages(session_id, [Message("user", session_id)])

    assert store.session_count() == 2
    assert await store.load_messages("b") == []
    assert len(await store.load_messages("a")) == 2
