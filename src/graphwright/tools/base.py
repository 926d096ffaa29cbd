"""The port that every tool stands behind, and what the answering of calls takes from the outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from graphwright.run_events import Emit
from graphwright.types import ToolCall, ToolResult, ToolSpec

__all__ = ["Tool", "ToolHooks", "ToolRun"]


class Tool(ABC):
    """A tool that a model can call. Immutable once made; one object serves any number of runs."""

    spec: ToolSpec

    timeout: float | None = None
    """Seconds one call may take; `None` leaves it to the agent's `tool_timeout`."""

    blocking: bool = False
    """True when `run_blocking` is to be called in a worker thread instead of `run`."""

    reports_itself: bool = False
    """True when the tool tells LangChain callbacks of its calls by itself."""

    injected: frozenset[str] = frozenset()
    """Parameters that no model fills: the call's id is given by the tool itself, the others by a hook."""

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.spec.name

    @abstractmethod
    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the tool takes them.

        Raises:
            ToolArgumentError: they do not fit; every problem is listed by its path.
        """

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call with validated arguments and return whatever the tool returns."""
        raise NotImplementedError

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call of a `blocking` tool. Called in a worker thread."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@dataclass(slots=True)
class ToolHooks:
    """What stands around each call. Each may be `None`."""

    before: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]] | None = None
    """`(tool name, arguments) -> arguments`, or `None` for unchanged. Raising blocks the call."""

    after: Callable[[str, Any, dict[str, Any]], Awaitable[Any]] | None = None
    """`(tool name, content, arguments) -> content`, or `None` for unchanged."""


@dataclass(slots=True)
class ToolRun:
    """The settings under which the calls of one turn are answered."""

    parallel: int = 32
    """Most calls that run at once."""

    timeout: float | None = None
    """Seconds one call may take when its tool does not say; `None` leaves it to the run's limit."""

    node: str = ""

    path: str = ""

    run_id: str = ""

    emit: Emit | None = None

    hooks: ToolHooks | None = None

    config: dict[str, Any] | None = None
    """The caller's LangChain config, when one was given: its callbacks see every call once."""

    trace: Callable[[ToolResult], None] | None = None
    """Called with every result, in the order in which they end."""

    validate: bool = True
    """Whether arguments are checked against the tool's parameters first."""

    max_result_chars: int | None = None
    """Longest successful result text; the rest is cut and marked."""
