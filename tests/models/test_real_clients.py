"""Whole answers, errors and cancellation, through the real clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graphwright.exceptions import ModelError
from graphwright.models import LangChainModel, ModelRequest, RetryPolicy, as_model, call_model
from graphwright.testing.contracts import model_contract
from graphwright.types import ToolSpec
from graphwright.usage import Usage

RM = ToolSpec(name="rm", parameters={"type": "object", "properties": {"path": {"type": "string"}}})


def question(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[HumanMessage("hello")], **fields)


def openai(provider: Any, **options: Any) -> Any:
    return as_model("openai:example-model", base_url=provider.url, **options)


def completion(message: dict[str, Any], *, finish: str = "stop", usage: Any = None) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def written(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("arguments", ["null", "[]", '"x"', "5", "true"])
async def test_arguments_that_are_no_object_are_a_problem_and_the_sibling_is_fine(
    provider: Any, arguments: str
) -> None:
    calls = [written("c1", "rm", arguments), written("c2", "ok", "{}")]
    provider.answer(completion({"tool_calls": calls}, finish="tool_calls"))

    reply = await call_model(openai(provider), question(tools=[RM]))

    bad, good = reply.calls
    assert "not an object" in bad.problem
    assert (bad.id, bad.args, bad.raw) == ("c1", {}, arguments)
    assert (good.id, good.name, good.args, good.problem) == ("c2", "ok", {}, "")
    assert "graphwright_raw_arguments" not in reply.message.response_metadata


async def test_empty_arguments_are_an_empty_object(provider: Any) -> None:
    provider.answer(completion({"tool_calls": [written("c1", "rm", "")]}, finish="tool_calls"))

    reply = await call_model(openai(provider), question(tools=[RM]))

    assert [(call.args, call.problem) for call in reply.calls] == [({}, "")]


async def test_arguments_that_are_no_json_are_a_problem_in_the_order_written(provider: Any) -> None:
    calls = [written("c1", "rm", '{"path": "a"}'), written("c2", "rm", '{"t":1}{"t":1}')]
    provider.answer(completion({"tool_calls": calls}, finish="tool_calls"))

    reply = await call_model(openai(provider), question(tools=[RM]))

    assert [call.id for call in reply.calls] == ["c1", "c2"]
    assert "Extra data" in reply.calls[1].problem
    assert reply.message.invalid_tool_calls == []


async def test_a_refusal_of_a_whole_answer_is_its_text(provider: Any) -> None:
    provider.answer(completion({"refusal": "I can't help with that."}))

    reply = await call_model(openai(provider), question())

    assert (reply.refusal, reply.text) == ("I can't help with that.",) * 2
    assert reply.message.content == "I can't help with that."


async def test_cached_tokens_under_their_older_name_are_read(provider: Any) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_cache_hit_tokens": 64}
    provider.answer(completion({"content": "hi"}, usage=usage))

    reply = await call_model(openai(provider), question())

    assert reply.usage == Usage(100, 5, 105, 64)


async def test_a_rate_limit_is_waited_out_as_the_provider_asks(provider: Any, sleeps: Any) -> None:
    provider.answer({"error": {"message": "slow", "type": "rate_limit"}}, status=429, headers={"retry-after": "2"})
    provider.answer(completion({"content": "hi"}))

    reply = await call_model(openai(provider), question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert reply.text == "hi"
    assert len(sleeps[0]) == 1
    assert 2 <= sleeps[0][0] <= 3


async def test_a_wait_beyond_the_cap_ends_the_call_with_a_clear_error(provider: Any, sleeps: Any) -> None:
    late = {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}
    provider.answer({"error": {"message": "slow"}}, status=429, headers=late)

    with pytest.raises(ModelError, match="more than the cap of 60 s") as caught:
        await call_model(openai(provider), question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 1e9
    assert (sleeps[0], len(provider.requests)) == ([], 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_cannot_pass_is_asked_once(provider: Any, sleeps: Any, status: int) -> None:
    provider.answer({"error": {"message": "no", "type": "x"}}, status=status)

    with pytest.raises(ModelError) as caught:
        await call_model(openai(provider), question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert (caught.value.status, caught.value.retryable) == (status, False)
    assert len(provider.requests) == 1


async def test_a_used_up_quota_is_not_tried_again(provider: Any, sleeps: Any) -> None:
    provider.answer({"error": {"message": "quota", "code": "insufficient_quota"}}, status=429)

    with pytest.raises(ModelError):
        await call_model(openai(provider), question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_attempts_are_the_configured_ones_and_not_multiplied_by_the_client(
    provider: Any, sleeps: Any, status: int
) -> None:
    provider.answer({"error": {"message": "busy"}}, status=status)

    with pytest.raises(ModelError, match="given up after 3 attempts"):
        await call_model(openai(provider), question(), retry=RetryPolicy(attempts=3, sleep=sleeps[1]))

    assert len(provider.requests) == 3
    assert len(sleeps[0]) == 2


async def test_a_client_that_retries_by_itself_is_not_retried_on_top(provider: Any, sleeps: Any) -> None:
    from langchain_openai import ChatOpenAI

    provider.answer({"error": {"message": "busy"}}, status=500, headers={"retry-after-ms": "1"})
    model = as_model(ChatOpenAI(model="m", base_url=provider.url, api_key="k", max_retries=1))

    with pytest.raises(ModelError):
        await call_model(model, question(), retry=RetryPolicy(attempts=4, sleep=sleeps[1]))

    assert isinstance(model, LangChainModel)
    assert model.own_retries
    assert (len(provider.requests), sleeps[0]) == (2, [])


async def test_a_server_that_is_not_there_is_a_retryable_error(sleeps: Any) -> None:
    model = as_model("openai:m", base_url="http://127.0.0.1:9")

    with pytest.raises(ModelError, match="given up after 2 attempts") as caught:
        await call_model(model, question(), retry=RetryPolicy(attempts=2, sleep=sleeps[1]))

    assert caught.value.retryable
    assert caught.value.status is None
    assert caught.value.__cause__ is not None


async def test_leaving_a_stream_closes_the_connection_to_the_provider(provider: Any) -> None:
    provider.stream("openai_chat_cut_off_no_done", hold=asyncio.Event())
    first = asyncio.Event()

    async def emit(event: Any) -> None:
        if getattr(event, "text", ""):
            first.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call_model(openai(provider), question(), emit=emit))
    await first.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(provider.hung_up.wait(), 5)


async def test_cancelling_a_call_that_waits_for_the_provider_closes_the_connection(provider: Any) -> None:
    provider.stream("openai_chat_cut_off_no_done", hold=asyncio.Event())
    first = asyncio.Event()

    async def emit(event: Any) -> None:
        if getattr(event, "text", ""):
            first.set()

    task = asyncio.create_task(call_model(openai(provider), question(), emit=emit))
    await first.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(provider.hung_up.wait(), 5)


async def test_the_tools_and_settings_of_a_request_reach_the_provider(provider: Any) -> None:
    provider.answer(completion({"content": "hi"}))
    model = openai(provider)

    await call_model(model, question(tools=[RM], tool_choice="required", temperature=0.25, max_tokens=77))
    await call_model(model, question(tools=[RM], tool_choice="rm"))
    await call_model(model, question(tools=[RM], tool_choice="none"))
    await call_model(model, question(tools=[RM]))

    forced, named, none, auto = provider.requests
    assert forced["tool_choice"] == "required"
    assert (forced["temperature"], forced["max_completion_tokens"]) == (0.25, 77)
    assert forced["tools"][0]["function"]["name"] == "rm"
    assert forced["tools"][0]["function"]["parameters"] == RM.parameters
    assert named["tool_choice"] == {"type": "function", "function": {"name": "rm"}}
    assert "tools" not in none
    assert "tool_choice" not in auto
    assert "temperature" not in auto
    assert "max_completion_tokens" not in auto


async def test_anthropic_takes_tools_settings_and_a_history_with_a_repaired_call(provider: Any) -> None:
    from langchain_core.messages import ToolMessage

    provider.stream("anthropic_max_tokens_partial_tool")
    block = {"type": "text", "text": "done"}
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 90}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    provider.answer({**head, "stop_sequence": None, "content": [block], "usage": usage})
    model = as_model("anthropic:example-claude", base_url=provider.url, api_key="k")
    note = ToolSpec(name="save_note", parameters={"type": "object", "properties": {"title": {"type": "string"}}})

    async def emit(_: Any) -> None: ...

    first = await call_model(model, question(tools=[note], max_tokens=64), emit=emit)
    answered = ToolMessage("cut off", tool_call_id="toolu_09", status="error")
    history = [HumanMessage("hello"), first.message, answered]
    second = await call_model(model, ModelRequest(messages=history, tools=[note], tool_choice="required"))

    assert provider.requests[0]["max_tokens"] == 64
    assert provider.requests[1]["tool_choice"] == {"type": "any"}
    (call,) = provider.requests[1]["messages"][1]["content"]
    assert (call["type"], call["id"], call["name"], call["input"]) == ("tool_use", "toolu_09", "save_note", {})
    assert second.text == "done"
    assert second.usage == Usage(100, 2, 102, 90)


async def test_the_openai_client_keeps_the_contract_of_a_model(provider: Any) -> None:
    usage = {"prompt_tokens": 120, "completion_tokens": 45, "total_tokens": 165}
    whole = completion({"content": "Two ducks 🦆."}, usage=usage)
    adds = completion({"tool_calls": [written("c1", "add", '{"a": 2, "b": 3}')]}, finish="tool_calls", usage=usage)
    provider.route(
        lambda request: "openai_chat_text_usage" if request.get("stream") else (adds if request.get("tools") else whole)
    )

    await model_contract(lambda: openai(provider))
