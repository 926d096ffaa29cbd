"""The words of a pause: what a run waits for, how it is answered, and the signal that carries it outward."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwright.exceptions import InterruptError

__all__ = [
    "APPROVAL",
    "BUDGET",
    "HUMAN",
    "MCP_INPUT",
    "QUESTION",
    "ApprovalDecision",
    "Interrupt",
    "Interrupted",
    "read_approval",
]

APPROVAL = "approval"
"""A tool call waits for a yes or a no."""

QUESTION = "question"
"""The model asks the user typed questions."""

HUMAN = "human"
"""A node of the graph waits for a person's decision."""

BUDGET = "budget"
"""The run has used what it may spend, and asks for more."""

MCP_INPUT = "mcp_input"
"""An MCP server asks for input."""


@dataclass(slots=True)
class Interrupt:
    """One thing that a paused run waits for."""

    id: str
    """Answers are given by it. It stays the same however often the run is read."""

    kind: str
    """One of the kinds of this module, or a word of your own."""

    value: dict[str, Any]
    """What whoever answers is shown."""

    path: str = ""
    """Where in the run it was asked, as a frame of the run log."""

    asked_at: float = field(default_factory=time.time)
    """Seconds since the epoch."""

    expires_at: float | None = None
    """Seconds since the epoch after which no answer is taken; `None` waits for ever."""


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's decision on one tool call."""

    approved: bool
    modified_arguments: dict[str, Any] | None = None
    """Arguments to run with in place of the model's."""
    reviewer_id: str | None = None
    """Who decided; kept in the run log."""
    reason: str | None = None
    """What the model reads of a denial."""
    timestamp: float | None = None
    decided_by: str = "reviewer"
    trace: Any = None
    always: bool = False
    """Approve later calls of the same tool in this run without asking."""


class Interrupted(BaseException):
    """A run pauses. A signal, not an error: it passes every `except Exception`, and never leaves the engine."""

    def __init__(self, pending: Sequence[Interrupt]) -> None:
        self.pending = list(pending)
        super().__init__(", ".join(f"{item.kind} {item.id}" for item in self.pending))


_APPROVAL_KEYS = {
    "approved": bool,
    "modified_arguments": dict,
    "args": dict,
    "params": dict,
    "reason": str,
    "feedback": str,
    "always": bool,
    "reviewer_id": str,
    "tool_call_id": str,
    "timestamp": (int, float),
}


def read_approval(answer: Any) -> ApprovalDecision:
    """Return the decision that an answer states: `True`, `False`, a decision, or a dict with `approved` in it.

    The dict may hold `args` to run with instead, `feedback` for the model, and `always`.

    Raises:
        InterruptError: it is anything else; what merely looks like a yes approves nothing.
    """
    if isinstance(answer, ApprovalDecision):
        if answer.approved is not True and answer.approved is not False:
            raise InterruptError(f"approved is {answer.approved!r} in the decision; give True or False")
        return answer
    if answer is True or answer is False:
        return ApprovalDecision(answer)
    if not isinstance(answer, Mapping) or "approved" not in answer:
        raise InterruptError(
            f"{answer!r} is no decision on a tool call; answer True, False, or a dict such as "
            '{"approved": True} with "args", "feedback" or "always" in it'
        )
    for key, value in answer.items():
        kind: Any = _APPROVAL_KEYS.get(key)
        if kind is None:
            raise InterruptError(f"the decision has the unknown key {key!r}; it takes {', '.join(_APPROVAL_KEYS)}")
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise InterruptError(f"{key} is {value!r} in the decision; it has to be of another type")
    if not isinstance(answer["approved"], bool):
        raise InterruptError(f"approved is {answer['approved']!r} in the decision; give True or False")
    edited = next(
        (answer[key] for key in ("modified_arguments", "args", "params") if answer.get(key) is not None), None
    )
    return ApprovalDecision(
        answer["approved"],
        modified_arguments=dict(edited) if edited is not None else None,
        reviewer_id=answer.get("reviewer_id"),
        reason=answer.get("reason") or answer.get("feedback"),
        timestamp=answer.get("timestamp"),
        always=bool(answer.get("always")),
    )
