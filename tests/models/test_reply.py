"""The one form that every answer is brought into."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from graphwright.exceptions import ModelError
from graphwright.messages import message_from_dict, message_to_dict, problem_in
from graphwright.models import ModelCapabilities, ModelRequest, call_model, calls_of
from graphwright.models.reply import reply_of


class Says:
    """A native model that answers with what it is given, whole or in pieces."""

    name = "says"
    capabilities = ModelCapabilities()

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces

    async def complete(self, request: ModelRequest) -> Any:
        (whole,) = self.pieces
        return whole

    async def stream(self, request: ModelRequest) -> Any:
        for piece in self.pieces:
            yield piece


async def streamed(*pieces: Any) -> Any:
    async def emit(_: Any) -> None: ...

    return await call_model(Says(*pieces), ModelRequest(messages=[HumanMessage("x")]), emit=emit)


def fragment(args: str, *, index: int | None = 0, id: str | None = None, name: str | None = None) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[{"name": name, "args": args, "id": id, "index": index}])


def wanted(*calls: tuple[str | None, str, Any]) -> list[Any]:
    return [{"id": id, "name": name, "args": args} for id, name, args in calls]


def valid(message: Any) -> None:
    results = [ToolMessage("r", tool_call_id=call["id"]) for call in message.tool_calls]
    assert problem_in([HumanMessage("x"), message, *results]) is None


def test_a_good_message_is_handed_on_as_the_same_object() -> None:
    message = AIMessage("hi", tool_calls=wanted(("c1", "f", {"a": 1})))

    reply = reply_of(message)

    assert reply.message is message
    assert reply.text == "hi"
    assert [(call.id, call.name, call.args) for call in reply.calls] == [("c1", "f", {"a": 1})]


def test_missing_ids_and_ids_used_twice_in_a_turn_become_fresh_ones() -> None:
    message = AIMessage("", tool_calls=wanted((None, "a", {}), ("c1", "b", {}), ("c1", "c", {}), ("", "d", {})))

    reply = reply_of(message)

    ids = [call.id for call in reply.calls]
    assert len(set(ids)) == 4
    assert ids[1] == "c1"
    assert all(ids)
    assert [call["id"] for call in reply.message.tool_calls] == ids
    assert [call["id"] for call in message.tool_calls] == [None, "c1", "c1", ""]
    valid(reply.message)


def test_only_unparsed_calls_are_calls_with_a_problem() -> None:
    bad = {"name": "create_page", "args": '{"t":1}{"t":1}', "id": "c9", "error": "Extra data"}

    reply = reply_of(AIMessage("", invalid_tool_calls=[bad]))

    (call,) = reply.calls
    assert (call.id, call.name, call.args, call.raw) == ("c9", "create_page", {}, '{"t":1}{"t":1}')
    assert "not valid JSON: Extra data" in call.problem
    valid(reply.message)


def test_an_unterminated_text_in_a_whole_answer_becomes_an_object_in_the_history() -> None:
    bad = {"name": "save", "args": '{"a": "unterminated', "id": "c1", "error": None}

    reply = reply_of(AIMessage("", invalid_tool_calls=[bad], response_metadata={"finish_reason": "tool_calls"}))

    assert reply.message.tool_calls == [{"name": "save", "args": {}, "id": "c1", "type": "tool_call"}]
    assert "not valid JSON" in reply.calls[0].problem


@pytest.mark.parametrize("raw", ["null", "[]", '"x"', "5", "NaN", '{"a": NaN}', "[1"])
async def test_streamed_arguments_that_are_no_object_are_a_problem(raw: str) -> None:
    reply = await streamed(fragment(raw, id="c1", name="rm"), fragment("{}", index=1, id="c2", name="ok"))

    bad, good = reply.calls
    assert bad.problem
    assert (bad.args, bad.raw) == ({}, raw)
    assert (good.name, good.args, good.problem) == ("ok", {}, "")
    valid(reply.message)


@pytest.mark.parametrize("raw", ["", " ", "\n"])
async def test_streamed_arguments_that_are_blank_are_an_empty_object(raw: str) -> None:
    reply = await streamed(fragment(raw, id="c1", name="f"))

    assert [(call.args, call.problem) for call in reply.calls] == [({}, "")]


async def test_a_line_break_inside_a_streamed_string_is_taken_as_meant() -> None:
    reply = await streamed(fragment('{"a": "x\ny"}', id="c1", name="f"))

    assert reply.calls[0].args == {"a": "x\ny"}


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
async def test_arguments_cut_by_the_token_limit_are_a_problem_even_where_they_could_be_repaired(reason: str) -> None:
    last = AIMessageChunk(content="", response_metadata={"finish_reason": reason}, chunk_position="last")
    whole = fragment('{"path": "a"}', id="c1", name="rm")

    reply = await streamed(whole, fragment('{"path": "/", "dry_run": t', index=1, id="c2", name="rm"), last)

    fine, cut = reply.calls
    assert (fine.args, fine.problem) == ({"path": "a"}, "")
    assert (cut.args, cut.raw) == ({}, '{"path": "/", "dry_run": t')
    assert "cut off" in cut.problem


async def test_a_call_whose_arguments_had_not_begun_at_the_token_limit_is_cut_off() -> None:
    reply = await streamed(
        fragment("", id="c1", name="rm"), AIMessageChunk(content="", response_metadata={"finish_reason": "length"})
    )

    assert "cut off" in reply.calls[0].problem


async def test_a_responses_answer_that_is_incomplete_counts_as_cut() -> None:
    metadata = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}

    reply = await streamed(fragment('{"a"', id="c1", name="rm"), AIMessageChunk(content="", response_metadata=metadata))

    assert "token limit" in reply.calls[0].problem


async def test_a_stream_that_ends_in_mid_arguments_without_a_reason_is_cut_off() -> None:
    reply = await streamed(fragment('{"title": "Plan", "bo', id="c1", name="save_note"))

    assert "the stream ended" in reply.calls[0].problem
    assert reply.calls[0].args == {}


def test_of_finished_calls_only_the_last_can_have_been_cut() -> None:
    message = AIMessage(
        "",
        tool_calls=wanted(("c1", "f", {"a": 1}), ("c2", "rm", {"path": "/"})),
        response_metadata={"stop_reason": "max_tokens"},
    )

    first, last = reply_of(message).calls

    assert (first.args, first.problem) == ({"a": 1}, "")
    assert (last.args, json.loads(last.raw)) == ({}, {"path": "/"})
    assert "cut off" in last.problem


async def test_finished_calls_in_a_stream_are_no_proof_that_nothing_was_cut() -> None:
    chunk = AIMessageChunk(content="", tool_calls=wanted(("c1", "rm", {"path": "/"})))

    reply = await streamed(chunk, AIMessageChunk(content="", response_metadata={"stop_reason": "max_tokens"}))

    assert "cut off" in reply.calls[0].problem


async def test_two_calls_on_one_index_stay_two_calls() -> None:
    reply = await streamed(
        fragment('{"city": "Oslo"}', id="x1", name="weather"), fragment('{"city": "Rome"}', id="x2", name="weather")
    )

    assert [(call.id, call.args["city"]) for call in reply.calls] == [("x1", "Oslo"), ("x2", "Rome")]


@pytest.mark.parametrize("nothing", [None, ""])
async def test_fragments_without_an_index_go_on_with_the_last_call(nothing: str | None) -> None:
    reply = await streamed(
        fragment('{"a"', index=None, id="c1", name="f"), fragment(": 1}", index=None, id=nothing, name=nothing)
    )

    assert [(call.id, call.name, call.args) for call in reply.calls] == [("c1", "f", {"a": 1})]
    assert len(reply.message.tool_calls) == 1


async def test_whole_calls_without_id_and_index_are_one_call_each() -> None:
    reply = await streamed(
        fragment('{"city": "Oslo"}', index=None, name="weather"),
        fragment('{"city": "Rome"}', index=None, name="weather"),
    )

    assert [call.args["city"] for call in reply.calls] == ["Oslo", "Rome"]
    assert len({call.id for call in reply.calls}) == 2


async def test_an_id_and_a_name_repeated_with_each_fragment_are_taken_once() -> None:
    reply = await streamed(fragment('{"a"', id="c1", name="f"), fragment(": 1}", id="c1", name="f"))

    assert [(call.id, call.name, call.args) for call in reply.calls] == [("c1", "f", {"a": 1})]


@settings(max_examples=60, deadline=None)
@given(
    args=st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3), max_size=4),
    size=st.integers(1, 5),
    shuffled=st.randoms(use_true_random=False),
)
async def test_however_a_stream_is_cut_up_the_calls_are_the_same(args: list[Any], size: int, shuffled: Any) -> None:
    queues = []
    for index, value in enumerate(args):
        raw = json.dumps(value)
        cuts = [raw[start : start + size] for start in range(0, len(raw), size)]
        queue = [fragment("", index=index, id=f"c{index}", name="f")]
        queues.append(queue + [fragment(cut, index=index) for cut in cuts])
    pieces = [queue.pop(0) for queue in queues]
    while any(queues):
        pieces.append(shuffled.choice([queue for queue in queues if queue]).pop(0))

    reply = await streamed(*pieces, AIMessageChunk(content="", response_metadata={"finish_reason": "tool_calls"}))

    assert [(call.id, call.args, call.problem) for call in reply.calls] == [
        (f"c{index}", value, "") for index, value in enumerate(args)
    ]


@settings(max_examples=60, deadline=None)
@given(value=st.dictionaries(st.text(max_size=5), st.text(max_size=9), min_size=1, max_size=3), data=st.data())
async def test_no_part_of_an_argument_text_is_ever_taken_for_the_whole(value: Any, data: Any) -> None:
    raw = json.dumps(value)
    kept = raw[: data.draw(st.integers(1, len(raw) - 1))]

    reply = await streamed(
        fragment(kept, id="c1", name="rm"), AIMessageChunk(content="", response_metadata={"finish_reason": "length"})
    )

    assert reply.calls[0].problem
    assert reply.calls[0].args == {}


def test_problems_survive_being_stored() -> None:
    bad = {"name": "f", "args": "nope", "id": "c1", "error": None}
    reply = reply_of(AIMessage("", invalid_tool_calls=[bad], tool_calls=wanted(("c2", "g", {}))))

    stored = message_from_dict(json.loads(json.dumps(message_to_dict(reply.message))))

    assert calls_of(stored) == reply.calls
    assert reply_of(stored).calls == reply.calls
    assert [bool(call.problem) for call in calls_of(stored)] == [False, True]


def test_calls_of_an_untouched_message_are_read_as_they_will_be_run() -> None:
    bad = {"name": "f", "args": "[]", "id": "c1", "error": None}

    (call,) = calls_of(AIMessage("", invalid_tool_calls=[bad]))

    assert (call.id, call.args) == ("c1", {})
    assert "not an object" in call.problem


def test_blocks_say_the_same_as_the_calls() -> None:
    content = [
        {"type": "text", "text": "ok"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}, "partial_json": '{"a": 1}', "index": 1},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 2}},
        {"type": "tool_use", "id": "gone", "name": "f", "input": {}},
        {"type": "input_json_delta", "partial_json": "{"},
    ]
    message = AIMessage(content, tool_calls=wanted(("t1", "f", {"a": 1}), ("t1", "f", {"b": 2})))

    reply = reply_of(message)

    first, second = reply.calls
    assert reply.message.content == [
        {"type": "text", "text": "ok"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}, "index": 1},
        {"type": "tool_use", "id": second.id, "name": "f", "input": {"b": 2}},
    ]
    assert first.id == "t1"
    assert second.id != "t1"
    assert message.content[1]["partial_json"] == '{"a": 1}'


def test_raw_arguments_still_on_the_message_come_before_what_was_made_of_them() -> None:
    raw = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "null"}}]
    message = AIMessage("", tool_calls=wanted(("c1", "f", {})), additional_kwargs={"tool_calls": raw})

    reply = reply_of(message)

    assert "null" in reply.calls[0].problem
    assert "tool_calls" not in reply.message.additional_kwargs


def test_thinking_before_the_text_is_not_the_text() -> None:
    content = [
        {"type": "thinking", "thinking": "plan", "signature": "s"},
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": " you"},
    ]

    reply = reply_of(AIMessage(content))

    assert reply.text == "Hello you"
    assert reply.message.content == content


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (AIMessage("", additional_kwargs={"refusal": "No."}), "No."),
        (AIMessage([{"type": "refusal", "refusal": "No."}]), "No."),
        (AIMessage("No.", response_metadata={"stop_reason": "refusal"}), "No."),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), "The model refused (content_filter)."),
        (AIMessage("", response_metadata={"finish_reason": "SAFETY"}), "The model refused (safety)."),
        (
            AIMessage("", response_metadata={"prompt_feedback": {"block_reason": "SAFETY"}}),
            "The provider blocked the prompt (safety).",
        ),
    ],
)
def test_a_refusal_wherever_it_stands_is_the_text(message: AIMessage, refusal: str) -> None:
    reply = reply_of(message)

    assert (reply.refusal, reply.text) == (refusal, refusal)
    assert problem_in([HumanMessage("x"), reply.message]) is None


def test_an_empty_answer_is_handed_on_as_it_is() -> None:
    reply = reply_of(AIMessage("", response_metadata={"stop_reason": "end_turn"}))

    assert (reply.text, reply.calls, reply.refusal) == ("", [], None)


def test_a_call_that_the_provider_could_not_read_is_an_error_that_can_pass() -> None:
    with pytest.raises(ModelError, match="malformed_function_call") as caught:
        reply_of(AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"}))

    assert caught.value.retryable


async def test_texts_and_blocks_join_without_a_loss() -> None:
    reply = await streamed(
        AIMessageChunk(content=[]),
        AIMessageChunk(content="Hel"),
        AIMessageChunk(content="lo"),
        AIMessageChunk(content=[{"type": "thinking", "thinking": "a", "index": 0}]),
        AIMessageChunk(content=[{"type": "thinking", "thinking": "b", "index": 0}]),
        AIMessageChunk(content=[{"type": "text", "text": " you", "index": 1}]),
        " there",
    )

    assert reply.text == "Hello you there"
    assert [block.get("thinking") for block in reply.message.content if block["type"] == "thinking"] == ["ab"]


async def test_words_of_the_metadata_are_not_repeated() -> None:
    piece = AIMessageChunk(content="a", response_metadata={"model_name": "m", "finish_reason": None})
    last = AIMessageChunk(content="", response_metadata={"model_name": "m", "finish_reason": "stop"})

    reply = await streamed(piece, piece, last)

    assert reply.message.response_metadata == {"model_name": "m", "finish_reason": "stop"}


async def test_a_model_that_answers_whole_with_a_chunk_gives_a_message() -> None:
    chunk = AIMessageChunk(content="hi", tool_call_chunks=[{"name": "f", "args": '{"a"', "id": "c", "index": 0}])

    reply = await call_model(Says(chunk), ModelRequest(messages=[HumanMessage("x")]))

    assert type(reply.message) is AIMessage
    assert "cut off" in reply.calls[0].problem
