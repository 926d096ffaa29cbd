"""The shapes of what the bot's stream yields, and of the records in a `BotResponse`.

A stream item is `(mode, payload)`. `messages` carries `(message, metadata)`; `updates` carries `{node: update}`, or
`{"__interrupt__": (interrupt, ...)}`; `graph` carries one of the events with a `type` of this module. The required keys
of a shape are in the class whose name begins with an underscore.
"""

from __future__ import annotations

from typing import Any, Literal

# Pydantic reads these shapes on every Python only in this form of the class.
from typing_extensions import TypedDict

__all__ = [
    "AbortedEvent",
    "AgentUpdate",
    "AskUserUpdate",
    "GraphEdgeSpec",
    "GraphTopology",
    "GraphTopologyEvent",
    "GuardRejectedEvent",
    "NodeDetail",
    "NodeInvokedEvent",
    "NodeTraceEntry",
    "OutputGuardUpdate",
    "PartialResponseEvent",
    "PermissionRequestEvent",
    "PlanStep",
    "PlanUpdate",
    "QuestionEvent",
    "QuestionItem",
    "QuestionOptionEvent",
    "QuestionType",
    "StatusEvent",
    "StepEvent",
    "StepStatus",
    "TokenUsage",
    "ToolRecord",
    "ToolRecordStatus",
    "ToolRequest",
    "ToolsUpdate",
    "VerifyUpdate",
]

StepStatus = Literal["pending", "running", "done", "skipped", "error"]

QuestionType = Literal["text", "single_choice", "multi_choice", "boolean", "number"]

ToolRecordStatus = Literal["success", "error", "skipped", "denied", "unknown"]
"""`skipped`: a person said no. `denied`: a guard did. `unknown`, which is ours: the call was cut off, and what it did
is not known."""


class _TokenUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class TokenUsage(_TokenUsage, total=False):
    """Tokens of a model call (a delta in the stream), or of the run (in a `BotResponse`, where no key is missing)."""

    cached_tokens: int
    reasoning_tokens: int


class _ToolRecord(TypedDict):
    tool_name: str
    args: dict[str, Any]
    status: ToolRecordStatus
    output: str


class ToolRecord(_ToolRecord, total=False):
    """One tool call and how it ended; credentials in `args` are taken out, and `output` is cut."""

    tool_call_id: str
    """Ours: the id by which the model asked."""


class StatusEvent(TypedDict):
    """Something about the run that is no answer. `retrying` comes before the wait, in an update of its own."""

    type: Literal["retrying", "compacted", "warning", "info"]
    reason: str
    attempt: int
    wait_s: float


class PartialResponseEvent(TypedDict):
    """A text that the model wrote next to tool calls: progress, not the answer."""

    type: Literal["partial_response"]
    text: str


class PlanStep(TypedDict):
    """One step of the plan; `step` counts from 1."""

    step: int
    description: str
    status: StepStatus


class StepEvent(TypedDict):
    """A step of the plan changed its status."""

    step: int
    status: StepStatus


class QuestionOptionEvent(TypedDict):
    """One option of a choice: the value to answer with, and what a person reads."""

    value: str
    label: str


class QuestionItem(TypedDict):
    """One question; `options` is `None` unless it is a choice."""

    id: str
    text: str
    type: QuestionType
    options: list[QuestionOptionEvent] | None
    required: bool


class QuestionEvent(TypedDict):
    """The value of an interrupt by which the model asks the user."""

    type: Literal["question_request"]
    questions: list[QuestionItem]
    reason: str | None


class _PermissionRequestEvent(TypedDict):
    type: Literal["permission_request"]
    tool: str
    tool_call_id: str
    params: dict[str, Any]


class PermissionRequestEvent(_PermissionRequestEvent, total=False):
    """The value of an interrupt by which a tool call waits for a yes; credentials in `params` are taken out."""

    diff: Any
    """What the tool's `preview` says that it would do."""
    guard_reason: str
    """Why a guard wants a person to decide."""


class ToolRequest(TypedDict):
    """A tool call as the model asked for it; credentials in `args` are taken out."""

    name: str
    args: dict[str, Any]


class NodeDetail(TypedDict, total=False):
    """What one execution of a node was given and gave."""

    tool_calls: list[ToolRequest]
    tools_executed: list[ToolRecord]
    output: str
    """Text that the node wrote, cut."""
    plan: list[PlanStep]
    step_events: list[StepEvent]
    questions: list[QuestionItem]
    token_usage: TokenUsage
    guard_events: list[dict[str, Any]]


class _NodeTraceEntry(TypedDict):
    node: str
    seq: int
    ts: float
    run_id: str


class NodeTraceEntry(_NodeTraceEntry, total=False):
    """One execution of a node; `seq` counts from 1 over the whole run, pauses included, and `ts` is epoch seconds."""

    detail: NodeDetail


class AgentUpdate(TypedDict, total=False):
    """What the `agent` node changed."""

    messages: list[Any]
    thinking: str
    status_events: list[StatusEvent]
    partial_response: str
    partial_responses: list[str]
    final_report: str
    """The answer; only where the model asked for no tool."""
    token_usage: TokenUsage
    history_summary: str
    node_trace: list[NodeTraceEntry]


class ToolsUpdate(TypedDict, total=False):
    """What the `tools` node changed."""

    messages: list[Any]
    tools_executed: list[ToolRecord]
    guard_events: list[dict[str, Any]]
    node_trace: list[NodeTraceEntry]


class PlanUpdate(TypedDict, total=False):
    """What the `plan` node changed."""

    messages: list[Any]
    plan: list[PlanStep]
    step_events: list[StepEvent]
    node_trace: list[NodeTraceEntry]


class AskUserUpdate(TypedDict, total=False):
    """What the `ask_user` node changed."""

    messages: list[Any]
    tools_executed: list[ToolRecord]
    node_trace: list[NodeTraceEntry]


class VerifyUpdate(TypedDict, total=False):
    """What the `verify` node changed."""

    verify_rounds: int
    verify_passed: bool
    token_usage: TokenUsage
    messages: list[Any]
    node_trace: list[NodeTraceEntry]


class OutputGuardUpdate(TypedDict, total=False):
    """What the `output_guard` node changed."""

    output_guard_rounds: int
    output_guard_passed: bool
    guard_events: list[dict[str, Any]]
    final_report: str
    messages: list[Any]
    node_trace: list[NodeTraceEntry]


class GraphEdgeSpec(TypedDict):
    """One edge; `conditional` when a decision takes it."""

    source: str
    target: str
    conditional: bool


class GraphTopology(TypedDict):
    """The bot's graph."""

    entry: str
    nodes: list[str]
    edges: list[GraphEdgeSpec]


class GraphTopologyEvent(GraphTopology):
    """The first event of a new run."""

    type: Literal["graph_topology"]
    run_id: str


class NodeInvokedEvent(TypedDict):
    """A node has run; its update follows."""

    type: Literal["node_invoked"]
    run_id: str
    node: str
    seq: int
    ts: float
    detail: NodeDetail


class AbortedEvent(TypedDict):
    """The run was ended by `abort()`; the last event of its stream."""

    type: Literal["aborted"]
    run_id: str


class GuardRejectedEvent(TypedDict):
    """An input guard refused the goal; the only event of its run."""

    type: Literal["guard_rejected"]
    run_id: str
    stage: Literal["input"]
    guard: str
    reason: str
    guard_events: list[dict[str, Any]]
