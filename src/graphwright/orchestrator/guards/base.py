"""What guards are given and what they answer: of a tool call, and of a text that comes in or goes out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, Self

# Pydantic reads these shapes on every Python only in this form of the class.
from typing_extensions import TypedDict

from graphwright.exceptions import ConfigurationError
from graphwright.usage import Usage

__all__ = [
    "GuardAction",
    "GuardContext",
    "GuardDecision",
    "GuardEvent",
    "TextGuard",
    "ToolGuard",
    "as_guards",
    "guard_name_of",
]

GuardAction = Literal["allow", "deny", "ask", "rewrite"]

_ACTIONS = ("allow", "deny", "ask", "rewrite")


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """What a guard wants to become of a tool call or a text.

    Raises:
        ValueError: the action is unknown, `rewrite` comes without arguments, or another action comes with some.
    """

    action: GuardAction
    reason: str = ""
    """Why, in words that the model, a person and the record may read."""
    args_override: dict[str, Any] | None = None
    """The arguments that `rewrite` puts in place of the call's."""
    guard_name: str = ""
    """Who decided; empty is the guard that was asked."""

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS or not isinstance(self.action, str):
            raise ValueError(f"action is {self.action!r}; use one of {', '.join(map(repr, _ACTIONS))}")
        if not isinstance(self.reason, str) or not isinstance(self.guard_name, str):
            raise ValueError(f"reason is {self.reason!r} and guard_name {self.guard_name!r}; give texts")
        if self.action == "rewrite" and not isinstance(self.args_override, dict):
            raise ValueError(
                f"args_override is {self.args_override!r}; to rewrite a call, give its arguments as a dict"
            )
        if self.action != "rewrite" and self.args_override is not None:
            raise ValueError(f"args_override comes with the action {self.action!r}; only 'rewrite' changes arguments")

    @classmethod
    def allow(cls) -> Self:
        """Say that there is nothing against it."""
        return cls("allow")

    @classmethod
    def deny(cls, reason: str = "") -> Self:
        """Say that it must not happen."""
        return cls("deny", reason)

    @classmethod
    def ask(cls, reason: str = "") -> Self:
        """Say that a person has to decide, in whatever mode the bot runs."""
        return cls("ask", reason)

    @classmethod
    def rewrite(cls, args: dict[str, Any], reason: str = "") -> Self:
        """Say that the call runs with these arguments instead of its own."""
        return cls("rewrite", reason, args)


@dataclass(frozen=True, slots=True)
class GuardContext:
    """What a guard may know of a tool call."""

    tool_name: str
    args: dict[str, Any]
    """A copy that is the guard's own; changing it changes nothing else."""
    risk_level: int = 1
    """0 reads only, 1 has an effect, 2 is destructive or runs code."""
    goal: str = ""
    mode: str = "auto"
    run_id: str = ""
    session_id: str = ""
    """The thread of the run."""
    tool_call_id: str = ""
    tool_calls_so_far: int = 0
    """Calls of this run that were carried out, and those of this turn that were let through; denied ones are not in."""
    batch_index: int = 0
    """Place of the call in its turn, from 0."""
    tool_description: str = ""
    tool_counts: Mapping[str, int] = field(default_factory=dict)
    """The calls so far, by the name of the tool."""
    usage: Usage | None = None
    """Where a guard that asks a model adds the tokens of it."""


ToolGuard = Callable[[GuardContext], GuardDecision | Awaitable[GuardDecision]]
"""Judges a tool call, at once or as a coroutine. Whatever else it answers, or raises, denies the call."""

TextGuard = Callable[[str], GuardDecision | Awaitable[GuardDecision]]
"""Judges a text that came from the user, or an answer. Whatever is not `allow` rejects the text."""


class GuardEvent(TypedDict):
    """The record of a decision that was not `allow`."""

    type: Literal["guard_decision"]
    guard: str
    tool_name: str
    """Empty where a text was judged."""
    tool_call_id: str
    action: GuardAction
    reason: str
    ts: float
    """Seconds since the epoch."""
    stage: NotRequired[Literal["input", "output"]]
    """Where a text was judged; not there for tool calls."""


def guard_name_of(guard: Any) -> str:
    """Return the name by which a guard is reported: its `name`, its `__name__`, or that of its class."""
    for key in ("name", "__name__"):
        value = getattr(guard, key, None)
        if isinstance(value, str) and value:
            return value
    return type(guard).__name__


def as_guards(value: Iterable[Any] | None, *, name: str) -> tuple[Any, ...]:
    """Return the guards given as the argument `name`, as a tuple.

    Raises:
        ConfigurationError: it is no list, or an entry cannot be called with one argument.
    """
    if value is None:
        return ()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} is {value!r}; give a list of guards")
    guards = tuple(_own(entry, name) for entry in value)
    for guard in guards:
        if isinstance(guard, type):
            raise ConfigurationError(f"{name} has the class {guard.__name__!r}; give an object of it")
        if not callable(guard):
            raise ConfigurationError(f"{name} has {guard!r}, which is no guard; give something that can be called")
        if not _takes_one(guard):
            raise ConfigurationError(f"{name} has {guard!r}, which cannot be called with one argument; let it take one")
    return guards


def _own(entry: Any, name: str) -> Any:
    """Return an entry as a bot asks it: a guard of `graphwright.guardrails` is asked at the seam of the argument."""
    if callable(entry) or not callable(getattr(entry, "judge", None)):
        return entry
    from graphwright.orchestrator.guards.shared import shared_guard

    return shared_guard(entry, name)


def _takes_one(guard: Any) -> bool:
    try:
        signature = inspect.signature(guard)
    except (TypeError, ValueError):  # built in; what it takes is seen when it is called
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True
