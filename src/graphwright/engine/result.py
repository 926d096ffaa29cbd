"""What a run gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright._internal.ids import new_run_id
from graphwright.engine.state import ExecutionReport
from graphwright.messages import text_of
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from graphwright.engine._run import GraphRun
    from graphwright.interrupts import Interrupt
    from graphwright.runlog.base import RunStatus

__all__ = ["FROM_CACHE", "RunResult"]

FROM_CACHE = "from_cache"
"""The key in the metadata of a reply that was not written in this run."""


class RunResult(dict[str, Any]):
    """The end of a run: equal to `{"messages": [...]}`, with everything else as attributes.

    `result["context"]` works too; it is no item, so that the result stays equal to the last chunk of a stream.
    """

    __slots__ = ("_run_id", "context", "output", "pending", "report", "status", "thread_id", "usage")

    _run_id: str | None
    status: RunStatus
    """`"completed"`, or `"paused"` when the run waits for answers; then `result["__interrupt__"]` holds them."""
    pending: list[Interrupt]
    """What a paused run waits for."""
    thread_id: str
    """The thread of the run; empty in a run without a log."""
    context: dict[str, Any]
    """The values that the nodes left in the state."""
    report: ExecutionReport
    """The figures of this run."""
    usage: Usage
    """Tokens of every model call of this run."""
    output: Any
    """The output of the last node; with an output schema, an instance of it."""

    @classmethod
    def of(cls, run: GraphRun, *, error: str | None) -> RunResult:
        """Return the result of a run that has ended well."""
        result = cls(messages=run.state.messages)
        # Only what was asked for: a result must not keep the engine alive, nor cost an id that nobody reads.
        result._run_id = run.context.known_run_id
        result.usage = run.context.usage
        result.status, result.pending, result.thread_id = "completed", [], ""
        if run.context.journal is not None:
            result.thread_id = run.context.journal.thread_id
        result.context = run.state.context
        result.report = run.report(error)
        result.output = run.last.output if run.last is not None else None
        return result

    @classmethod
    def paused(cls, run: GraphRun, pending: list[Interrupt]) -> RunResult:
        """Return the result of a run that waits for answers."""
        result = cls.of(run, error=None)
        result.status, result.pending = "paused", pending
        result["__interrupt__"] = pending
        return result

    @classmethod
    def waiting(cls, messages: list[Any], pending: list[Interrupt], *, run_id: str, thread_id: str) -> RunResult:
        """Return the result of a run that waits on, with nothing of it run."""
        result = cls(messages=messages)
        result._run_id, result.thread_id = run_id, thread_id
        result.status, result.pending = "paused", pending
        result["__interrupt__"] = pending
        result.usage, result.context, result.report, result.output = Usage(), {}, ExecutionReport(), None
        return result

    @property
    def run_id(self) -> str:
        """The id of this run."""
        if self._run_id is None:
            self._run_id = new_run_id()
        return self._run_id

    @property
    def messages(self) -> list[BaseMessage]:
        """The whole conversation."""
        messages: list[BaseMessage] = self["messages"]
        return messages

    @property
    def text(self) -> str:
        """The text of the answer; empty when the run ended on something else than a reply."""
        last = self["messages"][-1]
        return text_of(last) if last.type == "ai" else ""

    @property
    def cache_hit(self) -> bool:
        """Whether the answer was given before, and no model was asked."""
        last = self["messages"][-1]
        return last.type == "ai" and last.response_metadata.get(FROM_CACHE) is True

    def __missing__(self, key: str) -> Any:
        if key == "context":
            return self.context
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an item, or the context for `"context"`."""
        return self.context if key == "context" else super().get(key, default)
