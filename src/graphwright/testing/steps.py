"""The steps of a script: what a `ScriptedModel` does when it is asked, one small function for each kind of answer.

A step is plain data and can be used any number of times, in any number of scripts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from graphwright.exceptions import ConfigurationError
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

__all__ = [
    "ScriptedCall",
    "Step",
    "StepLike",
    "as_step",
    "call",
    "calls",
    "calls_many",
    "delayed",
    "empty",
    "malformed",
    "raises",
    "raises_midstream",
    "refuses",
    "says",
    "truncated",
    "waits_for",
]

_AUTO = "<auto>"
_LENGTH = "length"


def _small_usage() -> Usage:
    return Usage(10, 5, 15)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptedCall:
    """One tool call of a scripted answer."""

    name: str

    args: dict[str, Any] | None = None

    raw: str | None = None
    """The argument text as the model writes it; `None` writes `args` as JSON."""

    id: str | None = _AUTO
    """The call's id. By default the model numbers its calls `call_1`, `call_2` and so on."""

    def with_id(self, id: str | None) -> ScriptedCall:
        """Return the call under an id of your choice: one used before, an empty one, or `None`."""
        return replace(self, id=id)

    @property
    def numbered(self) -> bool:
        """Whether the model chooses the id."""
        return self.id == _AUTO


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One answer of a script. Made by the functions of this module; `dataclasses.replace` changes one."""

    text: str = ""

    thinking: str = ""
    """Reasoning that comes before the text, as a thinking block."""

    calls: tuple[ScriptedCall, ...] = ()

    refusal: str = ""

    usage: Usage | None = None
    """Tokens that the answer reports; `None` reports nothing."""

    finish_reason: str = ""
    """Why the model stopped; empty means `"tool_calls"` for an answer with calls, else `"stop"`."""

    chunks: tuple[str | asyncio.Event, ...] = ()
    """The pieces of the text as they are streamed; an event in between is waited for. Empty streams by words."""

    error: BaseException | type[BaseException] | None = None
    """Raised after the text was streamed; a call that does not stream raises it at once."""

    message: AIMessage | None = None
    """A whole message to answer with, instead of all of the above."""

    delay: float = 0.0
    """Seconds to wait before the answer begins."""

    gate: asyncio.Event | None = None
    """Waited for before the answer begins."""


StepLike = Any
"""A `Step`, a string, an `AIMessage`, an exception, or a (maybe async) function of the messages that returns one."""

StepFunction = Callable[["list[BaseMessage]"], "StepLike | Awaitable[StepLike]"]


def says(
    text: str | None = None,
    *,
    thinking: str = "",
    chunks: Sequence[str | asyncio.Event] = (),
    usage: Usage | Literal["small"] | None = "small",
    finish_reason: str = "",
) -> Step:
    """Answer with text.

    `chunks` says how a stream splits it; an `asyncio.Event` among them holds the answer there until it is set. The
    text may then be left out. Without `usage` the answer reports 10 tokens in and 5 out.
    """
    pieces = tuple(chunks)
    joined = "".join(piece for piece in pieces if isinstance(piece, str))
    if text is None:
        text = joined
    if pieces and joined != text:
        raise ConfigurationError(f"the chunks join to {joined!r} and not to the text {text!r}; leave one of them out")
    return Step(text=text, thinking=thinking, chunks=pieces, usage=_usage(usage), finish_reason=finish_reason)


def call(name: str, /, **args: Any) -> ScriptedCall:
    """Describe one tool call for `calls_many`."""
    return ScriptedCall(name=name, args=args)


def calls(name: str, /, **args: Any) -> Step:
    """Ask for one tool call."""
    return calls_many(call(name, **args))


def calls_many(
    *wanted: ScriptedCall | tuple[str, dict[str, Any]],
    text: str = "",
    thinking: str = "",
    usage: Usage | Literal["small"] | None = "small",
) -> Step:
    """Ask for several tool calls in one turn, each a `call(...)` or a `(name, args)` pair, maybe with text before."""
    if not wanted:
        raise ConfigurationError("calls_many() needs at least one call; use empty() for an answer with nothing in it")
    made = tuple(
        one if isinstance(one, ScriptedCall) else ScriptedCall(name=one[0], args=dict(one[1])) for one in wanted
    )
    return Step(text=text, thinking=thinking, calls=made, usage=_usage(usage))


def malformed(name: str, raw: str, /, *, text: str = "") -> Step:
    """Ask for one tool call with the argument text `raw`, which need not be JSON or an object."""
    return Step(text=text, calls=(ScriptedCall(name=name, raw=raw),), usage=_small_usage())


def truncated(name: str, raw: str, /, *, text: str = "") -> Step:
    """Run into the token limit while writing the arguments of a call; `raw` is what was written so far."""
    return replace(malformed(name, raw, text=text), finish_reason=_LENGTH)


def refuses(text: str) -> Step:
    """Refuse to answer: the refusal stands outside of the content, which is empty."""
    return Step(refusal=text, usage=_small_usage())


def empty() -> Step:
    """Answer with no text and no call."""
    return Step(usage=_small_usage())


def raises(error: BaseException | type[BaseException]) -> Step:
    """Fail before anything is answered."""
    return Step(error=error)


def raises_midstream(text: str, error: BaseException | type[BaseException]) -> Step:
    """Stream `text`, then fail. A call that does not stream fails at once."""
    return Step(text=text, error=error)


def delayed(step: StepLike, seconds: float) -> Step:
    """Wait, then do `step`."""
    return replace(as_step(step), delay=seconds)


def waits_for(event: asyncio.Event, step: StepLike) -> Step:
    """Wait until `event` is set, then do `step`."""
    return replace(as_step(step), gate=event)


def as_step(value: StepLike) -> Step:
    """Return the step for a `Step`, a string, an `AIMessage` or an exception.

    Raises:
        ConfigurationError: the value is none of these.
    """
    if isinstance(value, Step):
        return value
    if isinstance(value, str):
        return says(value)
    if isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException)):
        return raises(value)
    if isinstance(value, ScriptedCall):
        return calls_many(value)
    from langchain_core.messages import AIMessage

    if isinstance(value, AIMessage):
        return Step(message=value)
    raise ConfigurationError(
        f"{value!r} is no step of a script; use says(), calls() and the like, a string, an AIMessage or an exception"
    )


def _usage(usage: Usage | Literal["small"] | None) -> Usage | None:
    if isinstance(usage, str):
        return _small_usage()
    return usage
