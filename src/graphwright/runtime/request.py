"""What a front door hands to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.cache import CachedAnswer
    from graphwright.caller import CallerContext
    from graphwright.engine.compaction import ContextCompaction
    from graphwright.engine.journal import Inside, Journal
    from graphwright.engine.state import GraphState
    from graphwright.guardrails.base import RunChecks
    from graphwright.run_events import Emit
    from graphwright.run_scope import Spent
    from graphwright.runtime.durable import Resume
    from graphwright.runtime.layers.store import Turn
    from graphwright.tools.base import ToolGate

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

    compaction: ContextCompaction | None = None
    """How tool loops of this run are compacted, in place of the agent's way."""

    thread_id: str | None = None
    """The thread of the run in the run log; `None` takes the session's id, else the run's."""

    resume: Resume | None = None
    """The run to go on with, in place of a new one; `input` is not looked at then."""

    journal: Journal | None = None
    """The log of the run, once it has one."""

    history: Sequence[Any] = ()
    """What was said before on the thread."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the log kept of the request that began the run."""

    notes: dict[str, Any] = field(default_factory=dict)
    """What layers find again when the run goes on later; the log keeps it with the system prompt."""

    gate: ToolGate | None = None
    """What judges the tool calls of this run."""

    guards: RunChecks | None = None
    """What judges the texts of this run."""

    spent: Spent | None = None
    """Where the run counts its steps; its `stop` ends the run after the node that is at work."""

    conversation: Turn | None = None
    """The turn of a kept conversation that the run is."""

    inside: Inside | None = None
    """The run that this one is a part of."""

    on_state: Callable[[GraphState], None] | None = None
    """Called with the state when the run begins."""

    uses_cache: bool = True
    """Whether the cache may be asked, and told of the answer."""

    cached: CachedAnswer | None = None
    """The answer that the cache has; the graph is not walked then."""
