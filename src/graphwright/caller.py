"""Who asks: the caller of a run, and the one key by which callers are kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

from graphwright.exceptions import ConfigurationError

__all__ = [
    "CallerContext",
    "IsolationKey",
    "calling_as",
    "get_current_caller",
    "get_current_session_id",
    "isolation_key_of",
]


class IsolationKey(str):
    """What a caller's data is kept under: `"tenant::user"` when there is a tenant, else the plain user id.

    Only `CallerContext.isolation_key` and `isolation_key_of` make them. Whatever keeps data of callers takes one.
    """

    __slots__ = ()

    ANONYMOUS: ClassVar[IsolationKey]
    """The partition of callers without a user id. No caller has it as their own key: no user id holds `::`."""


IsolationKey.ANONYMOUS = IsolationKey("::anonymous")


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
        if self.user_id == "":
            raise ConfigurationError("user_id '' is nobody's; give the user's id, or None for an anonymous caller")
        if self.user_id is not None and "::" in self.user_id:
            raise ConfigurationError(f"user_id {self.user_id!r} may not contain '::'; it separates tenant and user")
        self.roles = set(self.roles)
        self.scopes = set(self.scopes)

    @property
    def isolation_key(self) -> IsolationKey | None:
        """The key that memory, cache, conversations and logs are kept under; `None` for an anonymous caller."""
        if self.user_id is None:
            return None
        return IsolationKey(f"{self.tenant_id}::{self.user_id}" if self.tenant_id else self.user_id)


def isolation_key_of(caller: CallerContext | None) -> IsolationKey:
    """Return the key of a caller; whoever has no user id shares the partition of the anonymous."""
    key = caller.isolation_key if caller is not None else None
    return IsolationKey.ANONYMOUS if key is None else key


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
