"""Messages of a model and their stored form."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.conversations import InMemoryConversationStore, Message, from_stored, to_stored
from graphwright.conversations.convert import EXTRAS
from graphwright.exceptions import ConfigurationError, UnstorableError
from graphwright.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    problem_in,
)

CALL = {"name": "weather", "args": {"city": "Oslo", "days": [1, 2]}, "id": "call_1", "type": "tool_call"}


async def through_a_store(messages: list[BaseMessage]) -> list[BaseMessage]:
    store = InMemoryConversationStore()
    await store.append_messages("s", to_stored(messages))
    return from_stored(await store.load_messages("s"))


async def test_a_tool_exchange_comes_back_as_it_was() -> None:
    given: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
        AIMessage(
            [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Let me see."}],
            tool_calls=[CALL, {**CALL, "id": "call_2"}],
            id="run-1",
            usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
            response_metadata={"model": "m"},
        ),
        ToolMessage("Rain.", tool_call_id="call_1", name="weather", artifact={"mm": 3}),
        ToolMessage("No such place.", tool_call_id="call_2", name="weather", status="error"),
        AIMessage("It rains."),
    ]

    found = await through_a_store(given)

    assert found == given
    assert problem_in(found) is None


def test_plain_messages_carry_nothing_but_their_text() -> None:
    stored = to_stored([HumanMessage("hi"), AIMessage("yo"), SystemMessage("s")], metadata={"ip": "::1"})

    assert [(message.role, message.content, message.metadata) for message in stored] == [
        ("user", "hi", {"ip": "::1"}),
        ("assistant", "yo", {}),
        ("system", "s", {}),
    ]


async def test_what_is_broken_in_a_stored_conversation_is_not_replayed() -> None:
    broken: list[BaseMessage] = [
        ToolMessage("nobody asked", tool_call_id="x"),
        HumanMessage("one"),
        AIMessage(""),
        AIMessage([{"type": "text", "text": ""}]),
        HumanMessage("two"),
        AIMessage("", tool_calls=[CALL]),
        HumanMessage("three"),
    ]

    found = await through_a_store(broken)

    assert problem_in(found) is None
    assert [message.content for message in found if message.type == "human"] == ["one", "two", "three"]
    assert [message.type for message in found] == ["human", "human", "ai", "tool", "human"]


def test_rows_without_our_metadata_are_read() -> None:
    rows = [Message("user", "hi"), Message("tool", "a result of long ago"), Message("assistant", "yo", {"tokens": 3})]

    assert from_stored(rows) == [HumanMessage("hi"), AIMessage("yo")]


def test_a_text_that_was_edited_in_the_store_is_what_the_model_reads() -> None:
    [stored] = to_stored([HumanMessage([{"type": "text", "text": "my PIN is 1234"}], id="m1")])
    stored.content = "my PIN is [removed]"

    assert from_stored([stored]) == [HumanMessage("my PIN is [removed]", id="m1")]


def test_a_chunk_is_stored_as_the_message_that_it_is() -> None:
    [stored] = to_stored([AIMessageChunk("yo")])

    assert from_stored([stored]) == [AIMessage("yo")]


def test_an_artifact_that_cannot_be_stored_is_left_out_and_its_result_kept() -> None:
    asked = AIMessage("", tool_calls=[CALL])
    stored = to_stored([HumanMessage("q"), asked, ToolMessage("ok", tool_call_id="call_1", artifact=object())])

    found = from_stored(stored)

    assert found[1:] == [asked, ToolMessage("ok", tool_call_id="call_1")]


def test_arguments_that_cannot_be_stored_are_refused() -> None:
    call: Any = {**CALL, "args": {"at": object()}}

    with pytest.raises(UnstorableError, match=r"tool_calls of a ai message\[0\]\['args'\]\['at'\]"):
        to_stored([AIMessage("", tool_calls=[call])])


def test_the_framework_s_own_key_is_refused_in_metadata() -> None:
    with pytest.raises(ConfigurationError, match="'_message'"):
        to_stored([HumanMessage("hi")], metadata={EXTRAS: {}})
