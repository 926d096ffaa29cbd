"""What belongs to the current run, for code that runs inside it and was not handed it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphwright.usage import Usage

if TYPE_CHECKING:
    from graphwright.run_events import Emit

__all__ = ["RunScope", "current_run", "run_scope"]


@dataclass(slots=True, eq=False)
class RunScope:
    """The run that is going on here."""

    run_id: str

    path: str = ""
    """Names of the enclosing nodes, joined by `/`; empty for the outer graph."""

    emit: Emit | None = None

    deadline: float | None = None
    """`time.monotonic()` value at which the run is stopped."""

    usage: Usage = field(default_factory=Usage)
    """Tokens of every model call of the run so far, whichever node made it."""


run_scope: ContextVar[RunScope | None] = ContextVar("graphwright_run", default=None)
"""The run that is going on here; only an engine sets it."""


def current_run() -> RunScope | None:
    """Return the run that is going on here, or `None` outside of one."""
    return run_scope.get()
