"""What a conversation store keeps, and what it promises to whoever reads and writes it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, get_args, runtime_checkable

from graphwright.exceptions import ConfigurationError

__all__ = [
    "ANY_OWNER",
    "AppendingStore",
    "ConversationStore",
    "Message",
    "MessageRole",
    "SessionInfo",
    "generate_session_id",
]

MessageRole = Literal["user", "assistant", "system", "tool"]

_ROLES = frozenset(get_args(MessageRole))


class _AnyOwner:
    def __repr__(self) -> str:
        return "ANY_OWNER"


ANY_OWNER: Final[Any] = _AnyOwner()
"""Stands for every owner, where `None` would mean that nobody owns the session."""


@dataclass
class Message:
    """One message of a stored conversation."""

    role: MessageRole
    """`user`, `assistant`, `system` or `tool`."""

    content: str
    """The text, as a person would read it."""

    metadata: dict[str, Any] = field(default_factory=dict)
    """Whatever belongs to the message: plain values, NaN, times and bytes come back as they were."""

    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it was said. Only told, never used for the order. A time without a zone is taken as UTC."""

    seq: int = field(default=0, compare=False)
    """Place in its session, given by the store and only ever growing; 0 for a message that was not loaded."""

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ConfigurationError(f"the role {self.role!r} is unknown; use user, assistant, system or tool")
        if self.created_at.tzinfo is None:
            self.created_at = self.created_at.replace(tzinfo=UTC)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a dict; the time as ISO text."""
        return {
            "role": self.role,
            "content": self.content,
            "metadata": dict(self.metadata),
            "created_at": self.created_at.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Message:
        """Return the message that `to_dict` wrote; metadata and time may be missing."""
        at = data.get("created_at")
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        return cls(
            role=data["role"],
            content=data["content"],
            metadata=dict(data.get("metadata") or {}),
            created_at=at or datetime.now(UTC),
        )


@dataclass
class SessionInfo:
    """What is known of a session besides its messages."""

    session_id: str
    user_id: str | None = None
    """The owner. `None`: the session belongs to nobody."""
    title: str | None = None
    message_count: int = 0
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    """When the session counts as deleted. `None`: never."""
    version: int = 0
    """The highest sequence number that the session ever gave; grows with every change of its messages."""


def generate_session_id(prefix: str = "sess") -> str:
    """Return an id that cannot be guessed: the prefix, an underscore and 32 random hex digits."""
    return f"{prefix}_{secrets.token_hex(16)}"


@runtime_checkable
class ConversationStore(Protocol):
    """Keeps conversations. These five methods are all that a store of your own needs.

    A store does not ask who is calling: the agent checks the owner of a session before it uses one. Whoever uses a
    store directly has to do the same.
    """

    async def load_messages(self, session_id: str) -> list[Message]:
        """Return the messages in the order in which they were written; empty when there is no such session."""
        ...

    async def save_messages(self, session_id: str, messages: list[Message]) -> None:
        """Replace the messages of a session, creating it if it is new."""
        ...

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with its messages; return whether there was one."""
        ...

    async def list_sessions(self, *, user_id: str | None = None, limit: int = 50, offset: int = 0) -> list[SessionInfo]:
        """Return sessions, the one written last first; with `user_id` only those of this owner."""
        ...

    async def close(self) -> None:
        """Release what the store holds."""
        ...


@runtime_checkable
class AppendingStore(ConversationStore, Protocol):
    """A store that writes only what is new, and settles in one transaction who owns a session and who was first.

    All stores of this package are; `as_appending` makes one of any other.
    """

    async def load_messages(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> list[Message]:
        """Return the messages in the order of their `seq`.

        `after` leaves out what is not beyond that sequence number. `last` keeps the newest ones: a reply and the
        results of its calls stay or go together, and the user's last message stays, so there may be a few more or
        fewer.
        """
        ...

    async def append_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        expected_version: int | None = None,
        owner: str | None = ANY_OWNER,
        title: str | None = None,
    ) -> int:
        """Add messages at the end, creating the session if it is new, and return its new version.

        With `expected_version` the append happens only if the session still is at that version (0: it has no
        messages yet); repeating one that had arrived after all changes nothing and returns the version. With an
        `owner` it happens only if the session is theirs (`None`: nobody's), and a new one becomes theirs. A `title`
        is set where there is none. Everything happens, or nothing.

        Raises:
            ConversationConflict: somebody else has written meanwhile.
            SessionAccessDenied: the session belongs to another owner.
            StoreUnavailable: the store could not be reached. Whether the messages arrived may be unknown, so repeat
                the call with its `expected_version`.
            UnstorableError: a value cannot be kept; nothing was touched.
        """
        ...

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> SessionInfo:
        """Return the session of this owner, creating it if it is new; of all who try at once, one succeeds.

        With `adopt`, a session that nobody owns becomes theirs; without, it is refused.

        Raises:
            SessionAccessDenied: the session belongs to another owner, or to nobody.
        """
        ...

    async def get_session(self, session_id: str) -> SessionInfo | None:
        """Return what is known of a session, or `None` when there is no such session."""
        ...

    async def update_session(
        self,
        session_id: str,
        *,
        user_id: Any = ...,
        title: Any = ...,
        metadata: Any = ...,
        expires_at: Any = ...,
    ) -> bool:
        """Change what is given and leave the rest; return whether there is such a session."""
        ...

    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, offset: int = 0, unowned: bool = False
    ) -> list[SessionInfo]:
        """Return sessions, the one written last first: all, those of `user_id`, or those that nobody owns."""
        ...

    async def cleanup_expired(self) -> int:
        """Delete the sessions whose time is over; return how many there were. They are never shown anyway."""
        ...

    async def purge_user(self, user_id: str) -> int:
        """Delete every session of this owner; return how many there were."""
        ...
