from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from graphwright.exceptions import ConfigurationError, MissingExtraError, ModelError
from graphwright.models import as_model, call_model, registry
from graphwright.models.base import ModelRequest
from graphwright.orchestrator.duck_model import DuckModel
from graphwright.orchestrator.interfaces import ILanguageModel
from graphwright.orchestrator.language_models import (
    AnthropicLanguageModel,
    BedrockLanguageModel,
    DeepSeekLanguageModel,
    GeminiLanguageModel,
    LanguageModel,
    OpenAILanguageModel,
    as_language_model,
)
from graphwright.testing import ScriptedModel, says
from graphwright.types import ToolSpec

ALL = [
    (OpenAILanguageModel, "openai:gpt-4o-mini"),
    (AnthropicLanguageModel, "anthropic:claude-haiku-4-5"),
    (GeminiLanguageModel, "google:gemini-3-flash-preview"),
    (DeepSeekLanguageModel, "deepseek:deepseek-chat"),
    (BedrockLanguageModel, "bedrock:amazon.nova-micro-v1:0"),
]


class Server(ThreadingHTTPServer):
    """Speaks as much of OpenAI's protocol as a chat model asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.failures = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append({**body, "key": self.headers["Authorization"]})
        if self.server.failures:
            self.server.failures -= 1
            self.answer(429, "application/json", b'{"error": {"message": "slow down"}}', {"Retry-After": "0"})
        elif body.get("stream"):
            pieces = [{"role": "assistant", "content": "Hel"}, {"content": "lo"}, {}]
            chunks = [{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"} for _ in pieces]
            lines = [
                {**chunk, "choices": [{"index": 0, "delta": piece, "finish_reason": None if piece else "stop"}]}
                for chunk, piece in zip(chunks, pieces, strict=True)
            ]
            text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
            self.answer(200, "text/event-stream", text.encode())
        else:
            message = {"role": "assistant", "content": "Hello"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            self.answer(200, "application/json", json.dumps(reply).encode())

    def answer(self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the registry is asked for, in place of the providers' packages."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def record(model: Any, **options: Any) -> Any:
        calls.append((model, options))
        return ScriptedModel([says("hi")])

    monkeypatch.setattr("graphwright.orchestrator.language_models.as_model", record)
    return calls


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_each_class_is_made_with_a_key_alone_and_asks_for_its_provider(
    kind: Any, name: str, built: list[tuple[str, dict[str, Any]]]
) -> None:
    model = kind("the-key", base_url="http://127.0.0.1:1", timeout=3, max_retries=1, extra_option="x")

    assert isinstance(model, ILanguageModel)
    assert (model.name, built) == (name, [])
    assert "the-key" not in repr(model)

    assert model.chat_model is model.chat_model is model.model
    ((asked, options),) = built
    assert asked == name
    assert (
        options.items()
        >= {
            "api_key": "the-key",
            "base_url": "http://127.0.0.1:1",
            "timeout": 3,
            "max_retries": 1,
            "extra_option": "x",
            "temperature": 0.7,
        }.items()
    )


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_without_the_package_only_the_use_fails_and_names_the_extra(
    kind: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "is_available", lambda provider: False)
    model = kind("key")

    with pytest.raises(MissingExtraError, match=rf"graphwright\[{name.partition(':')[0]}\]"):
        model.model  # noqa: B018
    with pytest.raises(MissingExtraError):
        as_language_model(model)


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        (OpenAILanguageModel("k", "gpt-4o"), 0.7),
        (OpenAILanguageModel("k", "gpt-4.1"), 0.7),
        (OpenAILanguageModel("k", "o1"), None),
        (OpenAILanguageModel("k", "o3-mini"), None),
        (OpenAILanguageModel("k", "gpt-5"), None),
        (OpenAILanguageModel("k", "gpt-5.1-mini"), None),
        (OpenAILanguageModel("k", "ft:gpt-5:me"), None),
        (OpenAILanguageModel("k", "gpt-4o", None), None),
        (OpenAILanguageModel("k", "gpt-4o", 0.0), 0.0),
        (AnthropicLanguageModel("k"), 0.7),
        (AnthropicLanguageModel("k", "claude-opus-4-20250514"), 0.7),
        (AnthropicLanguageModel("k", "claude-opus-4-6"), 0.7),
        (AnthropicLanguageModel("k", "claude-opus-4-7"), None),
        (AnthropicLanguageModel("k", "claude-opus-4-8-20260101"), None),
        (AnthropicLanguageModel("k", "claude-sonnet-4-5-20250929"), 0.7),
        (AnthropicLanguageModel("k", "claude-sonnet-5"), None),
        (AnthropicLanguageModel("k", "claude-opus-5-5"), None),
        (DeepSeekLanguageModel("k", "deepseek-reasoner"), None),
        (BedrockLanguageModel("k", "us-east-1", "us.anthropic.claude-opus-4-7-v1:0"), None),
        (BedrockLanguageModel("k", "us-east-1", "us.deepseek.r1-v1:0"), None),
        (BedrockLanguageModel("k", "us-east-1", "anthropic.claude-haiku-4-5-20251001-v1:0"), 0.7),
        (GeminiLanguageModel("k", "gemini-3-pro"), 0.7),
    ],
)
def test_a_temperature_is_left_out_for_models_that_refuse_it(
    model: LanguageModel, sent: float | None, built: list[tuple[str, dict[str, Any]]]
) -> None:
    assert model.chat_model

    assert built[0][1].get("temperature") == sent


def test_claude_thinks_with_a_budget_on_top_of_its_answer(built: list[tuple[str, dict[str, Any]]]) -> None:
    assert AnthropicLanguageModel("k", thinking_budget=2000).chat_model
    assert AnthropicLanguageModel("k", "claude-opus-4-7", thinking_budget=2000).chat_model
    assert AnthropicLanguageModel("k").chat_model

    enabled, adaptive, off = (options for _, options in built)
    assert enabled == {
        "api_key": "k",
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "max_tokens": 6096,
    }
    assert adaptive == {"api_key": "k", "thinking": {"type": "adaptive", "display": "summarized"}, "max_tokens": 4096}
    assert off == {"api_key": "k", "temperature": 0.7, "max_tokens": 4096}
    with pytest.raises(ConfigurationError, match="thinking_budget is 100; give 1024 tokens or more"):
        AnthropicLanguageModel("k", thinking_budget=100)


def test_gemini_shows_its_thinking_only_where_it_can(
    built: list[tuple[str, dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    assert GeminiLanguageModel("k", "gemini-2.5-pro").chat_model
    assert GeminiLanguageModel("k", "gemini-2.5-flash", thinking_budget=0).chat_model
    assert GeminiLanguageModel("k", thinking_budget=100).chat_model

    asked = [{key: options.get(key) for key in ("thinking_budget", "include_thoughts")} for _, options in built]
    assert asked == [
        {"thinking_budget": 8192, "include_thoughts": True},
        {"thinking_budget": 0, "include_thoughts": False},
        {"thinking_budget": None, "include_thoughts": None},
    ]
    assert "thinking_budget=100 is ignored" in caplog.text


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        (OpenAILanguageModel("k", "gpt-5"), False),
        (AnthropicLanguageModel("k"), True),
        (AnthropicLanguageModel("k", "claude-3-5-haiku-latest"), False),
        (GeminiLanguageModel("k"), False),
        (GeminiLanguageModel("k", "gemini-2.5-pro"), True),
        (DeepSeekLanguageModel("k"), False),
        (DeepSeekLanguageModel("k", "deepseek-reasoner"), True),
        (BedrockLanguageModel("k", "us-east-1"), False),
    ],
)
def test_a_model_says_whether_it_shows_its_thinking(model: LanguageModel, thinks: bool) -> None:
    assert model.supports_thinking is thinks


def test_the_region_of_bedrock_has_two_names_and_the_key_stays_out_of_the_environment(
    built: list[tuple[str, dict[str, Any]]],
) -> None:
    before = dict(os.environ)

    assert BedrockLanguageModel("k", "eu-west-1").chat_model
    assert BedrockLanguageModel("k", region="eu-west-1").chat_model

    assert [options["region"] for _, options in built] == ["eu-west-1", "eu-west-1"]
    assert dict(os.environ) == before
    with pytest.raises(ConfigurationError, match="region is 'a' and region_name 'b'; give one of them"):
        BedrockLanguageModel("k", "b", region="a")


@pytest.mark.parametrize("kind", [kind for kind, _ in ALL])
@pytest.mark.parametrize("name", ["", " ", None, 4])
def test_a_model_needs_a_name(kind: Any, name: Any) -> None:
    with pytest.raises(ConfigurationError, match="model_name is"):
        kind("k", model_name=name)


def test_an_openai_model_answers_streams_and_is_asked_again(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    model = OpenAILanguageModel("secret", base_url=server.url, timeout=10, top_p=0.5)
    server.failures = 1

    assert model.predict("Hi") == "Hello"
    assert model.invoke([("user", "Hi")]).content == "Hello"
    assert list(model.stream_response("Hi")) == ["Hel", "lo"]

    assert len(server.bodies) == 4
    for body in server.bodies:
        assert body["messages"] == [{"role": "user", "content": "Hi"}]
        assert (body["model"], body["temperature"], body["top_p"]) == ("gpt-4o-mini", 0.7, 0.5)
        assert body["key"] == "Bearer secret"


async def test_a_sync_call_works_inside_a_running_loop(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    loop = asyncio.get_running_loop()

    assert OpenAILanguageModel("k", base_url=server.url).predict("Hi") == "Hello"
    assert asyncio.get_running_loop() is loop


def test_a_model_of_claude_is_built_as_it_is_asked_for() -> None:
    pytest.importorskip("langchain_anthropic")

    plain = AnthropicLanguageModel("k", timeout=3, base_url="http://127.0.0.1:1").model
    thinking = AnthropicLanguageModel("k", "claude-sonnet-4-5", thinking_budget=2000).model

    assert (plain.model, plain.temperature, plain.max_tokens) == ("claude-haiku-4-5", 0.7, 4096)
    assert (plain.default_request_timeout, plain.anthropic_api_url) == (3, "http://127.0.0.1:1")
    assert thinking.thinking == {"type": "enabled", "budget_tokens": 2000}
    assert thinking.temperature is None


def test_whatever_is_a_model_becomes_one(built: list[tuple[str, dict[str, Any]]]) -> None:
    class Wrapper:
        def __init__(self, model: Any) -> None:
            self.model = model

    chat, scripted, wrapped = FakeListChatModel(responses=["a"]), ScriptedModel([says("a")]), OpenAILanguageModel("k")

    assert as_language_model("openai:gpt-4o") == "openai:gpt-4o"
    assert as_language_model(chat) is chat
    assert as_language_model(scripted) is scripted
    assert as_language_model(wrapped) is wrapped.chat_model
    assert as_language_model(Wrapper(chat)) is chat
    assert as_language_model(Wrapper(scripted)) is scripted
    assert as_language_model(Wrapper(wrapped)) is wrapped.chat_model
    adapted = as_model(chat)
    assert as_language_model(adapted) is as_language_model(Wrapper(adapted)) is adapted


@pytest.mark.parametrize("value", [None, 5, object(), OpenAILanguageModel, FakeListChatModel, {"model": "x"}])
def test_what_is_no_model_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no language model; give OpenAILanguageModel"):
        as_language_model(value)


class Duck:
    """Only looks like a chat model; its `model` is a name."""

    model = "duck-1"

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces
        self.bound: list[tuple[Any, Any]] = []
        self.closed = False

    def bind_tools(self, tools: list[Any], **options: Any) -> Duck:
        self.bound.append((tools, options))
        return self

    async def ainvoke(self, messages: list[Any]) -> Any:
        return AIMessage(content=f"{len(messages)} read")

    async def astream(self, messages: list[Any]) -> Any:
        try:
            for piece in self.pieces:
                yield piece
        finally:
            self.closed = True


ASKED = ModelRequest(messages=[HumanMessage("Hi")])
SEARCH = ToolSpec(name="search", description="Search.")


async def test_an_object_that_looks_like_a_model_is_asked_like_one() -> None:
    duck = Duck()
    model = as_language_model(duck)

    assert as_model(model) is model
    assert (model.name, model.capabilities.tools, model.capabilities.streaming) == ("duck-1", True, True)
    assert (await call_model(model, ASKED)).text == "1 read"
    assert duck.bound == []

    await model.complete(ModelRequest(messages=ASKED.messages, tools=[SEARCH], tool_choice="required"))
    await model.complete(ModelRequest(messages=ASKED.messages, tools=[SEARCH], tool_choice="none"))
    ((tools, options),) = duck.bound
    assert [tool["function"]["name"] for tool in tools] == ["search"]
    assert options == {"tool_choice": "any"}


async def test_pieces_of_every_kind_are_streamed_and_the_stream_is_closed() -> None:
    call = {"name": "search", "args": {"q": "ü"}, "id": "c1", "type": "tool_call"}
    duck = Duck("Hel", AIMessageChunk(content="lo"), AIMessage(content="", tool_calls=[call]))
    model = DuckModel(duck)

    pieces = [piece async for piece in model.stream(ASKED)]

    assert pieces[0] == "Hel"
    assert pieces[1].content == "lo"
    assert pieces[2].tool_calls == [call]
    assert duck.closed

    duck.closed = False
    stream = model.stream(ASKED)
    assert await anext(stream) == "Hel"
    await stream.aclose()
    assert duck.closed


async def test_a_stand_in_of_a_test_is_enough_of_a_model() -> None:
    inner = MagicMock()
    inner.bind_tools.return_value = inner
    inner.ainvoke = AsyncMock(return_value=MagicMock(content="hello", tool_calls=[]))
    llm = MagicMock(model=inner)

    model = as_language_model(llm)
    reply = await call_model(model, ASKED)
    pieces = [piece async for piece in model.stream(ASKED)]

    assert isinstance(model, DuckModel)
    assert reply.text == "hello"
    assert [piece.content for piece in pieces] == ["hello"], "a stream without a piece is followed by ainvoke"


async def test_an_answer_that_is_no_message_is_an_error_of_the_model() -> None:
    duck = Duck()
    duck.ainvoke = AsyncMock(return_value=7)  # type: ignore[method-assign]

    with pytest.raises(ModelError, match="model 'duck-1' answered with a int, which is no message and no text"):
        await DuckModel(duck).complete(ASKED)
