"""What a run can report while it goes on: a closed union of small events, and the shape of their sink.

The documented stream shapes are made from these in the view files. Events are plain objects for speed; treat
them as read-only.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

    from graphwright.interrupts import Interrupt
    from graphwright.types import ToolCall, ToolResult
    from graphwright.usage import Usage

__all__ = [
    "ConversationNotSaved",
    "Emit",
    "GraphMutated",
    "GuardDecided",
    "ModelFinished",
    "ModelStarted",
    "NodeFailed",
    "NodeFinished",
    "NodeMetrics",
    "NodeStarted",
    "Restarted",
    "Retrying",
    "RunEvent",
    "RunFinished",
    "RunPaused",
    "RunStarted",
    "TextDelta",
    "ThinkingDelta",
    "ToolFinished",
    "ToolProgress",
    "ToolStarted",
    "ViewChanged",
    "number",
    "signed",
]


@dataclass(slots=True, kw_only=True)
class _Event:
    run_id: str = ""
    """The run that reports."""
    seq: int = 0
    """Place in the run's report, from 1; set when the event is emitted."""
    path: str = ""
    """Where in the run: empty for the outer graph, else the names of the enclosing nodes joined by `/`."""
    at: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    agent_id: str = ""
    """Which agent reports; empty where it has no identity."""


@dataclass(slots=True)
class RunStarted(_Event):
    """The run begins."""

    graph: str


@dataclass(slots=True)
class NodeStarted(_Event):
    """A node is about to run."""

    node: str
    node_type: str
    visit: int
    """How often the node has been entered in this run, this time included."""


@dataclass(slots=True)
class NodeFinished(_Event):
    """A node has run without error."""

    node: str
    result: Any
    """The `NodeResult`."""
    messages: list[Any]
    """The conversation, as it is now. The list is live: copy it to keep it."""


@dataclass(slots=True)
class NodeFailed(_Event):
    """A node has failed; the run may still go on by an error route."""

    node: str
    error: str
    result: Any


@dataclass(slots=True)
class NodeMetrics(_Event):
    """The figures of a visit of a node that is flagged `observable`."""

    node: str
    metrics: dict[str, Any]


@dataclass(slots=True)
class ModelStarted(_Event):
    """A model is asked."""

    node: str
    call_id: str
    messages: Sequence[Any] = field(default=(), repr=False, compare=False)
    """What it is asked. The list is live: copy it to keep it."""


@dataclass(slots=True)
class TextDelta(_Event):
    """A piece of text that the model just wrote."""

    node: str
    text: str
    call_id: str
    """All pieces of one model call share it."""
    chunk: AIMessageChunk | None = None
    """The provider's chunk, when it came as one."""


@dataclass(slots=True)
class ThinkingDelta(_Event):
    """A piece of the model's reasoning; never part of the answer."""

    node: str
    text: str
    call_id: str


@dataclass(slots=True)
class ModelFinished(_Event):
    """A model call has ended well."""

    node: str
    call_id: str
    message: Any
    """The `AIMessage`, as it enters the conversation."""
    usage: Usage | None = None


@dataclass(slots=True)
class Retrying(_Event):
    """A model call failed in a way that can pass; it is made again after `wait_s` seconds."""

    node: str
    attempt: int
    """The number of the attempt that failed, from 1."""
    wait_s: float
    reason: str


@dataclass(slots=True)
class Restarted(_Event):
    """The text shown so far for this model call is void: drop it, the call starts again."""

    node: str
    call_id: str
    dropped: str
    """The text to drop."""


@dataclass(slots=True)
class ToolStarted(_Event):
    """A tool call is about to run."""

    node: str
    call: ToolCall
    index: int
    """Place of the call in its turn, from 0."""


@dataclass(slots=True)
class ToolProgress(_Event):
    """A tool that is at work says how far it is."""

    node: str
    call: ToolCall
    progress: float
    total: float | None
    """What `progress` will be in the end, where that is known."""
    message: str | None


@dataclass(slots=True)
class ToolFinished(_Event):
    """A tool call has its answer, good or bad."""

    node: str
    call: ToolCall
    result: ToolResult
    index: int


@dataclass(slots=True)
class ViewChanged(_Event):
    """What a node shows its model was compacted: it no longer begins with what was shown before."""

    node: str
    scope: str
    """The node's `context_scope`."""
    left_out: int
    """How many messages of the conversation are not shown as they are."""
    facts: int
    """How many facts the ledger holds."""
    tokens: int
    """About how many tokens the messages shown have, without the node's own system message."""


@dataclass(slots=True)
class GraphMutated(_Event):
    """The graph of this run was changed, or a change was refused."""

    node: str
    mutation: Any
    applied: bool
    reason: str = ""


@dataclass(slots=True)
class ConversationNotSaved(_Event):
    """The conversation store did not take the messages of the turn; they are tried again before the next one."""

    session_id: str
    error: str


@dataclass(slots=True)
class GuardDecided(_Event):
    """A guard had something to say: it objected, changed or marked something, or could not judge."""

    seam: str
    """`input`, `output`, `tool_arguments`, `tool_result` or `memory_write`."""
    action: str
    guard: str
    reason: str
    """Why, without anything of the text."""
    labels: list[str] = field(default_factory=list)
    failed: bool = False
    """Whether the guard, or a part of it, could not judge; with `allow` the text was passed on unjudged."""
    tool_name: str = ""


@dataclass(slots=True)
class RunPaused(_Event):
    """The run waits for answers, and goes on when all of them are there."""

    pending: list[Interrupt]


@dataclass(slots=True)
class RunFinished(_Event):
    """The run has ended with an answer."""

    report: Any
    """The `ExecutionReport`."""


RunEvent = (
    RunStarted
    | NodeStarted
    | NodeFinished
    | NodeFailed
    | NodeMetrics
    | ModelStarted
    | TextDelta
    | ThinkingDelta
    | ModelFinished
    | Retrying
    | Restarted
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | GraphMutated
    | ViewChanged
    | RunPaused
    | ConversationNotSaved
    | GuardDecided
    | RunFinished
)


def number(event: RunEvent, seq: int) -> None:
    """Give an event its place in the run's report; done by the sink that it reaches first."""
    event.seq = seq


Emit = Callable[[RunEvent], Awaitable[None]]
"""The sink of a run. It is `None` where nobody listens, and then no event is built."""


def signed(emit: Emit, agent_id: str) -> Emit:
    """Return a sink that says of each event which agent reports it; what a peer has said of its own stays."""

    async def emit_signed(event: RunEvent) -> None:
        event.agent_id = event.agent_id or agent_id
        await emit(event)

    return emit_signed
