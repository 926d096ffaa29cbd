"""What every model and every tool has to do, as tests that an implementation of your own can run.

Each contract is a coroutine that returns when all is well, and raises an `AssertionError` that names the broken rule.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from graphwright.exceptions import ToolArgumentError
from graphwright.messages import message_to_dict, text_of
from graphwright.models.base import ChatModel, ModelCapabilities, ModelRequest, StreamingChatModel
from graphwright.testing.examples import example_of
from graphwright.tools.base import Tool
from graphwright.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk

__all__ = ["model_contract", "tool_contract"]

_PATIENCE = 10.0
"""Seconds after which something that should have ended counts as hanging."""

_ADD = ToolSpec(
    name="add",
    description="Add two whole numbers and return the sum.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


async def model_contract(
    make_model: Callable[[], ChatModel],
    *,
    question: str = "Say hello.",
    tool_question: str = "Add 2 and 3 with the tool.",
    deterministic: bool = True,
) -> None:
    """Check a model: it answers, streams the same answer, counts usage once, writes calls well, and can be cancelled.

    `make_model` gives a fresh model for each check; asked `tool_question` with a tool named `add`, it has to call it
    (unless its capabilities say that it takes no tools). With `deterministic=False` a streamed answer may differ in
    its words, as that of a real model does.

    Raises:
        AssertionError: the model breaks a rule; the message says which.
    """
    model = make_model()
    _require(isinstance(model, ChatModel), f"{model!r} has no name, capabilities and complete()")
    _require(isinstance(model.name, str) and bool(model.name), f"its name is {model.name!r} and not a word")
    _require(isinstance(model.capabilities, ModelCapabilities), "its capabilities are no ModelCapabilities")
    answer = await _answers(model, question)
    if model.capabilities.streaming:
        await _streams_the_same(make_model(), question, answer, deterministic=deterministic)
    if model.capabilities.tools:
        await _writes_calls_well(make_model(), tool_question)
    await _can_be_cancelled(make_model, question)


async def tool_contract(make_tool: Callable[[], Tool], *, args: Mapping[str, Any] | None = None) -> None:
    """Check a tool: its schema, the validation of arguments, and that calls side by side do not disturb each other.

    `args` are arguments that the tool accepts; without them the smallest that fit its schema are used. The tool is
    called three times.

    Raises:
        AssertionError: the tool breaks a rule; the message says which.
    """
    tool = make_tool()
    spec = tool.spec
    _require(isinstance(spec, ToolSpec) and bool(spec.name), f"its spec is {spec!r}")
    _require(tool.name == spec.name, f"its name is {tool.name!r} and its spec says {spec.name!r}")
    _require(spec.parameters.get("type") == "object", f"the type of its parameters is {spec.parameters.get('type')!r}")
    json.dumps(spec.parameters, allow_nan=False)
    given = dict(args) if args is not None else cast("dict[str, Any]", example_of(spec.parameters))
    before = copy.deepcopy(given)
    valid = tool.validate(given)
    _require(isinstance(valid, dict), f"validate() returned {valid!r} and not a dict")
    _require(given == before, "validate() changed the arguments that it was given")
    _refuses_missing_arguments(tool, given)
    await _run_tool(tool, tool.validate(copy.deepcopy(given)), "contract_1")
    await asyncio.gather(
        *(_run_tool(tool, tool.validate(copy.deepcopy(given)), f"contract_{number}") for number in (2, 3))
    )


async def _answers(model: ChatModel, question: str) -> AIMessage:
    request = _request(question)
    before = [message_to_dict(message) for message in request.messages]
    answer: AIMessage = await _in_time(model.complete(request), "complete()")
    _check_reply(answer, "complete()")
    _require(bool(text_of(answer)), f"complete() answered {question!r} with no text")
    after = [message_to_dict(message) for message in request.messages]
    _require(before == after, "complete() changed the messages that it was given")
    return answer


async def _streams_the_same(model: ChatModel, question: str, answer: AIMessage, *, deterministic: bool) -> None:
    _require(isinstance(model, StreamingChatModel), "its capabilities say streaming and it has no stream()")
    pieces = await _in_time(_collect(cast(StreamingChatModel, model).stream(_request(question))), "stream()")
    text = "".join(text_of(piece) for piece in pieces)
    _require(bool(text), f"stream() answered {question!r} with no text")
    usage = _added_usage(pieces)
    _require(
        (usage is None) is (answer.usage_metadata is None),
        f"stream() reports the usage {usage} and complete() {answer.usage_metadata}",
    )
    if deterministic:
        _require(text == text_of(answer), f"stream() said {text!r} and complete() {text_of(answer)!r}")
        expected = answer.usage_metadata and {
            key: answer.usage_metadata[key] for key in ("input_tokens", "output_tokens")
        }
        _require(usage == expected, f"the usage of a stream adds up to {usage}; complete() reports {expected}")


async def _writes_calls_well(model: ChatModel, question: str) -> None:
    answer = await _in_time(model.complete(_request(question, _ADD)), "complete() with a tool")
    _check_reply(answer, "complete() with a tool")
    _require(not answer.invalid_tool_calls, f"it wrote calls that do not parse: {answer.invalid_tool_calls}")
    _require(bool(answer.tool_calls), f"it was asked {question!r} and called no tool")
    for call in answer.tool_calls:
        _require(call["name"] == _ADD.name, f"it called {call['name']!r}, which it was not offered")
        _require(isinstance(call["args"], dict), f"the arguments {call['args']!r} of its call are no object")
    ids = [call["id"] for call in answer.tool_calls if call["id"]]
    _require(len(set(ids)) == len(ids), f"its calls share an id: {ids}")


async def _can_be_cancelled(make_model: Callable[[], ChatModel], question: str) -> None:
    before = asyncio.all_tasks()
    model = make_model()
    await _cancel(model.complete(_request(question)), "complete()")
    if model.capabilities.streaming:
        streaming = cast(StreamingChatModel, make_model())
        await _cancel(_collect(streaming.stream(_request(question))), "stream()")
        await _in_time(_read_one(cast(StreamingChatModel, make_model()).stream(_request(question))), "a closed stream")
    left = [task for task in asyncio.all_tasks() - before if not task.done()]
    _require(not left, f"it left tasks behind when it was cancelled: {left}")


async def _cancel(work: Awaitable[Any], what: str) -> None:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=_PATIENCE)
    _require(bool(done), f"{what} did not end within {_PATIENCE:.0f} s after it was cancelled")
    if not task.cancelled():
        error = task.exception()
        _require(error is None, f"{what} raised {error!r} when it was cancelled, and not CancelledError")


async def _read_one(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        break
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


async def _collect(stream: AsyncIterator[AIMessageChunk | str]) -> list[AIMessageChunk | str]:
    return [piece async for piece in stream]


def _added_usage(pieces: list[AIMessageChunk | str]) -> dict[str, int] | None:
    reported = [piece.usage_metadata for piece in pieces if not isinstance(piece, str) and piece.usage_metadata]
    if not reported:
        return None
    return {
        "input_tokens": sum(usage["input_tokens"] for usage in reported),
        "output_tokens": sum(usage["output_tokens"] for usage in reported),
    }


def _check_reply(answer: Any, what: str) -> None:
    from langchain_core.messages import AIMessage, AIMessageChunk

    fine = isinstance(answer, AIMessage) and not isinstance(answer, AIMessageChunk)
    _require(fine, f"{what} returned {answer!r} and not an AIMessage")


def _refuses_missing_arguments(tool: Tool, given: dict[str, Any]) -> None:
    for name in tool.spec.parameters.get("required", ()):
        rest = {key: value for key, value in given.items() if key != name}
        try:
            tool.validate(rest)
        except ToolArgumentError as error:
            _require(any(name in problem for problem in error.problems), f"no problem names {name!r}: {error.problems}")
        else:
            raise AssertionError(f"validate() accepts arguments without {name!r}, which is required")


async def _run_tool(tool: Tool, args: dict[str, Any], call_id: str) -> Any:
    call = ToolCall(call_id, tool.name, args)
    if tool.blocking:
        return await _in_time(asyncio.to_thread(tool.run_blocking, args, call, None), "run_blocking()")
    return await _in_time(tool.run(args, call, None), "run()")


def _request(question: str, *tools: ToolSpec) -> ModelRequest:
    from langchain_core.messages import HumanMessage

    choice = "required" if tools else "auto"
    return ModelRequest(messages=[HumanMessage(question)], tools=tools, tool_choice=choice)


async def _in_time(work: Awaitable[Any], what: str) -> Any:
    try:
        return await asyncio.wait_for(work, _PATIENCE)
    except TimeoutError:
        raise AssertionError(f"{what} did not end within {_PATIENCE:.0f} s") from None


def _require(fine: bool, otherwise: str) -> None:
    if not fine:
        raise AssertionError(otherwise)
