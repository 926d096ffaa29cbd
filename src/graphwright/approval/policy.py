"""Which tool calls need approval, who gives it, and what holds when nobody does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from graphwright.approval.base import ApprovalHandler
from graphwright.approval.handlers import as_handler
from graphwright.exceptions import ConfigurationError

__all__ = ["ApprovalPolicy"]

DenyScope = Literal["session", "user", "agent"]


@dataclass(frozen=True, kw_only=True)
class ApprovalPolicy:
    """The calls of an agent that need a person's yes.

    Without a `handler`, a run that has a log pauses and is answered by `resume`; a run without one refuses the call.

    Raises:
        ConfigurationError: a value does not fit; the message names it.
    """

    tools: Sequence[str]
    """Patterns such as `"delete_*"`. They match the name that the model calls and those that the tool's author knows:
    the function's, or `name`, `server.name` and `server_name` of a tool on an MCP server. Case counts."""

    handler: ApprovalHandler | Callable[..., Any] | None = None
    """Who decides: a handler, or a function of the request, sync or async, that returns a decision or a bool."""

    timeout: float | None = 300.0
    """Seconds that the handler has for one request; `None` is no limit."""

    on_timeout: Literal["deny", "allow"] = "deny"
    """What becomes of a call on which the handler did not decide in time."""

    include_arguments: bool = True
    """Whether the arguments are shown at all."""

    redact_sensitive: bool = True
    """Whether credentials are taken out of what is shown. What runs is never changed by it."""

    max_pending: int = 10
    """Most requests that wait for the handler at once; a call beyond it is denied."""

    max_retries_after_deny: int = 3
    """How often a tool may be denied within `deny_window` before it is refused without asking; at least once."""

    deny_window: float = 600.0
    """Seconds."""

    deny_scope: DenyScope = "session"
    """Whose denials count together: those of the session (of the run, where it has none), of the user, or all of the
    agent's. They are kept in this process."""

    sequential: bool = False
    """Whether the handler is asked one thing at a time."""

    context_messages: int = 3
    """How many of the last messages a request shows."""

    metadata: Mapping[str, Any] | None = None
    """Put into every request."""

    on_decision: Callable[..., Any] | None = None
    """`on_decision(request, decision)`, sync or async, is told of every decision. What it raises is logged."""

    pause_timeout: float | None = None
    """Seconds for which a paused run takes an answer; after them the call is denied. `None` waits for ever."""

    _handler: ApprovalHandler | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.tools, (str, Mapping)) or not isinstance(self.tools, (Sequence, set, frozenset)):
            raise ConfigurationError(f"tools is {self.tools!r}; give a list of patterns such as ['delete_*']")
        for pattern in self.tools:
            if not isinstance(pattern, str) or not pattern:
                raise ConfigurationError(f"tools has {pattern!r} in it; give patterns as text, such as 'delete_*'")
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "_handler", as_handler(self.handler) if self.handler is not None else None)
        if self.on_timeout not in ("deny", "allow"):
            raise ConfigurationError(f"on_timeout is {self.on_timeout!r}; use 'deny' or 'allow'")
        if self.deny_scope not in get_args(DenyScope):
            raise ConfigurationError(f"deny_scope is {self.deny_scope!r}; use 'session', 'user' or 'agent'")
        _check_seconds(timeout=self.timeout, pause_timeout=self.pause_timeout)
        if self.deny_window is None:
            raise ConfigurationError("deny_window is None; give seconds above 0")
        _check_seconds(deny_window=self.deny_window)
        _check_counts(1, max_pending=self.max_pending)
        _check_counts(0, max_retries_after_deny=self.max_retries_after_deny, context_messages=self.context_messages)
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise ConfigurationError(f"metadata is {self.metadata!r}; give a dict")
        if self.on_decision is not None and not callable(self.on_decision):
            raise ConfigurationError(f"on_decision is {self.on_decision!r}; give a function of (request, decision)")

    @property
    def approval_handler(self) -> ApprovalHandler | None:
        """The handler, also where a plain function was given; `None` where there is none."""
        return self._handler

    def requires_approval(self, name: str, *other_names: str) -> bool:
        """Return whether a call of the tool needs approval, by any of the names it has."""
        return any(fnmatchcase(each, pattern) for each in (name, *other_names) for pattern in self.tools)

    def idle_patterns(self, names: Sequence[str]) -> list[str]:
        """Return the patterns that match none of the names."""
        return [pattern for pattern in self.tools if not any(fnmatchcase(name, pattern) for name in names)]


def _check_seconds(**values: Any) -> None:
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ConfigurationError(f"{name} is {value!r}; give seconds above 0")


def _check_counts(least: int, **values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigurationError(f"{name} is {value!r}; give a whole number of at least {least}")
