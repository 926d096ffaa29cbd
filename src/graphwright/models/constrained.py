"""Give tools and structured output to a model that can only write text.

A turn with tools has two phases. First the model writes a small JSON object that can only be a tool call or
"answer", under a grammar where its runtime has one; then, when it chose to answer, it writes the answer as free text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from graphwright._internal.ids import new_call_id
from graphwright._internal.jsonio import dumps, find_json
from graphwright.exceptions import ConfigurationError, ModelError, OutputSchemaError
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.models.choice import Choice, ChoiceForm, ChosenCall, Unusable
from graphwright.models.grammar_schema import ANY_OBJECT, grammar_schema
from graphwright.models.plain_turns import Turn, field_lines, plain_turns, tool_lines
from graphwright.types import ToolSpec
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.messages.ai import UsageMetadata

__all__ = ["ConstrainedToolModel", "TextModel", "Written"]

CHOICE = 'Choose the tool that fits the user\'s message. Reply with JSON: {"tool": name, "arguments": {...}}'
NO_CHOICE = "{none}: No tool is needed."
ASK_CHOICE = (
    'Reply with one JSON object and nothing else: {{"tool": name, "arguments": {{...}}}}, '
    'or {{"tool": "{none}"}} to answer in words.'
)
ASK_CALL = 'Use a tool now. Reply with one JSON object and nothing else: {"tool": name, "arguments": {...}}.'
TOOLS = "You can use these tools:"
ANSWER = "Now answer in plain words, without JSON."
USE_RESULT = "Answer with this result."
FILL = "Reply with one JSON object and nothing else. Its fields are:\n{fields}"
FIT = "Reply with JSON and nothing else. It has to fit this JSON schema:\n{schema}"
FIX = "That cannot be used: {problem}. Write the JSON again, and nothing else."

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A text that a model wrote, and what it cost."""

    text: str

    usage: Usage | None = None

    cut_off: bool = False
    """The token limit stopped the model before it was done."""


class TextModel(Protocol):
    """A model that writes text after turns of the roles system, user and assistant.

    Of the request only `temperature`, `max_tokens` and `config` are meant for it.
    """

    @property
    def name(self) -> str:
        """A short name for logs and reports."""
        ...

    @property
    def forces_schema(self) -> bool:
        """True when a grammar keeps `generate_json` within the schema."""
        ...

    async def generate_json(self, turns: Sequence[Turn], schema: dict[str, Any], request: ModelRequest) -> Written:
        """Write JSON that fits `schema`, one that `grammar_schema` made."""
        ...

    def stream_text(self, turns: Sequence[Turn], request: ModelRequest) -> AsyncIterator[str | Written]:
        """Yield an answer in pieces, then the whole of it as `Written`."""
        ...


@dataclass(slots=True)
class _End:
    """The end of a turn: what its pieces of text do not say."""

    calls: list[ChosenCall]
    usage: Usage | None
    finish: str


