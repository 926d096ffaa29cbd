"""A model that answers from a script, so that a test or an example needs no provider, no key and no network."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from graphwright.messages import problem_in
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.testing._answers import message_of, pieces_of, with_ids
from graphwright.testing.steps import Step, StepFunction, StepLike, as_step

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

__all__ = ["ScriptError", "ScriptedModel"]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


class ScriptError(AssertionError):
    """What happened is not what the script says: the test has found something, or its script is wrong."""

    retryable = False


class ScriptedModel:
    """Answers each request with the next step of a script, and fails when the script and the run disagree.

    A step is made by `says`, `calls` and the other functions of `graphwright.testing`; a plain string, an
    `AIMessage`, an exception, and a function of the messages that returns any of these, work as well. The next step
    belongs to whoever asks next: for runs side by side use `ScriptedModel.answering`.

    While `strict`, each request must be one that a strict provider accepts, and each step must be used: leaving the
    model's `with` block, or `assert_done`, fails otherwise. A `ScriptError`, or an `assert` of a step's function, that
    a run has swallowed is raised there too.
    """

    def __init__(
        self,
        steps: Iterable[StepLike] = (),
        *,
        strict: bool = True,
        name: str = "scripted",
        capabilities: ModelCapabilities | None = None,
        stream_as: Literal["chunks", "strings"] = "chunks",
    ) -> None:
        """Make the model.

        Args:
            steps: What to do, in the order of the requests.
            strict: Whether requests are checked and unused steps are a failure.
            name: The model's name.
            capabilities: What the model says it can do; by default tools and streaming.
            stream_as: Whether pieces of text are streamed as `AIMessageChunk` objects or as plain strings.
        """
        self.name = name
        self.capabilities = capabilities if capabilities is not None else ModelCapabilities()
        self.strict = strict
        self.requests: list[ModelRequest] = []
        """Every request so far, in order, each with its own list of messages."""
        self.abandoned = 0
        """How many answers were cancelled, or their streams closed, before they were complete."""
        self._steps = [value if _is_function(value) else as_step(value) for value in steps]
        self._answer: StepFunction | None = None
        self._used = 0
        self._call_count = 0
        self._failures: list[AssertionError] = []
        self._stream_as = stream_as
        self._waiting: list[tuple[int, asyncio.Event]] = []

    @classmethod
    def answering(
        cls,
        answer: Callable[[list[BaseMessage]], Any],
        /,
        *,
        strict: bool = True,
        name: str = "scripted",
        capabilities: ModelCapabilities | None = None,
        stream_as: Literal["chunks", "strings"] = "chunks",
    ) -> ScriptedModel:
        """Return a model that answers any number of requests, each by calling `answer(messages)`.

        It keeps no place in a script, so runs side by side cannot take each other's answers. The function may be
        async, and returns whatever a step can be.
        """
        model = cls(strict=strict, name=name, capabilities=capabilities, stream_as=stream_as)
        model._answer = answer
        return model

    @property
    def inputs(self) -> list[list[BaseMessage]]:
        """The messages of every request so far."""
        return [list(request.messages) for request in self.requests]

    @property
    def tools_seen(self) -> list[list[str]]:
        """The names of the tools that each request offered."""
        return [[spec.name for spec in request.tools] for request in self.requests]

    @property
    def remaining(self) -> int:
        """How many steps of the script have not been used."""
        return len(self._steps) - self._used

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer with the next step."""
        step = await self._begin(request)
        try:
            await self._wait(step)
            for piece in step.chunks:
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        if step.error is not None:
            raise step.error
        return message_of(step, model=self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Answer with the next step, in pieces that add up to the message that `complete` gives."""
        step = await self._begin(request)
        try:
            await self._wait(step)
            for piece in pieces_of(step, model=self.name):
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif self._stream_as == "strings" and _is_only_text(piece):
                    yield str(piece.content)
                else:
                    yield piece
        except (asyncio.CancelledError, GeneratorExit):
            self.abandoned += 1
            raise
        if step.error is not None:
            raise step.error

    async def until_asked(self, times: int = 1, *, within: float = 10.0) -> None:
        """Wait until the model has been asked `times` times; for tests that act while it is at work.

        Raises:
            ScriptError: it was not, `within` this many seconds.
        """
        if len(self.requests) >= times:
            return
        arrived = asyncio.Event()
        self._waiting.append((times, arrived))
        try:
            await asyncio.wait_for(arrived.wait(), within)
        except TimeoutError:
            raise self._failed(
                f"model {self.name!r} was asked {len(self.requests)} times within {within} s, and not {times}"
            ) from None

    def assert_done(self) -> None:
        """Fail if a request did not fit the script, or, while strict, if a step was never used.

        Raises:
            ScriptError: says which.
        """
        if self._failures:
            raise self._failures[0]
        if self.strict and self.remaining:
            unused = ", ".join(_describe(step) for step in self._steps[self._used :])
            raise ScriptError(
                f"model {self.name!r} was asked {len(self.requests)} times, {self.remaining} steps are left: {unused}"
            )

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.assert_done()

    async def __aenter__(self) -> ScriptedModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        if self._answer is not None:
            return f"ScriptedModel.answering({getattr(self._answer, '__name__', self._answer)}, name={self.name!r})"
        return f"ScriptedModel(name={self.name!r}, used {self._used} of {len(self._steps)} steps)"

    async def _begin(self, request: ModelRequest) -> Step:
        messages = list(request.messages)
        self.requests.append(replace(request, messages=messages, tools=tuple(request.tools)))
        for times, arrived in self._waiting:
            if len(self.requests) >= times:
                arrived.set()
        problem = _problem_of(request) if self.strict else None
        if problem is not None:
            raise self._failed(f"request {len(self.requests)} to model {self.name!r} is not valid: {problem}")
        return with_ids(await self._step_for(request), self._next_id)

    async def _step_for(self, request: ModelRequest) -> Step:
        """Return what to do now; the place where a subclass that needs no script chooses."""
        return await self._resolved(self._next(), list(request.messages))

    def _next(self) -> Step | StepFunction:
        if self._answer is not None:
            return self._answer
        if self._used == len(self._steps):
            raise self._failed(
                f"model {self.name!r} was asked once more after all {len(self._steps)} steps of its script were used; "
                "add a step, or find out why the run goes on"
            )
        self._used += 1
        return self._steps[self._used - 1]

    async def _resolved(self, value: Any, messages: list[BaseMessage]) -> Step:
        try:
            while _is_function(value):
                value = value(list(messages))
                if inspect.isawaitable(value):
                    value = await value
        except AssertionError as failure:
            self._failures.append(failure)
            raise
        return as_step(value)

    def _next_id(self) -> str:
        self._call_count += 1
        return f"call_{self._call_count}"

    def _failed(self, message: str) -> ScriptError:
        failure = ScriptError(message)
        self._failures.append(failure)
        return failure

    async def _wait(self, step: Step) -> None:
        if step.gate is not None:
            await step.gate.wait()
        if step.delay > 0:
            await asyncio.sleep(step.delay)


def _is_function(value: Any) -> bool:
    # A LangChain message's `text` is a string that can be called.
    return callable(value) and not isinstance(value, (str, type))


def _problem_of(request: ModelRequest) -> str | None:
    problem = problem_in(request.messages)
    if problem is not None:
        return problem
    names = [spec.name for spec in request.tools]
    for name in names:
        if not _TOOL_NAME.match(name):
            return f"the tool name {name!r} is not 1 to 64 letters, digits, '_' or '-'"
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        return f"the tools {repeated} are offered more than once"
    if request.tool_choice not in ("auto", "none", *(["required"] if names else []), *names):
        return f"tool_choice is {request.tool_choice!r} and the tools are {names}"
    return None


def _is_only_text(piece: AIMessageChunk) -> bool:
    plain = isinstance(piece.content, str) and bool(piece.content) and not piece.tool_call_chunks
    return plain and piece.usage_metadata is None and not piece.response_metadata


def _describe(step: Step | StepFunction) -> str:
    if not isinstance(step, Step):
        return f"the function {getattr(step, '__name__', step)!r}"
    if step.error is not None:
        return f"raises {step.error!r}"
    if step.calls:
        return "calls " + ", ".join(call.name for call in step.calls)
    text = step.text or step.refusal or (str(step.message.content) if step.message is not None else "")
    return f"says {text[:60]!r}"
