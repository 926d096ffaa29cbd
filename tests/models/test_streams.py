"""The transcripts of real providers, through the real clients."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.exceptions import ModelError
from graphwright.models import ModelRequest, RetryPolicy, as_model, call_model, calls_of
from graphwright.run_events import ModelFinished, ModelStarted, Restarted, Retrying, TextDelta, ThinkingDelta
from graphwright.types import ToolSpec
from graphwright.usage import Usage

NAMES = ("get_weather", "get_time", "save_note", "list_rooms")
TOOLS = tuple(ToolSpec(name=name, parameters={"type": "object", "properties": {}}) for name in NAMES)


def client(transcript: str, url: str) -> Any:
    if transcript.startswith("anthropic"):
        return as_model("anthropic:example-claude", base_url=url, api_key="k")
    return as_model("openai:example-model", base_url=url, api_key="k", use_responses_api="responses" in transcript)


async def ask(provider: Any, transcript: str, *, tools: bool = False, sleeps: Any = None) -> tuple[Any, list[Any]]:
    provider.stream(transcript)
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    from langchain_core.messages import HumanMessage

    request = ModelRequest(messages=[HumanMessage("hello")], tools=TOOLS if tools else ())
    retry = RetryPolicy(attempts=2, sleep=sleeps[1]) if sleeps else RetryPolicy(attempts=1)
    reply = await call_model(client(transcript, provider.url), request, emit=emit, retry=retry, node="reason")
    return reply, events


def shown(events: list[Any], kind: type = TextDelta) -> list[str]:
    return [event.text for event in events if type(event) is kind]


TEXTS = [
    ("anthropic_text", ["Hello", " there"], Usage(25, 12, 37)),
    ("anthropic_unknown_event", ["ok"], Usage(25, 3, 28)),
    ("anthropic_empty_end_turn", [], Usage(25, 2, 27)),
    ("openai_chat_text_usage", ["Two ", "ducks", " 🦆."], Usage(120, 45, 165, 96, 20)),
    ("openai_chat_text_no_usage", ["No usage ", "here."], None),
    ("openai_compat_null_choices_usage", ["Hi"], Usage(7, 1, 8)),
]


@pytest.mark.parametrize(("transcript", "pieces", "usage"), TEXTS, ids=[case[0] for case in TEXTS])
async def test_a_text_arrives_piece_by_piece_and_its_tokens_are_counted_once(
    provider: Any, transcript: str, pieces: list[str], usage: Usage | None
) -> None:
    reply, events = await ask(provider, transcript)

    assert shown(events) == pieces
    assert reply.text == "".join(pieces)
    assert (reply.calls, reply.refusal, reply.usage) == ([], None, usage)
    assert type(events[0]) is ModelStarted
    assert type(events[-1]) is ModelFinished
    assert len({event.call_id for event in events}) == 1
    assert reply.message.type == "ai"
    if usage is not None:
        assert reply.message.usage_metadata["input_tokens"] == usage.input_tokens
        assert reply.message.usage_metadata["total_tokens"] == usage.total_tokens


CALLS = [
    (
        "openai_chat_parallel_tools_interleaved",
        [("call_a1", "get_weather", {"city": "Oslo"}), ("call_b2", "get_time", {"tz": "Europe/Oslo"})],
        Usage(120, 45, 165, 96, 20),
    ),
    (
        "openai_compat_same_index_two_ids",
        [("call_x1", "get_weather", {"city": "Oslo"}), ("call_x2", "get_weather", {"city": "Rome"})],
        None,
    ),
    ("openai_compat_empty_arguments", [("call_e1", "list_rooms", {})], None),
    ("openai_responses_reasoning_tool", [("call_r1", "get_weather", {"city": "Oslo"})], Usage(120, 45, 165, 96, 20)),
    (
        "anthropic_thinking_parallel_tools",
        [("toolu_01", "get_weather", {"city": "Oslo"}), ("toolu_02", "get_time", {})],
        Usage(1040, 89, 1129, 1000),
    ),
]


@pytest.mark.parametrize(("transcript", "wanted", "usage"), CALLS, ids=[case[0] for case in CALLS])
async def test_streamed_calls_keep_their_ids_and_arguments(
    provider: Any, transcript: str, wanted: list[Any], usage: Usage | None
) -> None:
    reply, _ = await ask(provider, transcript, tools=True)

    assert [(call.id, call.name, call.args) for call in reply.calls] == wanted
    assert [call.problem for call in reply.calls] == [""] * len(wanted)
    assert [(call["id"], call["name"], call["args"]) for call in reply.message.tool_calls] == wanted
    assert reply.message.invalid_tool_calls == []
    assert reply.usage == usage


@pytest.mark.parametrize(
    ("transcript", "call_id", "raw"),
    [
        ("openai_chat_truncated_tool_args", "call_t1", '{"title": "Plan", "body": "first li'),
        ("anthropic_max_tokens_partial_tool", "toolu_09", '{"title": "Plan", "bo'),
    ],
)
async def test_a_call_cut_off_by_the_token_limit_is_no_call_that_can_run(
    provider: Any, transcript: str, call_id: str, raw: str
) -> None:
    reply, _ = await ask(provider, transcript, tools=True)

    (call,) = reply.calls
    assert (call.id, call.name, call.args, call.raw) == (call_id, "save_note", {}, raw)
    assert "cut off" in call.problem
    assert "token limit" in call.problem
    assert reply.message.tool_calls == [{"name": "save_note", "args": {}, "id": call_id, "type": "tool_call"}]
    assert reply.message.invalid_tool_calls == []
    assert "partial_json" not in str(reply.message.content)
    assert calls_of(reply.message) == reply.calls


async def test_thinking_is_reported_apart_and_stays_on_the_message(provider: Any) -> None:
    reply, events = await ask(provider, "anthropic_thinking_parallel_tools", tools=True)

    assert shown(events, ThinkingDelta) == ["Need weather ", "and time."]
    assert shown(events) == ["Checking both."]
    assert reply.text == "Checking both."
    kinds = [block["type"] for block in reply.message.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert reply.message.content[0]["thinking"] == "Need weather and time."
    assert reply.message.content[0]["signature"] == "c2lnLWV4YW1wbGU="
    assert reply.message.content[2]["input"] == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("transcript", "refusal"),
    [("openai_chat_refusal", "I can't help with that."), ("anthropic_refusal", "I can't do that.")],
)
async def test_a_refusal_is_told_apart_and_is_never_an_empty_answer(
    provider: Any, transcript: str, refusal: str
) -> None:
    reply, events = await ask(provider, transcript)

    assert reply.refusal == refusal
    assert reply.text == refusal
    assert "".join(shown(events)) == refusal
    assert len(provider.requests) == 1


async def test_an_overload_before_any_text_is_tried_again_without_a_restart(provider: Any, sleeps: Any) -> None:
    provider.stream("anthropic_overloaded_before_content")
    reply, events = await ask(provider, "anthropic_text", sleeps=sleeps)

    assert reply.text == "Hello there"
    assert [type(event) for event in events] == [ModelStarted, Retrying, TextDelta, TextDelta, ModelFinished]
    assert events[1].wait_s == sleeps[0][0]
    assert len(provider.requests) == 2


async def test_an_overload_in_mid_stream_voids_the_text_that_was_shown(provider: Any, sleeps: Any) -> None:
    provider.stream("anthropic_overloaded_midstream")
    reply, events = await ask(provider, "anthropic_text", sleeps=sleeps)

    assert reply.text == "Hello there"
    kinds = [type(event) for event in events]
    assert kinds == [ModelStarted, TextDelta, Retrying, Restarted, TextDelta, TextDelta, ModelFinished]
    assert events[3].dropped == "The first half"
    assert events[3].call_id == events[-1].call_id


async def test_an_overload_that_stays_is_an_error_with_the_providers_own_behind_it(provider: Any, sleeps: Any) -> None:
    with pytest.raises(ModelError, match="given up after 2 attempts") as caught:
        await ask(provider, "anthropic_overloaded_midstream", sleeps=sleeps)

    assert caught.value.status == 529
    assert type(caught.value.__cause__).__module__.startswith("anthropic")


async def test_a_stream_that_breaks_off_is_an_error_and_not_a_short_answer(provider: Any, sleeps: Any) -> None:
    provider.stream("openai_chat_cut_off_no_done")
    reply, events = await ask(provider, "openai_chat_text_no_usage", sleeps=sleeps)

    assert reply.text == "No usage here."
    assert [event.dropped for event in events if type(event) is Restarted] == ["Partial ans"]


async def test_usage_is_asked_for_in_a_stream_of_a_model_made_from_a_string(provider: Any) -> None:
    await ask(provider, "openai_chat_text_usage")

    assert provider.requests[0]["stream_options"] == {"include_usage": True}
