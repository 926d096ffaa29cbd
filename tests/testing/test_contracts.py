"""The contracts: good implementations pass, and each kind of bad one fails for its own reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from graphwright.exceptions import ToolArgumentError
from graphwright.models.base import ChatModel, ModelCapabilities, ModelRequest
from graphwright.testing import (
    EchoToolsModel,
    ScriptedModel,
    calls,
    calls_many,
    malformed,
    model_contract,
    says,
    tool_contract,
)
from graphwright.tools.base import Tool
from graphwright.types import ToolCall, ToolSpec

NO_STREAM = ModelCapabilities(streaming=False)


def add_or_say(messages: list[BaseMessage]) -> Any:
    return calls("add", a=2, b=3) if "Add" in str(messages[-1].content) else says("Hello there")


async def test_a_scripted_model_keeps_the_contract() -> None:
    await model_contract(lambda: ScriptedModel.answering(add_or_say))
    await model_contract(lambda: ScriptedModel.answering(add_or_say, stream_as="strings"))
    await model_contract(lambda: ScriptedModel(["Hello"], capabilities=ModelCapabilities(tools=False)))


async def test_a_model_that_calls_every_tool_keeps_the_contract() -> None:
    await model_contract(EchoToolsModel)


class Odd(ScriptedModel):
    """A scripted model with one fault in its stream or its answer."""

    def __init__(self, fault: str, **options: Any) -> None:
        super().__init__(strict=False, **options)
        self._answer = add_or_say
        self.fault = fault

    async def complete(self, request: ModelRequest) -> AIMessage:
        if self.fault == "mutates":
            request.messages[0].content = "changed"
        if self.fault == "swallows":
            try:
                await asyncio.Event().wait() if self._asked_late() else None
            except asyncio.CancelledError:
                raise ValueError("broken") from None
        answer = await super().complete(request)
        return AIMessageChunk(answer.content) if self.fault == "chunk" else answer  # type: ignore[return-value]

    def _asked_late(self) -> bool:
        return MADE["swallows"] >= 4

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        if self.fault == "leaks":
            LEAKED.append(asyncio.create_task(asyncio.Event().wait()))
        async for piece in super().stream(request):
            if self.fault == "usage twice" and isinstance(piece, AIMessageChunk) and piece.usage_metadata:
                yield piece
            if not (self.fault == "no usage" and isinstance(piece, AIMessageChunk) and piece.usage_metadata):
                yield piece
        if self.fault == "more text":
            yield "and more"


MADE: dict[str, int] = {}
LEAKED: list[asyncio.Task[Any]] = []


def odd(fault: str) -> Callable[[], ChatModel]:
    MADE[fault] = 0

    def make() -> ChatModel:
        MADE[fault] += 1
        return Odd(fault)

    return make


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: object(), "has no name, capabilities"),
        (lambda: ScriptedModel(["x"], name=""), "its name is ''"),
        (lambda: ScriptedModel([""]), "with no text"),
        (lambda: ScriptedModel.answering(lambda m: "never a call", capabilities=NO_STREAM), "called no tool"),
        (
            lambda: ScriptedModel.answering(
                lambda m: says("hi") if "Say" in str(m[0].content) else malformed("add", "{"), capabilities=NO_STREAM
            ),
            "do not parse",
        ),
        (
            lambda: ScriptedModel.answering(
                lambda m: says("hi") if "Say" in str(m[0].content) else calls("other"), capabilities=NO_STREAM
            ),
            "called 'other', which it was not offered",
        ),
        (
            lambda: ScriptedModel.answering(
                lambda m: (
                    says("hi")
                    if "Say" in str(m[0].content)
                    else calls_many(*[_named("add", "same"), _named("add", "same")])
                ),
                capabilities=NO_STREAM,
            ),
            "share an id",
        ),
        (odd("mutates"), r"changed the messages"),
        (odd("chunk"), "not an AIMessage"),
        (odd("usage twice"), "adds up to"),
        (odd("no usage"), "stream\\(\\) reports the usage None"),
        (odd("more text"), "stream\\(\\) said"),
        (odd("swallows"), "raised ValueError\\('broken'\\) when it was cancelled"),
        (odd("leaks"), "left tasks behind"),
    ],
)
async def test_a_model_that_breaks_a_rule_fails_with_that_rule(make: Callable[[], Any], reason: str) -> None:
    try:
        with pytest.raises(AssertionError, match=reason):
            await model_contract(make)
    finally:
        for task in LEAKED:
            task.cancel()
        await asyncio.gather(*LEAKED, return_exceptions=True)
        LEAKED.clear()


async def test_a_model_that_is_not_deterministic_may_stream_other_words() -> None:
    await model_contract(odd("more text"), deterministic=False)


def _named(name: str, call_id: str) -> Any:
    from graphwright.testing import call

    return call(name).with_id(call_id)


class Greet(Tool):
    """A good tool, and with `fault` a bad one."""

    def __init__(self, fault: str = "") -> None:
        kind = "string" if fault == "no object" else "object"
        properties = {"who": {"type": "string"}}
        self.spec = ToolSpec(name="greet", parameters={"type": kind, "properties": properties, "required": ["who"]})
        self.fault = fault
        self.blocking = fault == "blocking"
        self.greeted: list[str] = []

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        if "who" not in args and self.fault != "accepts all":
            raise ToolArgumentError("greet", ["it is missing" if self.fault == "vague" else "who: it is missing"])
        if self.fault == "mutates":
            args["more"] = 1
        return args

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        return self._greet(args)

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        return self._greet(args)

    def _greet(self, args: dict[str, Any]) -> str:
        if self.fault == "fails":
            raise OSError("no voice")
        self.greeted.append(args["who"])
        return f"Hello {args['who']}"


@pytest.mark.parametrize("fault", ["", "blocking"])
@pytest.mark.parametrize("args", [None, {"who": "text"}])
async def test_a_tool_keeps_the_contract_and_is_called_three_times(fault: str, args: dict[str, Any] | None) -> None:
    tool = Greet(fault)

    await tool_contract(lambda: tool, args=args)

    assert tool.greeted == ["text"] * 3


@pytest.mark.parametrize(
    ("fault", "error", "reason"),
    [
        ("no object", AssertionError, "type of its parameters is 'string'"),
        ("mutates", AssertionError, "changed the arguments"),
        ("accepts all", AssertionError, "without 'who', which is required"),
        ("vague", AssertionError, "no problem names 'who'"),
        ("fails", OSError, "no voice"),
    ],
)
async def test_a_tool_that_breaks_a_rule_fails_with_that_rule(fault: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        await tool_contract(lambda: Greet(fault), args={"who": "you"})
