"""What a front door hands to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.caller import CallerContext
    from graphwright.engine.state import GraphState
    from graphwright.run_events import Emit

__all__ = ["RunRequest"]


@dataclass(slots=True)
class RunRequest:
    """One run to be made."""

    input: Any
    """A conversation, in any form that `graphwright.messages.as_messages` takes."""

    config: Mapping[str, Any] | None = None
    """LangChain config of the caller: callbacks, tags, metadata."""

    caller: CallerContext | None = None
    """Who asks; `None` keeps the ambient caller."""

    session_id: str | None = None

    context: Mapping[str, Any] | None = None
    """Values for `GraphState.context`."""

    emit: Emit | None = None

    run_id: str | None = None

    deadline: float | None = None
    """`time.monotonic()` value at which the run is stopped."""

    system_prompt: str | None = None
    """Instructions for this run in place of the agent's."""

    on_state: Callable[[GraphState], None] | None = None
    """Called with the state when the run begins."""
