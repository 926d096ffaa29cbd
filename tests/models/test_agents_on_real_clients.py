"""Whole agents on the real provider clients, against recorded streams."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.agent import build_agent
from graphwright.engine import GraphExecutionError
from graphwright.exceptions import ModelRefusalError
from graphwright.messages import problem_in, text_of
from graphwright.models import as_model
from graphwright.streaming import TokenEvent


def model_for(transcript: str, url: str) -> Any:
    if transcript.startswith("anthropic"):
        return as_model("anthropic:example-claude", base_url=url, api_key="k")
    if transcript.startswith("openai_responses"):
        return as_model("openai:example-model", base_url=url, api_key="k", use_responses_api=True)
    return as_model("openai:example-model", base_url=url, api_key="k")


ENDS = {"anthropic": "anthropic_text", "openai": "openai_chat_text_usage"}


def ending(transcript: str) -> str:
    return ENDS[transcript.split("_")[0]]


async def streamed(agent: Any) -> tuple[list[Any], Any]:
    events = [event async for event in agent.astream_with_tools("go")]
    return events, events[-1]


@pytest.mark.parametrize("transcript", ["openai_chat_truncated_tool_args", "anthropic_max_tokens_partial_tool"])
async def test_a_call_cut_off_in_the_middle_of_its_arguments_never_runs(provider: Any, transcript: str) -> None:
    saved: list[Any] = []

    def save_note(title: str, body: str = "") -> str:
        """Save a note."""
        saved.append((title, body))
        return "saved"

    provider.stream(transcript).stream(ending(transcript))
    agent = await build_agent(model=model_for(transcript, provider.url), extra_tools=[save_note])
    events, done = await streamed(agent)
    assert saved == []
    assert [event.type for event in events if event.type.startswith("tool")] == ["tool_start", "tool_end"]
    assert next(event for event in events if event.type == "tool_end").success is False
    assert done.full_response
    assert "cut off" in str(provider.requests[1])


@pytest.mark.parametrize(
    ("transcript", "seen"),
    [
        ("openai_compat_same_index_two_ids", ["Oslo", "Rome"]),
        ("openai_chat_parallel_tools_interleaved", ["Oslo"]),
        ("anthropic_thinking_parallel_tools", ["Oslo"]),
    ],
)
async def test_parallel_calls_run_once_each_with_their_own_arguments(
    provider: Any, transcript: str, seen: list[str]
) -> None:
    cities: list[str] = []

    async def get_weather(city: str) -> str:
        """Get the weather."""
        cities.append(city)
        return "sunny"

    async def get_time(tz: str = "UTC") -> str:
        """Get the time."""
        return "noon"

    provider.stream(transcript).stream(ending(transcript))
    agent = await build_agent(model=model_for(transcript, provider.url), extra_tools=[get_weather, get_time])
    run = agent.start("go")
    async for _ in run.events():
        pass
    result = await run.result()
    assert cities == seen
    assert problem_in(result.messages) is None
    assert result.text


async def test_thinking_is_kept_for_the_provider_and_is_no_text(provider: Any) -> None:
    def get_weather(city: str) -> str:
        """Get the weather."""
        return "sunny"

    def get_time() -> str:
        """Get the time."""
        return "noon"

    provider.stream("anthropic_thinking_parallel_tools").stream("anthropic_text")
    agent = await build_agent(model=model_for("anthropic", provider.url), extra_tools=[get_weather, get_time])
    events, done = await streamed(agent)
    shown = "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert shown == "Checking both.Hello there"
    assert done.full_response == "Hello there"
    assert "Need weather and time." in str(provider.requests[1])


class Note(BaseModel):
    """A note."""

    title: str


@pytest.mark.parametrize("transcript", ["openai_chat_refusal", "anthropic_refusal"])
async def test_a_refusal_is_told_and_asked_once(provider: Any, transcript: str) -> None:
    provider.stream(transcript)
    agent = await build_agent(model=model_for(transcript, provider.url))
    _, done = await streamed(agent)
    assert done.full_response in ("I can't help with that.", "I can't do that.")
    assert len(provider.requests) == 1
    typed = await build_agent(model=model_for(transcript, provider.url), output_schema=Note)
    with pytest.raises(GraphExecutionError) as caught:
        await streamed(typed)
    assert isinstance(caught.value.__cause__, ModelRefusalError)
    assert caught.value.__cause__.reason == "refusal"
    assert len(provider.requests) == 2


async def test_the_responses_api_calls_tools_too(provider: Any) -> None:
    cities: list[str] = []

    def get_weather(city: str) -> str:
        """Get the weather."""
        cities.append(city)
        raise RuntimeError("enough")

    provider.stream("openai_responses_reasoning_tool")
    agent = await build_agent(
        model=model_for("openai_responses", provider.url), extra_tools=[get_weather], max_agent_iterations=1
    )
    with pytest.raises(GraphExecutionError) as caught:
        await streamed(agent)
    assert cities == ["Oslo"]
    assert "enough" in text_of(caught.value.messages[-1])


async def test_usage_of_a_streamed_run_is_counted_once(provider: Any) -> None:
    provider.stream("openai_chat_text_usage")
    agent = await build_agent(model=model_for("openai", provider.url))
    run = agent.start("go")
    async for _ in run.events():
        pass
    usage = (await run.result()).usage.as_dict()
    assert usage == {
        "prompt_tokens": 120,
        "completion_tokens": 45,
        "total_tokens": 165,
        "cached_tokens": 96,
        "reasoning_tokens": 20,
    }
