"""Words that several folders share: the shape of a tool, of a tool call and of its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

__all__ = ["ToolCall", "ToolChoice", "ToolResult", "ToolSpec", "ToolStatus"]

ToolStatus = Literal["success", "error"]

ToolChoice = str
"""`"auto"`, `"required"`, `"none"`, or the name of the tool the model has to call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str

    description: str = ""

    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON schema of the arguments; its `type` is always `"object"`."""


@dataclass(slots=True)
class ToolCall:
    """One call that a model asked for."""

    id: str

    name: str

    args: dict[str, Any]

    problem: str = ""
    """Why the call cannot run as it was written: bad JSON, not an object, or cut off. Empty when it can."""

    raw: str = ""
    """The argument text as the model wrote it, kept only where it could not be used."""


@dataclass(slots=True)
class ToolResult:
    """How one call was answered."""

    call: ToolCall

    message: ToolMessage
    """What the model reads; its `tool_call_id` is the call's id."""

    args: dict[str, Any]
    """The arguments that the tool ran with, after validation and hooks."""

    success: bool = True

    duration_ms: float = 0.0

    raised: bool = False
    """True when the tool, or a hook before it, raised."""

    reused: bool = False
    """True when the answer came from an earlier call."""

    verdict: str = ""
    """Why the call did not run, or what is not known of it: `"denied"` by a guard, `"rejected"` by a person,
    `"unknown"` when it was cut off, `"missing"` when there is no such tool; else empty."""

    notes: list[dict[str, Any]] | None = None
    """What the gate noted of the call."""

    def record(self) -> dict[str, Any]:
        """Return the entry for `NodeResult.tool_calls`."""
        entry: dict[str, Any] = {
            "name": self.call.name,
            "args": self.args,
            "result": self.message.content,
            "success": self.success,
        }
        if self.reused:
            entry["reused"] = True
        if self.call.problem:
            entry["invalid"] = True
            entry["raw_args"] = self.call.raw
        return entry
