"""Asking a model: events, retries, cancellation, callbacks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.models import ModelCapabilities, ModelRequest, RetryPolicy, call_model
from graphwright.run_events import ModelFinished, ModelStarted, Restarted, Retrying, TextDelta, ThinkingDelta
from graphwright.testing import ScriptedModel, calls, raises, raises_midstream, refuses, says
from graphwright.usage import Usage


class Busy(Exception):
    status_code = 529


class Denied(Exception):
    status_code = 401


def question(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[HumanMessage("hello")], **fields)


async def watched(model: Any, *, retry: RetryPolicy | None = None, **fields: Any) -> tuple[Any, list[Any]]:
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    reply = await call_model(
        model, question(**fields), node="n", path="a/b", run_id="r", emit=emit, retry=retry or RetryPolicy()
    )
    return reply, events


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task that has to end by that, and soon."""
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done, "the task goes on after it was cancelled"
    assert task.cancelled()


class Native:
    """A model whose behaviour is a function."""

    name = "native"

    def __init__(self, answer: Any, *, streaming: bool = False) -> None:
        self.answer = answer
        self.capabilities = ModelCapabilities(streaming=streaming)

    async def complete(self, request: ModelRequest) -> Any:
        return await self.answer(request)


async def test_a_call_is_reported_from_start_to_end_with_its_place() -> None:
    reply, events = await watched(ScriptedModel([says("Hello you", thinking="plan")]))

    assert [type(event) for event in events] == [
        ModelStarted,
        ThinkingDelta,
        TextDelta,
        TextDelta,
        ModelFinished,
    ]
    assert {(event.node, event.path, event.run_id) for event in events} == {("n", "a/b", "r")}
    assert len({event.call_id for event in events}) == 1
    assert [event.text for event in events if type(event) is TextDelta] == ["Hello ", "you"]
    assert all(type(event.chunk) is AIMessageChunk for event in events if type(event) is TextDelta)
    assert events[-1].message is reply.message
    assert events[-1].usage == reply.usage == Usage(10, 5, 15)


async def test_pieces_of_plain_text_are_shown_without_a_chunk() -> None:
    reply, events = await watched(ScriptedModel([says("Hello you")], stream_as="strings"))

    assert [(e.text, e.chunk) for e in events if type(e) is TextDelta] == [("Hello ", None), ("you", None)]
    assert reply.text == "Hello you"


@pytest.mark.parametrize("step", [says("Hello you", thinking="hm"), calls("f", a=1), refuses("No."), ""])
async def test_streaming_and_not_streaming_give_the_same_reply(step: Any) -> None:
    whole = await call_model(ScriptedModel([step]), question())
    streamed, _ = await watched(ScriptedModel([step]))

    assert (streamed.text, streamed.calls, streamed.usage, streamed.refusal) == (
        whole.text,
        whole.calls,
        whole.usage,
        whole.refusal,
    )
    assert streamed.message.content == whole.message.content
    assert streamed.message.tool_calls == whole.message.tool_calls


