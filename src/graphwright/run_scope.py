"""What belongs to the current run, for code that runs inside it and was not handed it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graphwright._internal.ids import new_run_id
from graphwright.exceptions import GraphStoppedError
from graphwright.usage import Usage

if TYPE_CHECKING:
    from graphwright.run_events import Emit

__all__ = ["RunScope", "Spent", "Stop", "current_call", "current_run", "run_scope"]


@dataclass(slots=True)
class Stop:
    """Why a run ended before its graph led to the end."""

    kind: Literal["limit", "hook", "abort"]
    reason: str
    limit: int = 0
    stopped_by: str = ""
    raises: type[GraphStoppedError] = GraphStoppedError
    """What a run raises that a hook ended before there was an answer."""


class Spent:
    """What a run has used of its limits so far. Its children count on the same object."""

    __slots__ = ("mutations", "note", "steps", "stop")

    def __init__(self) -> None:
        self.steps = 0
        """Node executions."""
        self.mutations = 0
        """Changes of the graph."""
        self.note: str | None = None
        """The latest remark of a hook on a node that went well."""
        self.stop: Stop | None = None
        """Why the run was ended, wherever in it; everything around it ends too, after the node that is at work."""


class RunScope:
    """The run that is going on here."""

    __slots__ = ("_run_id", "agent_id", "deadline", "emit", "path", "quiet", "spent", "usage")

    def __init__(
        self, run_id: str | None = None, path: str = "", emit: Emit | None = None, deadline: float | None = None
    ) -> None:
        self._run_id = run_id
        self.agent_id = ""
        """Who the agent is; empty without an identity."""
        self.path = path
        """Names of the enclosing nodes, joined by `/`; empty for the outer graph."""
        self.emit = emit
        """Report an event; `None` when nobody listens."""
        self.quiet = False
        """Whether nobody who listens reads text as it is written, so that models need not stream."""
        self.deadline = deadline
        """`time.monotonic()` value at which the run is stopped."""
        self.usage = Usage()
        """Tokens of every model call of the run so far, whichever node made it."""
        self.spent = Spent()
        """What the run has used of its limits, children included."""

    @property
    def known_run_id(self) -> str | None:
        """The id of the run, if anybody has given it or asked for it."""
        return self._run_id

    @property
    def run_id(self) -> str:
        """The id of the run. One that was not given is made when it is first asked for."""
        if self._run_id is None:
            self._run_id = new_run_id()
        return self._run_id


run_scope: ContextVar[RunScope | None] = ContextVar("graphwright_run", default=None)
"""The run that is going on here; only an engine sets it."""


current_call: ContextVar[Any] = ContextVar("graphwright_call", default=None)
"""The tool call that is at work here, as whoever answers calls knows it."""


def current_run() -> RunScope | None:
    """Return the run that is going on here, or `None` outside of one."""
    return run_scope.get()
