"""LangChain's models and runnables behind the port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.models import (
    LangChainModel,
    ModelRequest,
    RetryPolicy,
    RunnableModel,
    as_model,
    call_model,
    supports_tools,
)
from graphwright.run_events import TextDelta
from graphwright.testing import RealRequestForbidden
from graphwright.types import ToolSpec

TOOLS = [ToolSpec(name="f", description="does f", parameters={"type": "object", "properties": {}})]


def question(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[HumanMessage("hello")], **fields)


async def texts(model: Any, **fields: Any) -> list[str]:
    shown: list[str] = []

    async def emit(event: Any) -> None:
        if type(event) is TextDelta:
            shown.append(event.text)

    await call_model(model, question(**fields), emit=emit)
    return shown


class Blocking(BaseChatModel):
    """A model with nothing but blocking methods."""

    temperature: float = 1.0
    max_output_tokens: int | None = None
    seen: list[Any] = Field(default_factory=list)
    asked: int = 0
    begun: Any = None
    gate: Any = None
    closed: Any = None

    @property
    def _llm_type(self) -> str:
        return "blocking"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.asked += 1
        settings = {**kwargs, "stop": stop} if stop else kwargs
        self.seen.append((threading.current_thread(), self.temperature, self.max_output_tokens, settings))
        if self.gate is not None:
            self.gate.wait(5)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"answer {self.asked}"))])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        try:
            for word in ("one ", "two"):
                self.seen.append((threading.current_thread(), self.temperature, self.max_output_tokens, kwargs))
                if self.begun is not None:
                    self.begun.set()
                if self.gate is not None:
                    self.gate.wait(5)
                yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        finally:
            if self.closed is not None:
                self.closed.set()

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools, **kwargs)


class Awaiting(BaseChatModel):
    """A model with async methods that raises what it is told to."""

    errors: list[Any] = Field(default_factory=list)
    max_retries: int | None = 0

    @property
    def _llm_type(self) -> str:
        return "awaiting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise AssertionError("the blocking method was called")

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if self.errors:
            raise self.errors.pop(0)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("fine"))])


class Streaming(Awaiting):
    closed: list[str] = Field(default_factory=list)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        try:
            for word in ("one ", "two ", "three"):
                yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        finally:
            await asyncio.sleep(0)
            self.closed.append("closed")


async def test_a_blocking_model_runs_in_a_thread_of_ours_and_keeps_its_state() -> None:
    model = Blocking()
    adapter = LangChainModel(model)

    first = await call_model(adapter, question())
    second = await call_model(adapter, question())

    assert (first.text, second.text, model.asked) == ("answer 1", "answer 2", 2)
    threads = {entry[0] for entry in model.seen}
    assert threading.main_thread() not in threads
    assert all(not thread.name.startswith(("asyncio", "ThreadPoolExecutor")) for thread in threads)
    assert type(model) is Blocking


@pytest.mark.parametrize("stream", [True, False])
async def test_a_blocking_model_leaves_the_loop_free(stream: bool) -> None:
    gate = threading.Event()
    model = LangChainModel(Blocking(gate=gate))
    task = asyncio.create_task(texts(model) if stream else call_model(model, question()))

    ticks = 0
    started = time.monotonic()
    while time.monotonic() - started < 0.05:
        await asyncio.sleep(0.001)
        ticks += 1
    gate.set()
    await task

    assert ticks > 5


async def test_a_blocking_stream_arrives_piece_by_piece_from_a_thread() -> None:
    model = Blocking()

    assert await texts(LangChainModel(model)) == ["one ", "two"]
    assert threading.main_thread() not in {entry[0] for entry in model.seen}


async def test_leaving_a_blocking_stream_ends_it_as_soon_as_its_thread_comes_back() -> None:
    begun, gate, closed = threading.Event(), threading.Event(), threading.Event()
    model = Blocking(begun=begun, gate=gate, closed=closed)
    task = asyncio.create_task(texts(LangChainModel(model)))
    assert await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not closed.is_set()

    gate.set()

    assert await asyncio.to_thread(closed.wait, 5)
    assert len(model.seen) == 1


@pytest.mark.parametrize(
    "model",
    [
        FakeListChatModel(responses=["a b", "c"]),
        GenericFakeChatModel(messages=iter([AIMessage("a b"), AIMessage("c")])),
        FakeMessagesListChatModel(responses=[AIMessage("a b"), AIMessage("c")]),
    ],
    ids=lambda model: type(model).__name__,
)
async def test_langchains_own_fakes_answer_one_after_the_other(model: Any) -> None:
    adapter = as_model(model)

    assert "".join(await texts(adapter)) == "a b"
    assert (await call_model(adapter, question())).text == "c"


async def test_closing_a_stream_closes_the_providers_and_waits_for_it() -> None:
    model = Streaming()
    stream = LangChainModel(model).stream(question())
    async for chunk in stream:
        assert chunk.content == "one "
        break
    assert model.closed == []

    await stream.aclose()  # type: ignore[attr-defined]

    assert model.closed == ["closed"]


async def test_a_cancelled_client_is_tried_again(sleeps: Any) -> None:
    model = LangChainModel(Awaiting(errors=[asyncio.CancelledError()]))

    reply = await call_model(model, question(), retry=RetryPolicy(sleep=sleeps[1]))

    assert reply.text == "fine"
    assert len(sleeps[0]) == 1


@pytest.mark.parametrize(("retries", "own"), [(0, False), (2, True), (None, True)])
async def test_the_clients_own_retries_are_not_multiplied(sleeps: Any, retries: int | None, own: bool) -> None:
    model = Awaiting(errors=[ConnectionError("gone")] * 10, max_retries=retries)

    with pytest.raises(ModelError):
        await call_model(as_model(model), question(), retry=RetryPolicy(attempts=3, sleep=sleeps[1]))

    assert 10 - len(model.errors) == (1 if own else 3)


class Handler(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []
        self.tags: list[Any] = []

    async def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.seen.append("start")
        self.tags.append(kwargs.get("tags"))

    async def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        if token:
            self.seen.append(token)

    async def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.seen.append("end")


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: model.bind(stop=["x"])], ids=["model", "binding"])
async def test_callbacks_see_one_call_once(wrap: Any) -> None:
    handler = Handler()
    config = {"callbacks": [handler], "tags": ["mine"], "run_id": "not-passed-on", "configurable": {"graphwright": 1}}

    await texts(as_model(wrap(Streaming())), config=config)

    assert handler.seen == ["start", "one ", "two ", "three", "end"]
    assert handler.tags == [["mine"]]


async def test_settings_reach_the_model_only_when_they_are_given() -> None:
    model = Blocking()
    adapter = LangChainModel(model)

    await call_model(adapter, question())
    await call_model(adapter, question(temperature=0.0, max_tokens=9))
    await call_model(adapter, question())

    assert [entry[1:3] for entry in model.seen] == [(1.0, None), (0.0, 9), (1.0, None)]
    assert (model.temperature, model.max_output_tokens) == (1.0, None)


async def test_a_setting_that_the_class_does_not_know_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    await call_model(LangChainModel(Awaiting()), question(max_tokens=9))

    assert "max_tokens=9 is ignored" in caplog.text


async def test_tools_are_bound_once_for_the_same_specs() -> None:
    bound: list[Any] = []

    class Counting(Blocking):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            bound.append((tools, kwargs))
            return super().bind_tools(tools, **kwargs)

    model = Counting()
    adapter = LangChainModel(model)
    for _ in range(3):
        await call_model(adapter, question(tools=TOOLS))
    await call_model(adapter, question(tools=TOOLS, tool_choice="required"))
    await call_model(adapter, question(tools=TOOLS, tool_choice="none"))

    assert [kwargs for _, kwargs in bound] == [{}, {"tool_choice": "any"}]
    assert bound[0][0][0]["function"] == {"name": "f", "description": "does f", "parameters": TOOLS[0].parameters}
    assert [sorted(entry[3]) for entry in model.seen] == [["tools"]] * 3 + [["tool_choice", "tools"], []]


async def test_bindings_are_kept_for_a_bounded_number_of_tool_lists() -> None:
    adapter = LangChainModel(Blocking())
    for _ in range(100):
        await call_model(adapter, question(tools=[ToolSpec(name="f")]))

    assert len(adapter._prepared) <= 32


async def test_a_model_without_tool_support_is_told_of_its_tools_in_words() -> None:
    class Choosing(Awaiting):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            told = str(messages[-1].content) + str(messages[0].content)
            text = '{"tool": "f", "arguments": {}}' if "JSON" in told else "plain"
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    model = as_model(Choosing())
    assert not supports_tools(Choosing())
    assert supports_tools(Blocking())
    assert model.capabilities.tools
    assert (await call_model(model, question())).text == "plain"
    reply = await call_model(model, question(tools=[ToolSpec(name="f")], tool_choice="required"))
    assert [(call.name, call.args) for call in reply.calls] == [("f", {})]


async def test_tools_for_an_adapter_of_a_model_without_tools_are_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match="'Awaiting' takes no tools"):
        await call_model(LangChainModel(Awaiting()), question(tools=TOOLS))


async def test_a_bound_model_keeps_what_was_bound_and_takes_tools() -> None:
    model = Blocking()
    adapter = as_model(model.bind(stop=["x"]))

    await call_model(adapter, question(tools=TOOLS))

    assert isinstance(adapter, RunnableModel)
    assert sorted(model.seen[0][3]) == ["stop", "tools"]
    assert model.seen[0][3]["stop"] == ["x"]
    assert adapter.capabilities.tools


async def test_a_model_with_fallbacks_answers_with_the_fallback_and_its_tools() -> None:
    class Failing(Blocking):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            raise ConnectionError("gone")

    backup = Blocking()
    adapter = as_model(Failing().with_fallbacks([backup]))

    reply = await call_model(adapter, question(tools=TOOLS, temperature=0.5))

    assert reply.text == "answer 1"
    assert backup.seen[0][1] == 0.5
    assert "tools" in backup.seen[0][3]


async def test_a_runnable_of_ones_own_answers_with_text_or_a_message() -> None:
    words = as_model(RunnableLambda(lambda messages: f"you said {messages[-1].content}"))
    message = as_model(RunnableLambda(lambda _: AIMessage("hi")))

    assert (await call_model(words, question())).text == "you said hello"
    assert "".join(await texts(words)) == "you said hello"
    assert (await call_model(message, question())).text == "hi"


async def test_a_chain_gets_the_messages_as_they_are_and_its_own_calls_count() -> None:
    seen: list[Any] = []

    def chain(messages: Any) -> AIMessage:
        seen.append(messages)
        return AIMessage("", tool_calls=[{"id": "x", "name": "f", "args": {}}])

    reply = await call_model(as_model(RunnableLambda(chain)), question(tools=[ToolSpec(name="f")]))
    assert [call.name for call in reply.calls] == ["f"]
    assert len(seen) == 1


async def test_a_runnable_that_answers_with_neither_is_a_clear_error() -> None:
    with pytest.raises(ModelError, match="no message and no text"):
        await call_model(as_model(RunnableLambda(lambda _: {"answer": 1})), question())


async def test_a_runnable_that_retries_is_not_retried_on_top() -> None:
    model = Awaiting(errors=[ConnectionError("gone")] * 9)
    retrying = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)

    with pytest.raises(ModelError):
        await call_model(as_model(retrying), question())

    assert len(model.errors) == 7


async def test_a_real_provider_is_not_asked_while_that_is_forbidden() -> None:
    from langchain_openai import ChatOpenAI

    far = ChatOpenAI(model="m", api_key="k", base_url="https://provider.invalid/v1")
    for model in (as_model(far), as_model(far.bind(stop=["x"])), as_model("openai:m", api_key="k")):
        with pytest.raises(RealRequestForbidden):
            await call_model(model, question())


async def test_the_messages_of_a_request_stay_as_they_were() -> None:
    messages = [HumanMessage([{"type": "text", "text": "hello"}])]
    before = [message.model_copy(deep=True) for message in messages]

    await call_model(LangChainModel(Blocking()), ModelRequest(messages=messages, tools=TOOLS))

    assert messages == before


def test_an_adapter_is_named_after_the_model() -> None:
    from langchain_openai import ChatOpenAI

    assert as_model(ChatOpenAI(model="gpt-x", api_key="k")).name == "gpt-x"
    assert as_model(Blocking()).name == "Blocking"
    assert as_model(Blocking().bind(stop=["x"])).name == "Blocking"