async def test_reasoning_beside_the_content_is_thinking_and_stays_on_the_message() -> None:
    class Reasoner(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            for thought in ("let me ", "see"):
                yield AIMessageChunk(content="", additional_kwargs={"reasoning_content": thought})
            yield AIMessageChunk(content="42")

    reply, events = await watched(Reasoner([]))

    assert [event.text for event in events if type(event) is ThinkingDelta] == ["let me ", "see"]
    assert [event.text for event in events if type(event) is TextDelta] == ["42"]
    assert (reply.text, reply.message.additional_kwargs) == ("42", {"reasoning_content": "let me see"})


async def test_a_model_that_cannot_stream_shows_its_text_at_once() -> None:
    model = ScriptedModel([says("Hello you", thinking="plan")], capabilities=ModelCapabilities(streaming=False))

    _, events = await watched(model)

    assert [type(event) for event in events] == [ModelStarted, ThinkingDelta, TextDelta, ModelFinished]
    assert events[2].text == "Hello you"


async def test_a_failure_that_can_pass_is_tried_again_and_told_live(sleeps: Any) -> None:
    waits, sleep = sleeps
    model = ScriptedModel([raises(Busy("busy")), raises(ConnectionError("gone")), says("ok")])

    reply, events = await watched(model, retry=RetryPolicy(sleep=sleep))

    assert reply.text == "ok"
    retries = [event for event in events if type(event) is Retrying]
    assert [event.attempt for event in retries] == [1, 2]
    assert [event.wait_s for event in retries] == waits
    assert "Busy: busy" in retries[0].reason
    assert not any(type(event) is Restarted for event in events)


async def test_shown_text_is_voided_before_anything_else_is_shown(sleeps: Any) -> None:
    model = ScriptedModel([raises_midstream("The first half", Busy()), says("All of it")])

    reply, events = await watched(model, retry=RetryPolicy(sleep=sleeps[1]))

    kinds = [type(event) for event in events]
    restart = kinds.index(Restarted)
    assert kinds[restart - 1] is Retrying
    assert events[restart].dropped == "The first half"
    after = [event.text for event in events[restart:] if type(event) is TextDelta]
    assert "".join(after) == reply.text == "All of it"
    assert len({event.call_id for event in events if hasattr(event, "call_id")}) == 1


async def test_retries_work_without_a_listener_too(sleeps: Any) -> None:
    model = ScriptedModel([raises(Busy()), raises(Busy()), says("ok")])

    reply = await call_model(model, question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert reply.text == "ok"
    assert len(sleeps[0]) == 2


@pytest.mark.parametrize("listening", [True, False])
async def test_what_cannot_pass_ends_the_call_with_the_providers_exception_behind_it(listening: bool) -> None:
    denied = Denied("bad key")
    model = ScriptedModel([raises(denied)])

    with pytest.raises(ModelError, match="check the API key") as caught:
        await (watched(model) if listening else call_model(model, question()))

    assert caught.value.__cause__ is denied
    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert len(model.requests) == 1


async def test_a_mistake_of_the_caller_is_not_dressed_as_the_models() -> None:
    async def refuse(_: Any) -> Any:
        raise ConfigurationError("no such thing")

    with pytest.raises(ConfigurationError, match="no such thing"):
        await call_model(Native(refuse), question())


async def test_a_model_error_of_ones_own_decides_for_itself(sleeps: Any) -> None:
    model = ScriptedModel([raises(ModelError("wait", retryable=True, retry_after=5.0)), says("ok")])

    reply = await call_model(model, question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert reply.text == "ok"
    assert 5 <= sleeps[0][0] <= 6


@pytest.mark.parametrize(
    "inner",
    [asyncio.CancelledError(), AttributeError("'CancelledError' object has no attribute 'generations'")],
    ids=["cancelled", "tripped over it"],
)
@pytest.mark.parametrize("listening", [True, False])
async def test_a_cancellation_that_nobody_asked_for_is_tried_again(
    sleeps: Any, inner: BaseException, listening: bool
) -> None:
    retry = RetryPolicy(sleep=sleeps[1])
    model = ScriptedModel([raises(inner), says("ok")])

    if listening:
        reply, _ = await watched(model, retry=retry)
    else:
        reply = await call_model(model, question(), retry=retry)

    assert reply.text == "ok"
    assert len(sleeps[0]) == 1


async def test_an_ordinary_attribute_error_is_no_cancellation() -> None:
    with pytest.raises(ModelError) as caught:
        await call_model(ScriptedModel([raises(AttributeError("no x"))]), question())

    assert not caught.value.retryable


@pytest.mark.parametrize("listening", [True, False])
async def test_a_real_cancellation_goes_through_at_once(listening: bool) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def hang(_: Any) -> Any:
        begun.set()
        await never.wait()

    model = Native(hang)
    task = asyncio.create_task(watched(model) if listening else call_model(model, question()))
    await begun.wait()
    await cancelled(task)


async def test_a_real_cancellation_goes_through_where_the_client_trips_over_it() -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def trip(_: Any) -> Any:
        begun.set()
        try:
            await never.wait()
        except asyncio.CancelledError:
            raise AttributeError("'CancelledError' object has no attribute 'generations'") from None

    task = asyncio.create_task(call_model(Native(trip), question()))
    await begun.wait()
    await cancelled(task)


async def test_a_cancellation_ends_the_wait_between_two_attempts() -> None:
    waiting = asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    model = ScriptedModel([raises(Busy()), says("late")], strict=False)
    task = asyncio.create_task(call_model(model, question(), retry=RetryPolicy(sleep=sleep)))
    await waiting.wait()
    await cancelled(task)
    assert len(model.requests) == 1


async def test_the_models_stream_is_closed_when_the_listener_fails() -> None:
    model = ScriptedModel([says("one two three")])

    async def emit(event: Any) -> None:
        if type(event) is TextDelta:
            raise ConfigurationError("enough")

    with pytest.raises(ConfigurationError, match="enough"):
        await call_model(model, question(), emit=emit)

    assert model.abandoned == 1


async def test_what_a_listener_raises_is_no_failure_of_the_model(sleeps: Any) -> None:
    model = ScriptedModel([says("one two")])

    async def emit(event: Any) -> None:
        if type(event) is TextDelta:
            raise ConnectionError("the reader is gone")

    with pytest.raises(ConnectionError, match="the reader is gone"):
        await call_model(model, question(), emit=emit, retry=RetryPolicy(sleep=sleeps[1]))

    assert (len(model.requests), sleeps[0]) == (1, [])


async def test_the_messages_of_a_request_stay_as_they_were() -> None:
    messages = [HumanMessage("hello")]
    before = [message.model_copy(deep=True) for message in messages]

    await call_model(ScriptedModel([says("ok")]), ModelRequest(messages=messages))

    assert messages == before


class Handler(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.seen.append(("start", messages[0][0].content, kwargs["tags"], kwargs["metadata"]))

    async def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.seen.append(("token", token))

    async def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.seen.append(("end", response.generations[0][0].message.content))

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(("error", str(error)))


@pytest.mark.parametrize("stream_as", ["chunks", "strings"])
async def test_callbacks_see_a_call_to_a_native_model_once(stream_as: Any) -> None:
    handler = Handler()
    config = {"callbacks": [handler], "tags": ["t"], "metadata": {"k": 1}}

    await call_model(ScriptedModel([says("a b")]), question(config=config))
    whole = handler.seen.copy()
    handler.seen.clear()
    await watched(ScriptedModel([says("a b")], stream_as=stream_as), config=config)

    assert whole == [("start", "hello", ["t"], {"k": 1}), ("end", "a b")]
    assert handler.seen[0] == whole[0]
    assert [entry for entry in handler.seen if entry[0] == "token" and entry[1]] == [("token", "a "), ("token", "b")]
    assert handler.seen[-1] == ("end", "a b")
    assert [entry[0] for entry in handler.seen].count("end") == 1


async def test_callbacks_see_every_attempt_that_failed(sleeps: Any) -> None:
    handler = Handler()
    model = ScriptedModel([raises(Busy("busy")), says("ok")])

    await call_model(model, question(config={"callbacks": [handler]}), retry=RetryPolicy(sleep=sleeps[1]))

    assert [entry[0] for entry in handler.seen] == ["start", "error", "start", "end"]


async def test_fifty_calls_at_once_do_not_come_back_together() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def one() -> Any:
        model = ScriptedModel([raises(Busy()), says("ok")])
        return await call_model(model, question(), retry=RetryPolicy(sleep=sleep))

    replies = await asyncio.gather(*(one() for _ in range(50)))

    assert [reply.text for reply in replies] == ["ok"] * 50
    assert len(set(waits)) == 50


async def test_an_answer_that_is_no_message_fails_and_does_not_hang() -> None:
    async def nonsense(_: Any) -> Any:
        return 5

    with pytest.raises(ModelError):
        await call_model(Native(nonsense), question())


async def test_a_whole_message_is_the_reply() -> None:
    async def answer(_: Any) -> Any:
        return AIMessage("hi")

    assert (await call_model(Native(answer), question())).text == "hi"
