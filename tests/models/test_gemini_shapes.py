"""Gemini's answers, in the pieces that its LangChain client makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage

from graphwright.exceptions import ModelError
from graphwright.models import ModelCapabilities, ModelRequest, RetryPolicy, call_model
from graphwright.models.joining import ChunkJoiner
from graphwright.models.reply import joined_reply
from graphwright.run_events import TextDelta, ThinkingDelta
from graphwright.usage import Usage

STREAMS = Path(__file__).parent.parent / "data" / "streams"


def events_of(transcript: str) -> list[dict[str, Any]]:
    lines = (STREAMS / f"{transcript}.sse").read_text().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def chunks_of(transcript: str, *, cumulative: bool = False) -> list[AIMessageChunk]:
    """Build the chunks of the client: usage as what is new, or, as in other clients, as the total so far."""
    chunks, before = [], {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "reasoning": 0, "cached": 0}
    for event in events_of(transcript):
        usage, before = _usage(event.get("usageMetadata"), before, cumulative=cumulative)
        candidates = event.get("candidates") or [{}]
        metadata: dict[str, Any] = {"model_provider": "google_genai"}
        if "promptFeedback" in event:
            metadata["prompt_feedback"] = {"block_reason": event["promptFeedback"]["blockReason"]}
        if "finishReason" in candidates[0]:
            metadata |= {"finish_reason": candidates[0]["finishReason"], "model_name": event["modelVersion"]}
        fields: dict[str, Any] = {"content": "", "usage_metadata": usage, "response_metadata": metadata}
        for part in candidates[0].get("content", {}).get("parts", []):
            if "functionCall" in part:
                call = part["functionCall"]
                args = json.dumps(call["args"])
                fields["tool_call_chunks"] = [
                    {"name": call["name"], "args": args, "id": call.get("id"), "index": len(chunks)}
                ]
                fields["additional_kwargs"] = {"function_call": {"name": call["name"], "arguments": args}}
            elif part.get("thought"):
                fields["content"] = [{"type": "thinking", "thinking": part["text"]}]
            else:
                fields["content"] = part["text"]
        chunks.append(AIMessageChunk(**fields))
    return chunks


def _usage(raw: Any, before: dict[str, int], *, cumulative: bool) -> tuple[Any, dict[str, int]]:
    if raw is None:
        return None, before
    thoughts = raw.get("thoughtsTokenCount", 0)
    now = {
        "input_tokens": raw["promptTokenCount"],
        "output_tokens": raw.get("candidatesTokenCount", 0) + thoughts,
        "total_tokens": raw["totalTokenCount"],
        "reasoning": thoughts,
        "cached": raw.get("cachedContentTokenCount", 0),
    }
    told = now if cumulative else {key: max(0, now[key] - before[key]) for key in now}
    usage = {key: told[key] for key in ("input_tokens", "output_tokens", "total_tokens")}
    usage["input_token_details"] = {"cache_read": told["cached"]}
    usage["output_token_details"] = {"reasoning": told["reasoning"]}
    return usage, now


class Gemini:
    name = "gemini"
    capabilities = ModelCapabilities()

    def __init__(self, *answers: list[AIMessageChunk]) -> None:
        self.answers = list(answers)

    async def complete(self, request: ModelRequest) -> Any:
        joiner = ChunkJoiner()
        for chunk in self.answers.pop(0):
            joiner.add(chunk)
        return joined_reply(joiner).message

    async def stream(self, request: ModelRequest) -> Any:
        for chunk in self.answers.pop(0):
            yield chunk


async def ask(*answers: list[AIMessageChunk], **options: Any) -> tuple[Any, list[Any]]:
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    reply = await call_model(Gemini(*answers), ModelRequest(messages=[HumanMessage("x")]), emit=emit, **options)
    return reply, events


@pytest.mark.parametrize("cumulative", [False, True], ids=["what is new", "the total so far"])
async def test_thoughts_are_no_text_and_each_token_is_counted_once(cumulative: bool) -> None:
    reply, events = await ask(chunks_of("gemini_text_thoughts_cumulative_usage", cumulative=cumulative))

    assert reply.text == "Nine planets? Eight."
    assert [event.text for event in events if type(event) is TextDelta] == ["Nine ", "planets? Eight."]
    assert [event.text for event in events if type(event) is ThinkingDelta] == ["Compare sizes."]
    assert reply.usage == Usage(30, 23, 53, 10, 16)


async def test_parallel_calls_without_ids_get_ids_of_their_own() -> None:
    reply, _ = await ask(chunks_of("gemini_parallel_calls_no_ids"))

    assert [(call.name, call.args) for call in reply.calls] == [
        ("get_weather", {"city": "Oslo"}),
        ("get_weather", {"city": "Rome"}),
    ]
    assert len({call.id for call in reply.calls}) == 2
    assert reply.usage == Usage(50, 20, 70, 0, 0)


async def test_parallel_calls_with_ids_keep_them() -> None:
    reply, _ = await ask(chunks_of("gemini_parallel_calls_with_ids"))

    assert [call.id for call in reply.calls] == ["fc-1", "fc-2"]
    assert reply.message.additional_kwargs == {}


async def test_a_text_cut_at_the_token_limit_is_the_text_so_far() -> None:
    reply, _ = await ask(chunks_of("gemini_max_tokens"))

    assert reply.text == '{"name": "Ana", "items": ["a", "b"'
    assert (reply.calls, reply.refusal, reply.usage) == ([], None, Usage(30, 16, 46, 0, 0))


async def test_a_blocked_prompt_is_a_refusal() -> None:
    reply, _ = await ask(chunks_of("gemini_prompt_blocked"))

    assert reply.refusal == reply.text == "The provider blocked the prompt (safety)."


async def test_a_call_that_gemini_could_not_read_is_asked_for_again(sleeps: Any) -> None:
    malformed = chunks_of("gemini_malformed_function_call")
    retry = RetryPolicy(attempts=2, sleep=sleeps[1])

    reply, _ = await ask(malformed, chunks_of("gemini_max_tokens"), retry=retry)

    assert reply.text
    with pytest.raises(ModelError, match="malformed_function_call"):
        await ask(malformed, malformed, retry=retry)


WITHOUT_CLIENT = "langchain-google-genai is not part of the development environment"


@pytest.mark.may_skip(WITHOUT_CLIENT)
@pytest.mark.parametrize(
    ("transcript", "text", "calls", "usage"),
    [
        ("gemini_text_thoughts_cumulative_usage", "Nine planets? Eight.", [], Usage(30, 23, 53, 10, 16)),
        ("gemini_max_tokens", '{"name": "Ana", "items": ["a", "b"', [], Usage(30, 16, 46, 0)),
        ("gemini_prompt_blocked", "The provider blocked the prompt (safety).", [], Usage(12, 0, 12, 0)),
        ("gemini_parallel_calls_with_ids", "", ["Oslo", "Rome"], Usage(50, 20, 70, 0)),
        ("gemini_parallel_calls_no_ids", "", ["Oslo", "Rome"], Usage(50, 20, 70, 0)),
    ],
)
async def test_the_real_client_gives_the_same(
    provider: Any, transcript: str, text: str, calls: list[str], usage: Usage
) -> None:
    pytest.importorskip("langchain_google_genai")
    from graphwright.models import as_model

    async def emit(_: Any) -> None: ...

    provider.stream(transcript)
    model = as_model("google:gemini-x", base_url=provider.url, api_key="k")
    reply = await call_model(model, ModelRequest(messages=[HumanMessage("x")]), emit=emit)

    assert reply.text == text
    assert [call.args["city"] for call in reply.calls] == calls
    assert reply.usage == usage


@pytest.mark.may_skip(WITHOUT_CLIENT)
async def test_the_real_client_is_wrapped_with_its_attempts_told_right() -> None:
    google = pytest.importorskip("langchain_google_genai")
    from graphwright.models import LangChainModel, as_model

    made = as_model("google:gemini-x", api_key="k")
    assert isinstance(made, LangChainModel)
    assert (made.model.max_retries, made.own_retries) == (1, False)  # type: ignore[attr-defined]
    assert LangChainModel(google.ChatGoogleGenerativeAI(model="gemini-x", api_key="k")).own_retries
