"""The scripted model: what it answers, that a stream says the same, and that it finds what a test would miss."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)

from graphwright.exceptions import ConfigurationError
from graphwright.messages import refusal_of, text_of, thinking_of
from graphwright.models.base import ChatModel, ModelCapabilities, ModelRequest, StreamingChatModel
from graphwright.testing import (
    ScriptedModel,
    ScriptError,
    call,
    calls,
    calls_many,
    delayed,
    empty,
    malformed,
    raises,
    raises_midstream,
    refuses,
    says,
    truncated,
    waits_for,
)
from graphwright.types import ToolSpec
from graphwright.usage import Usage


def ask(text: str = "hi", *more: BaseMessage, **options: Any) -> ModelRequest:
    return ModelRequest(messages=[HumanMessage(text), *more], **options)


async def streamed(model: ScriptedModel, request: ModelRequest | None = None) -> list[AIMessageChunk | str]:
    return [piece async for piece in model.stream(request or ask())]


def whole(pieces: list[AIMessageChunk | str]) -> AIMessage:
    chunks = [AIMessageChunk(piece) if isinstance(piece, str) else piece for piece in pieces]
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    message = message_chunk_to_message(total)
    assert isinstance(message, AIMessage)
    return message


def test_it_is_a_streaming_model_of_our_own_kind_with_the_given_name_and_capabilities() -> None:
    model = ScriptedModel(name="tiny", capabilities=ModelCapabilities(tools=False))

    assert isinstance(model, ChatModel)
    assert isinstance(model, StreamingChatModel)
    assert (model.name, model.capabilities.tools, ScriptedModel().capabilities.tools) == ("tiny", False, True)


async def test_steps_are_answered_in_order() -> None:
    model = ScriptedModel([says("one"), "two", AIMessage("three", id="m3"), lambda messages: f"{len(messages)} read"])

    answers = [await model.complete(ask()) for _ in range(4)]

    assert [text_of(answer) for answer in answers] == ["one", "two", "three", "1 read"]
    assert answers[2].id == "m3"
    model.assert_done()


async def test_an_answer_reports_a_small_usage_unless_told_otherwise() -> None:
    cached = Usage(100, 20, None, 80, 7)
    model = ScriptedModel([says("a"), says("b", usage=cached), says("c", usage=None)])

    usages = [(await model.complete(ask())).usage_metadata for _ in range(3)]

    assert usages == [
        {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_token_details": {"cache_read": 80},
            "output_token_details": {"reasoning": 7},
        },
        None,
    ]


async def test_calls_are_numbered_through_the_script_and_keep_an_id_of_their_own() -> None:
    steps = [
        calls("look", name="x", id=3),
        calls_many(call("a").with_id("mine"), ("b", {"n": 1}), call("c").with_id(None), text="Let me see."),
        calls("look"),
    ]
    model = ScriptedModel(steps)

    answers = [await model.complete(ask()) for _ in steps]

    assert [[(one["name"], one["args"], one["id"]) for one in answer.tool_calls] for answer in answers] == [
        [("look", {"name": "x", "id": 3}, "call_1")],
        [("a", {}, "mine"), ("b", {"n": 1}, "call_2"), ("c", {}, None)],
        [("look", {}, "call_3")],
    ]
    assert [text_of(answer) for answer in answers] == ["", "Let me see.", ""]
    assert {answer.response_metadata["finish_reason"] for answer in answers} == {"tool_calls"}


@pytest.mark.parametrize("raw", ['{"a": ', "null", "[1]", '"text"', "", "{'a': 1}"])
async def test_argument_text_that_is_no_object_arrives_as_an_invalid_call(raw: str) -> None:
    answer = await ScriptedModel([malformed("look", raw)]).complete(ask())

    assert answer.tool_calls == []
    assert [(one["name"], one["args"], one["id"]) for one in answer.invalid_tool_calls] == [("look", raw, "call_1")]


async def test_a_stream_carries_the_argument_text_as_it_was_written() -> None:
    pieces = await streamed(ScriptedModel([malformed("look", '{"a": tru')]))

    fragments = [part for piece in pieces if not isinstance(piece, str) for part in piece.tool_call_chunks]
    assert "".join(part["args"] or "" for part in fragments) == '{"a": tru'
    assert [part["name"] for part in fragments if part["name"]] == ["look"]
    assert {part["index"] for part in fragments} == {0}


async def test_a_cut_off_call_ends_with_the_token_limit_in_both_ways_of_asking() -> None:
    step = truncated("write", '{"path": "a.txt", "text": "Once', text="Writing.")

    answer = await ScriptedModel([step]).complete(ask())
    pieces = await streamed(ScriptedModel([step]))

    assert answer.response_metadata["finish_reason"] == "length"
    assert answer.invalid_tool_calls[0]["args"] == '{"path": "a.txt", "text": "Once'
    assert whole(pieces).response_metadata["finish_reason"] == "length"
    assert text_of(answer) == "Writing."


async def test_a_refusal_stands_outside_of_an_empty_content() -> None:
    answer = await ScriptedModel([refuses("I will not.")]).complete(ask())
    nothing = await ScriptedModel([empty()]).complete(ask())

    assert (refusal_of(answer), text_of(answer)) == ("I will not.", "")
    assert (refusal_of(nothing), text_of(nothing), nothing.tool_calls) == (None, "", [])


@pytest.mark.parametrize(
    "step",
    [
        says("Hello big  world,\n bye "),
        says("plain", thinking="first this, then that"),
        says(thinking="ab", chunks=["He", "l", "lo"]),
        says("cut", finish_reason="length"),
        says(""),
        calls("look", q="ä", deep={"a": [1, None]}),
        calls_many(call("a", x=1), call("b").with_id(None), text="Two.", thinking="hm"),
        refuses("No."),
        empty(),
        "a string",
        AIMessage("given", id="m1", additional_kwargs={"k": 1}),
        AIMessage([{"type": "text", "text": "a b"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
        AIMessage("", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "x", "type": "tool_call"}]),
    ],
)
async def test_a_stream_adds_up_to_the_message_of_a_plain_call(step: Any) -> None:
    answer = await ScriptedModel([step]).complete(ask())
    as_chunks = await streamed(ScriptedModel([step]))
    as_strings = await streamed(ScriptedModel([step], stream_as="strings"))

    assert whole(as_chunks) == answer
    assert text_of(whole(as_strings)) == text_of(answer)
    assert thinking_of(whole(as_chunks)) == thinking_of(answer)


async def test_text_is_streamed_by_words_and_the_usage_comes_once_at_the_end() -> None:
    pieces = await streamed(ScriptedModel([says("Hello big world")]))
    strings = await streamed(ScriptedModel([says("Hello big world")], stream_as="strings"))

    assert [text_of(piece) for piece in pieces] == ["Hello ", "big ", "world", ""]
    assert strings[:3] == ["Hello ", "big ", "world"]
    for last in (pieces[-1], strings[-1]):
        assert isinstance(last, AIMessageChunk)
        assert last.usage_metadata == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert [piece for piece in pieces[:-1] if not isinstance(piece, str) and piece.usage_metadata] == []


def test_chunks_that_do_not_join_to_the_text_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'ab' and not to the text 'abc'"):
        says("abc", chunks=["a", "b"])


@pytest.mark.parametrize("bad", [3, None, {"text": "x"}])
def test_a_value_that_is_no_step_is_refused_when_the_script_is_made(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no step of a script"):
        ScriptedModel([bad])


async def test_an_error_is_raised_at_once_or_after_the_text_of_a_stream() -> None:
    model = ScriptedModel([raises(TimeoutError("slow")), ValueError, raises_midstream("Once upon", OSError("gone"))])

    with pytest.raises(TimeoutError, match="slow"):
        await model.complete(ask())
    with pytest.raises(ValueError, match=r"^$"):
        await streamed(model)
    seen: list[str] = []
    with pytest.raises(OSError, match="gone"):
        async for piece in model.stream(ask()):
            seen.append(text_of(piece))

    assert seen == ["Once ", "upon"]
    model.assert_done()


async def test_a_midstream_error_ends_a_plain_call_without_an_answer() -> None:
    with pytest.raises(OSError, match="gone"):
        await ScriptedModel([raises_midstream("Once upon", OSError("gone"))]).complete(ask())


@pytest.mark.parametrize("how", ["complete", "stream"])
async def test_a_step_waits_for_its_event(how: str) -> None:
    event = asyncio.Event()
    model = ScriptedModel([waits_for(event, "done")])
    work = asyncio.create_task(_text_by(model, how))

    await model.until_asked()
    await asyncio.sleep(0)
    assert not work.done()
    event.set()

    assert await work == "done"


@pytest.mark.parametrize("how", ["complete", "stream"])
async def test_an_event_among_the_chunks_holds_the_answer_there(how: str) -> None:
    event = asyncio.Event()
    model = ScriptedModel([says(chunks=["Hel", event, "lo"])])
    seen: list[str] = []
    work = asyncio.create_task(_text_by(model, how, seen))

    await model.until_asked()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not work.done()
    assert "".join(seen) == ("Hel" if how == "stream" else "")
    event.set()

    assert await work == "Hello"


async def test_a_delayed_step_takes_its_time() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()

    answer = await ScriptedModel([delayed(calls("look"), 0.02)]).complete(ask())

    assert answer.tool_calls[0]["name"] == "look"
    assert loop.time() - started >= 0.015


@pytest.mark.parametrize("how", ["complete", "stream"])
async def test_a_cancelled_answer_is_counted_as_abandoned(how: str) -> None:
    model = ScriptedModel([waits_for(asyncio.Event(), "never")])
    work = asyncio.create_task(_text_by(model, how))

    await model.until_asked()
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    assert model.abandoned == 1


async def test_a_stream_that_is_closed_early_is_counted_as_abandoned() -> None:
    model = ScriptedModel([says("a b c"), says("d")])

    stream = model.stream(ask())
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    await streamed(model)

    assert model.abandoned == 1


async def test_a_request_more_than_the_script_has_fails_there_and_again_at_the_end() -> None:
    model = ScriptedModel(["one"])
    await model.complete(ask())

    with pytest.raises(ScriptError, match="asked once more after all 1 steps"):
        await model.complete(ask())
    with pytest.raises(ScriptError, match="asked once more"):
        model.assert_done()

    assert issubclass(ScriptError, AssertionError)
    assert ScriptError.retryable is False


async def test_a_script_error_that_the_code_under_test_swallows_still_fails_the_block() -> None:
    async def runs(model: ScriptedModel) -> None:
        async with model:
            try:
                await model.complete(ask())
            except Exception:
                return

    with pytest.raises(ScriptError, match="asked once more"):
        await runs(ScriptedModel([]))


async def test_a_failed_assertion_in_a_step_is_raised_again_at_the_end() -> None:
    def check(messages: list[BaseMessage]) -> str:
        assert len(messages) == 2, "the history is missing"
        return "fine"

    model = ScriptedModel([check])
    with pytest.raises(AssertionError, match="the history is missing"):
        await model.complete(ask())
    with pytest.raises(AssertionError, match="the history is missing"):
        model.assert_done()


async def test_unused_steps_fail_the_block_and_are_named() -> None:
    def later(messages: list[BaseMessage]) -> str:
        return "x"

    with (
        pytest.raises(ScriptError) as failure,
        ScriptedModel(["one", "two", calls("look"), OSError("x"), later]) as model,
    ):
        await model.complete(ask())

    assert "asked 1 times, 4 steps are left: says 'two', calls look, raises OSError('x'), the function 'later'" in str(
        failure.value
    )
    assert model.remaining == 4


async def test_an_error_of_the_block_itself_is_not_hidden_by_unused_steps() -> None:
    with pytest.raises(KeyError, match="mine"), ScriptedModel(["one"]):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        async with ScriptedModel(["one"]):
            raise KeyError("mine")


async def test_a_model_that_is_not_strict_leaves_steps_and_takes_any_input() -> None:
    with ScriptedModel(["one", "two"], strict=False) as model:
        answer = await model.complete(ModelRequest(messages=[ToolMessage("orphan", tool_call_id="x")]))

    assert text_of(answer) == "one"


_CALL = AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "c1", "type": "tool_call"}])
_SPEC = ToolSpec(name="look")


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (ModelRequest(messages=[SystemMessage("s")]), "there is no user turn"),
        (ModelRequest(messages=[]), "there is no user turn"),
        (ask("q", _CALL), r"before the results of \['c1'\]"),
        (ask("q", ToolMessage("r", tool_call_id="c9")), "result for 'c9'"),
        (ask("q", AIMessage("")), "without text and call"),
        (ask(tools=[ToolSpec(name="has space")]), "tool name 'has space'"),
        (ask(tools=[ToolSpec(name="x" * 65)]), "tool name 'x{65}'"),
        (ask(tools=[_SPEC, _SPEC]), r"\['look'\] are offered more than once"),
        (ask(tools=[_SPEC], tool_choice="other"), "tool_choice is 'other'"),
        (ask(tool_choice="required"), "tool_choice is 'required'"),
    ],
)
async def test_a_request_that_a_strict_provider_rejects_fails_with_the_reason(
    request_: ModelRequest, problem: str
) -> None:
    for ask_it in (ScriptedModel(["x"]).complete, lambda request: streamed(ScriptedModel(["x"]), request)):
        with pytest.raises(ScriptError, match=problem):
            await ask_it(request_)


async def test_a_valid_request_with_tools_and_a_forced_choice_passes() -> None:
    model = ScriptedModel(["x"] * 4)
    for choice in ("auto", "none", "required", "look"):
        await model.complete(ask("q", _CALL, ToolMessage("r", tool_call_id="c1"), tools=[_SPEC], tool_choice=choice))
    model.assert_done()


async def test_requests_are_recorded_as_they_were_when_they_were_made() -> None:
    model = ScriptedModel(["one", "two"])
    messages: list[BaseMessage] = [HumanMessage("first")]
    tools = [_SPEC]
    request = ModelRequest(messages=messages, tools=tools, temperature=0.5)

    answer = await model.complete(request)
    tools.append(ToolSpec(name="later"))
    messages += [answer, HumanMessage("second")]
    await streamed(model, replace(request, tools=[]))

    assert [[text_of(message) for message in seen] for seen in model.inputs] == [["first"], ["first", "one", "second"]]
    assert model.tools_seen == [["look"], []]
    assert [seen.temperature for seen in model.requests] == [0.5, 0.5]
    assert [len(seen.messages) for seen in model.requests] == [1, 3]


async def test_a_function_step_may_be_async_and_return_any_kind_of_step() -> None:
    async def look(messages: list[BaseMessage]) -> Any:
        return calls("look", n=len(messages))

    model = ScriptedModel([look, lambda messages: lambda again: OSError("deep")])

    assert (await model.complete(ask())).tool_calls[0]["args"] == {"n": 1}
    with pytest.raises(OSError, match="deep"):
        await model.complete(ask())


async def test_the_text_of_a_message_can_be_handed_on_as_a_step() -> None:
    model = ScriptedModel.answering(lambda messages: messages[-1].text)

    assert text_of(await model.complete(ask("echo me"))) == "echo me"


async def test_an_answering_model_serves_runs_side_by_side_without_mixing_them_up() -> None:
    async def answer(messages: list[BaseMessage]) -> Any:
        await asyncio.sleep(0)
        said = text_of(messages[0])
        return calls("look", who=said) if len(messages) == 1 else f"done {said}"

    model = ScriptedModel.answering(answer, name="many")

    async def run(who: str) -> tuple[str, str]:
        first = await model.complete(ask(who))
        wanted = first.tool_calls[0]
        last = await model.complete(ask(who, first, ToolMessage("r", tool_call_id=wanted["id"])))
        return wanted["id"], text_of(last)

    ended = await asyncio.gather(*(run(f"user {number}") for number in range(20)))

    assert [text for _, text in ended] == [f"done user {number}" for number in range(20)]
    assert len({call_id for call_id, _ in ended}) == 20
    assert len(model.requests) == 40
    model.assert_done()


async def test_waiting_for_a_request_that_never_comes_fails() -> None:
    model = ScriptedModel(["x"], strict=False)

    with pytest.raises(ScriptError, match=r"asked 0 times within 0.01 s, and not 1"):
        await model.until_asked(within=0.01)


async def _text_by(model: ScriptedModel, how: str, seen: list[str] | None = None) -> str:
    if how == "complete":
        return text_of(await model.complete(ask()))
    pieces = seen if seen is not None else []
    async for piece in model.stream(ask()):
        pieces.append(text_of(piece))
    return "".join(pieces)
