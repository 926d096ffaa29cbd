"""Who asks: the caller of a run, and the one key by which callers are kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from graphwright.exceptions import ConfigurationError

__all__ = ["CallerContext", "IsolationKey", "calling_as", "get_current_caller", "get_current_session_id"]

IsolationKey = str
"""`"tenant::user"` when the caller has a tenant, else the plain user id."""


@dataclass
class CallerContext:
    """Identity of whoever started a run; every tool, hook and nested agent of the run can read it."""

    user_id: str | None = None
    """Who the user is. `None` is an anonymous caller."""

    tenant_id: str | None = None
    """Organisation of the user. Two tenants never share data, also when their user ids are equal."""

    bearer_token: str | None = field(default=None, repr=False)
    """Token sent to servers on the caller's behalf. Never logged or stored."""

    roles: set[str] = field(default_factory=set)

    scopes: set[str] = field(default_factory=set)

    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tenant_id is not None and ":" in self.tenant_id:
            raise ConfigurationError(f"tenant_id {self.tenant_id!r} may not contain ':'; it separates tenant and user")
        if self.user_id is not None and "::" in self.user_id:
            raise ConfigurationError(f"user_id {self.user_id!r} may not contain '::'; it separates tenant and user")
        self.roles = set(self.roles)
        self.scopes = set(self.scopes)

    @property
    def isolation_key(self) -> IsolationKey | None:
        """The key that memory, cache, conversations and logs are kept under; `None` for an anonymous caller."""
        if self.user_id is None:
            return None
        return f"{self.tenant_id}::{self.user_id}" if self.tenant_id else self.user_id


_caller: ContextVar[CallerContext | None] = ContextVar("graphwright_caller", default=None)
_session: ContextVar[str | None] = ContextVar("graphwright_session", default=None)


def get_current_caller() -> CallerContext | None:
    """Return the caller of the run that is going on here, or `None` outside of a run."""
    return _caller.get()


def get_current_session_id() -> str | None:
    """Return the conversation session of the run that is going on here, when it has one."""
    return _session.get()


@contextmanager
def calling_as(caller: CallerContext | None, *, session_id: str | None = None) -> Iterator[None]:
    """Make `caller` and `session_id` the current ones inside the block; `None` keeps the ambient value."""
    caller_token = _caller.set(caller) if caller is not None else None
    session_token = _session.set(session_id) if session_id is not None else None
    try:
        yield
    finally:
        if session_token is not None:
            _session.reset(session_token)
        if caller_token is not None:
            _caller.reset(caller_token)
