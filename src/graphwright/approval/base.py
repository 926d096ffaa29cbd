"""What a person or a service is asked before a tool call runs, and the port of whoever answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from graphwright.interrupts import ApprovalDecision

__all__ = ["ApprovalDecision", "ApprovalHandler", "ApprovalRequest"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRequest:
    """A tool call that waits for a yes or a no."""

    tool_name: str
    """The name that the model calls."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """The arguments as they are shown: without credentials, or none at all where the policy says so."""
    request_id: str = field(default_factory=lambda: uuid4().hex)
    """32 hex digits; a decision names it."""
    agent_id: str | None = None
    caller_user_id: str | None = None
    context_summary: str = ""
    """The last messages of the conversation, cut short and without credentials."""
    timestamp: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    timeout: float | None = None
    """Seconds for which an answer is waited for; `None` is no limit."""
    metadata: dict[str, Any] = field(default_factory=dict)
    tool_annotations: dict[str, Any] = field(default_factory=dict)
    """What is known of the tool: `description`, `risk_level`, `idempotent`, `untrusted`, `other_names`."""
    raw_arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """The arguments that would run. They stay in this process: neither `to_dict` nor a webhook has them."""

    def to_dict(self) -> dict[str, Any]:
        """Return what may leave the process, as plain data."""
        return {
            "request_id": self.request_id,
            "tool_name": self.tool_name,
            "arguments": self.arguments,
            "agent_id": self.agent_id,
            "caller_user_id": self.caller_user_id,
            "context_summary": self.context_summary,
            "timestamp": self.timestamp,
            "timeout": self.timeout,
            "metadata": self.metadata,
            "tool_annotations": self.tool_annotations,
        }

    def to_bytes(self) -> bytes:
        """Return `to_dict()` as the JSON text that is sent and signed: keys sorted, in ASCII."""
        return json.dumps(_sorted(self.to_dict()), default=str).encode()

    def compute_hmac(self, secret: str | bytes) -> str:
        """Return the HMAC-SHA256 of `to_bytes()` in hex, by which a receiver can tell who sent the request."""
        key = secret.encode() if isinstance(secret, str) else secret
        return hmac.new(key, self.to_bytes(), hashlib.sha256).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(entry) for entry in value] if isinstance(value, (list, tuple)) else value


class ApprovalHandler(ABC):
    """Answers approval requests. What it raises denies the call."""

    @abstractmethod
    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision | bool:
        """Return the decision; it is awaited for the policy's `timeout`, and cancelled then."""