class ConstrainedToolModel:
    """Make a `ChatModel` with tools and structured output out of a model that only writes text.

    Under a grammar one call is asked for at a time; without one, every call that the model writes counts. JSON that
    cannot be used is asked for once more, with the problem told. The arguments are those of the model: the tool
    layer validates them.
    """

    def __init__(self, inner: TextModel, *, tiny: bool = False) -> None:
        """Wrap `inner`.

        `tiny` helps a model that follows instructions badly: it is shown sample exchanges before it chooses, it
        hears nothing of tools when it answers, and a call that has its result since the last user message, made
        again with the same arguments, counts as the wish to answer, because such a model repeats itself for ever.
        """
        self._inner = inner
        self._tiny = tiny

    def __repr__(self) -> str:
        return f"ConstrainedToolModel({self._inner!r})"

    @property
    def model(self) -> TextModel:
        """The model inside."""
        return self._inner

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self._inner.name

    @property
    def capabilities(self) -> ModelCapabilities:
        """Tools, structured output and streaming."""
        return ModelCapabilities(tools=True, structured_output=True, streaming=True)

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer the request.

        Raises:
            ModelError: the model failed, or wrote no usable JSON in two tries.
            OutputSchemaError: no answer in two tries fits the output schema.
        """
        from langchain_core.messages import AIMessage

        text: list[str] = []
        end = _End([], None, "stop")
        async with aclosing(self._turn(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    text.append(piece)
                else:
                    end = piece
        return AIMessage(
            content="".join(text),
            tool_calls=[
                {"name": call.name, "args": call.args, "id": new_call_id(), "type": "tool_call"} for call in end.calls
            ],
            usage_metadata=_usage_metadata(end.usage),
            response_metadata=self._response_metadata(end),
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Yield the answer in pieces of text, then one chunk with calls, usage and finish reason.

        Calls and answers under an output schema come whole, when they are known to be usable.

        Raises:
            ModelError: the model failed, or wrote no usable JSON in two tries.
            OutputSchemaError: no answer in two tries fits the output schema.
        """
        from langchain_core.messages import AIMessageChunk
        from langchain_core.messages.tool import tool_call_chunk

        async with aclosing(self._turn(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield piece
                    continue
                yield AIMessageChunk(
                    content="",
                    tool_call_chunks=[
                        tool_call_chunk(name=call.name, args=dumps(call.args), id=new_call_id(), index=index)
                        for index, call in enumerate(piece.calls)
                    ],
                    usage_metadata=_usage_metadata(piece.usage),
                    response_metadata=self._response_metadata(piece),
                )

    def _response_metadata(self, end: _End) -> dict[str, Any]:
        return {"model_name": self.name, "finish_reason": end.finish}

    async def _turn(self, request: ModelRequest) -> AsyncGenerator[str | _End, None]:
        """Yield the pieces of the answer as they come, then what ends the turn."""
        spent: list[Usage] = []
        tools = _offered(request)
        if tools:
            choice = await self._choose(request, tools, spent)
            if choice.calls:
                yield _End(choice.calls, _total(spent), "tool_calls")
                return
            if choice.text and request.output_schema is None:
                yield choice.text
                yield _End([], _total(spent), "stop")
                return
        if request.output_schema is not None:
            yield await self._fill(request, tools, spent)
            yield _End([], _total(spent), "stop")
            return
        turns = self._answer_turns(request, tools)
        finish = "stop"
        async with aclosing(cast("Any", self._inner.stream_text(turns, request))) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield piece
                    continue
                finish = "length" if piece.cut_off else "stop"
                if piece.usage is not None:
                    spent.append(piece.usage)
        yield _End([], _total(spent), finish)

    def _answer_turns(self, request: ModelRequest, tools: Sequence[ToolSpec], ask: str = "") -> list[Turn]:
        if self._tiny:
            after_result = bool(request.messages) and request.messages[-1].type == "tool"
            return plain_turns(request.messages, ask=ask or (USE_RESULT if after_result else ""))
        if not tools:
            return plain_turns(request.messages, ask=ask)
        return plain_turns(request.messages, guide=_listed(TOOLS, tool_lines(tools)), ask=ask or ANSWER)

    def _choice_turns(self, request: ModelRequest, form: ChoiceForm) -> list[Turn]:
        lines = tool_lines(form.tools)
        ask = ASK_CALL
        if form.none is not None:
            lines.append("- " + NO_CHOICE.format(none=form.none))
            ask = ASK_CHOICE.format(none=form.none)
        return plain_turns(
            request.messages,
            guide=_listed(CHOICE, lines),
            samples=form.samples() if self._tiny else (),
            # Under a grammar the form need not be told again, and a tiny model chooses better without.
            ask="" if self._inner.forces_schema else ask,
        )

    async def _choose(self, request: ModelRequest, tools: Sequence[ToolSpec], spent: list[Usage]) -> Choice:
        may_answer = request.tool_choice == "auto"
        form = ChoiceForm(tools, may_answer=may_answer)
        forced = self._inner.forces_schema
        try:
            choice = await self._ask_twice(
                self._choice_turns(request, form),
                [form.schema(), form.schema(loose=True)],
                lambda written: form.read(written.text, cut_off=written.cut_off, forced=forced),
                request,
                spent,
            )
        except _Refused as refused:
            if may_answer and not refused.problem.meant_a_call:
                return Choice()
            raise ModelError(
                f"the model {self.name!r} wrote no usable tool call in two tries: {refused.problem}; "
                f"it wrote {_excerpt(refused.text)}"
            ) from refused.problem
        if may_answer and self._tiny and _all_made_before(choice.calls, request):
            return Choice()
        return choice

    async def _fill(self, request: ModelRequest, tools: Sequence[ToolSpec], spent: list[Usage]) -> str:
        wanted = cast("Any", request.output_schema)
        schema = wanted.model_json_schema()
        fields = field_lines(schema)
        if self._inner.forces_schema and fields:
            ask = FILL.format(fields="\n".join(fields))
        else:
            ask = FIT.format(schema=dumps(schema))
        simple = grammar_schema(schema)
        try:
            return await self._ask_twice(
                self._answer_turns(request, tools, ask),
                [simple, ANY_OBJECT if "properties" in simple else {}],
                lambda written: _read_filled(written, wanted),
                request,
                spent,
            )
        except _Refused as refused:
            raise OutputSchemaError(
                f"no answer of the model {self.name!r} in two tries fits {wanted.__name__}: {refused.problem}; "
                f"it wrote {_excerpt(refused.text)}",
                raw=refused.text,
            ) from refused.problem

    async def _ask_twice(
        self,
        turns: Sequence[Turn],
        schemas: Sequence[dict[str, Any]],
        read: Callable[[Written], T],
        request: ModelRequest,
        spent: list[Usage],
    ) -> T:
        """Ask for JSON under the first schema; where it cannot be used, say why and ask under the second."""
        asked = list(turns)
        for schema in schemas:
            written = await self._inner.generate_json(asked, schema, request)
            if written.usage is not None:
                spent.append(written.usage)
            try:
                return read(written)
            except Unusable as problem:
                failure = _Refused(problem, written.text)
            asked = [
                *turns,
                Turn("assistant", written.text or "(nothing)"),
                Turn("user", FIX.format(problem=failure.problem)),
            ]
        raise failure


class _Refused(Exception):
    """Both tries of the model were unusable; carries the last."""

    def __init__(self, problem: Unusable, text: str) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.text = text


def _offered(request: ModelRequest) -> Sequence[ToolSpec]:
    """Return the tools that the model may call in this turn."""
    if request.tool_choice == "none" or not request.tools:
        return ()
    if request.tool_choice in ("auto", "required"):
        return request.tools
    chosen = [tool for tool in request.tools if tool.name == request.tool_choice]
    if not chosen:
        names = ", ".join(tool.name for tool in request.tools)
        raise ConfigurationError(
            f"tool_choice is {request.tool_choice!r} and no tool has that name; "
            f"use 'auto', 'required', 'none' or one of: {names}"
        )
    return chosen


def _listed(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, *lines])


def _read_filled(written: Written, wanted: Any) -> str:
    """Return the last JSON value in the text that the wanted model accepts, written as JSON."""
    from pydantic import ValidationError

    if written.cut_off:
        raise Unusable("it was too long and cut off")
    try:
        candidates = [json.loads(written.text)]
    except ValueError:
        candidates = find_json(written.text)
    problem = "there is no JSON in it"
    for value in reversed(candidates):
        try:
            wanted.model_validate(value)
        except ValidationError as error:
            problem = "; ".join(_problem_line(one) for one in error.errors(include_url=False, include_input=False)[:5])
        else:
            return dumps(value)
    raise Unusable(problem)


def _problem_line(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}" if place else str(error["msg"])


def _all_made_before(calls: Sequence[ChosenCall], request: ModelRequest) -> bool:
    """Tell whether each call was already made, and answered, since the last user message."""
    made: list[tuple[str, Any]] = []
    for message in reversed(request.messages):
        if message.type == "human":
            break
        if message.type == "ai":
            made.extend((call["name"], call["args"]) for call in cast("AIMessage", message).tool_calls)
    return bool(calls) and all((call.name, call.args) in made for call in calls)


def _total(spent: Sequence[Usage]) -> Usage | None:
    if not spent:
        return None
    total = Usage()
    for usage in spent:
        total.add(usage)
    return total


def _usage_metadata(usage: Usage | None) -> UsageMetadata | None:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    metadata: UsageMetadata = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens is not None:
        metadata["input_token_details"] = {"cache_read": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        metadata["output_token_details"] = {"reasoning": usage.reasoning_tokens}
    return metadata


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:197] + "...")
