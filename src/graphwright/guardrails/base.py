"""The one contract of every guard: what it is shown at a seam of a run, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from graphwright.models.base import ChatModel
    from graphwright.tools.base import ToolGate

__all__ = [
    "SEAMS",
    "Classifier",
    "Guard",
    "GuardVerdict",
    "Guarded",
    "MemoryWriteGuard",
    "RunChecks",
    "Seam",
    "VerdictAction",
]

Seam = Literal["input", "output", "tool_arguments", "tool_result", "memory_write"]

SEAMS: tuple[Seam, ...] = ("input", "output", "tool_arguments", "tool_result", "memory_write")

VerdictAction = Literal["allow", "deny", "ask", "rewrite", "taint"]

_ACTIONS = ("allow", "deny", "ask", "rewrite", "taint")


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a guard judges."""

    seam: Seam
    text: str
    """The text as its author wrote it; the arguments of a tool call come as JSON."""
    tool_name: str = ""
    """The tool of a call or a result."""
    arguments: dict[str, Any] | None = None
    """The arguments of a call: a copy that is the guard's own."""
    before: str = ""
    """The end of what came just before at this seam, so that a phrase in two pieces is seen."""


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """What is to become of it.

    Raises:
        ValueError: the action is unknown, or `rewrite` comes without what to put in place.
    """

    action: VerdictAction = "allow"
    reason: str = ""
    """Why, in words that hold nothing of the text."""
    value: Any = None
    """What `rewrite` puts in place: a text, or a dict for the arguments of a call."""
    labels: frozenset[str] = frozenset()
    """What `taint` marks the run with."""
    report: Any = None
    """The `ScanReport` behind it, where there is one."""
    failed: bool = False
    """Whether this is the answer for a guard that could not judge."""

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS or not isinstance(self.action, str):
            raise ValueError(f"action is {self.action!r}; use one of {', '.join(map(repr, _ACTIONS))}")
        if self.action == "rewrite" and not isinstance(self.value, (str, dict)):
            raise ValueError(f"value is a {type(self.value).__name__}; to rewrite, give a text or the arguments")


@runtime_checkable
class Guard(Protocol):
    """Judges texts at the seams that it names in an attribute `seams`; at all five without one.

    Whatever it raises, and whatever it answers that is no verdict, refuses the text, unless the guard has an attribute
    `fail_open` that is True.
    """

    async def judge(self, guarded: Guarded) -> GuardVerdict:
        """Return what is to become of it."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """Rates a text: label -> score from 0 to 1. What it raises counts as a guard that cannot run."""

    async def classify(self, text: str) -> dict[str, float]:
        """Return the scores."""
        ...


class MemoryWriteGuard(Protocol):
    """What a memory asks before it keeps something."""

    async def check_memory_write(self, text: str) -> str:
        """Return the text to keep.

        Raises:
            GuardrailViolation: it must not be kept.
        """
        ...


class RunChecks(Protocol):
    """The guards of one run, as the engine uses them."""

    @property
    def gate(self) -> ToolGate | None:
        """What judges the arguments of calls; `None` where nothing does."""
        ...

    @property
    def after_tool(self) -> Callable[[str, Any, dict[str, Any]], Awaitable[Any]] | None:
        """What judges results, `(tool name, content, arguments) -> content`; `None` where nothing does."""
        ...

    async def check_memory_write(self, text: str) -> str:
        """Return what a memory may keep; raises `GuardrailViolation` where it must not keep it."""
        ...

    def held(self, model: ChatModel) -> ChatModel:
        """Return the model with its replies held until they are judged."""
        ...
