"""What a memory is asked and gives back, and how the memories of callers are kept apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from graphwright.caller import CallerContext, IsolationKey, isolation_key_of
from graphwright.exceptions import ConfigurationError

__all__ = [
    "MemoryIsolationError",
    "MemoryProvider",
    "MemoryResult",
    "MemoryScope",
    "checked_content",
    "partition_of",
    "purged_partition",
    "words_of",
]

_WORD = re.compile(r"\w+")
_MOST_WORDS = 64


class MemoryIsolationError(ConfigurationError):
    """A memory was asked in the name of somebody whom no caller can be."""


class MemoryScope(Enum):
    """Who sees what is remembered."""

    PER_USER = "per_user"
    """Each caller sees their own; callers without an id share a partition that no caller with an id sees."""

    SHARED = "shared"
    """Everybody sees everything."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """A memory that was found."""

    content: str

    score: float
    """How well it fits the query, from 0 to 1."""

    memory_id: str

    metadata: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class MemoryProvider(Protocol):
    """Where memories are kept. `user_id` is the isolation key of the caller; `None` is an anonymous one."""

    async def search(self, query: str, *, limit: int = 5, user_id: str | None = None) -> list[MemoryResult]:
        """Return the memories that fit `query`, best first."""
        ...

    async def add(self, content: str, *, metadata: Mapping[str, Any] | None = None, user_id: str | None = None) -> str:
        """Keep `content` and return its id."""
        ...

    async def delete(self, memory_id: str, *, user_id: str | None = None) -> bool:
        """Remove a memory of this caller's and say whether there was one."""
        ...

    async def purge_user(self, user_id: str | None, *, tenant_id: str | None = None) -> int:
        """Remove everything that a caller stored, and return how many memories that were."""
        ...

    async def close(self) -> None:
        """Give back what the provider holds open."""
        ...


def partition_of(user_id: str | None) -> IsolationKey:
    """Return the key that the memories of a caller are kept under.

    Raises:
        MemoryIsolationError: `user_id` is text that no caller has as their key.
    """
    if user_id is None:
        return IsolationKey.ANONYMOUS
    if isinstance(user_id, IsolationKey):
        return user_id
    tenant, separator, user = user_id.partition("::")
    if not user_id or (separator and (not tenant or not user or ":" in tenant or "::" in user)):
        raise MemoryIsolationError(
            f"user_id {user_id!r} is no caller's; pass CallerContext(...).isolation_key, or None for the anonymous"
        )
    return IsolationKey(user_id)


def purged_partition(user_id: str | None, tenant_id: str | None) -> IsolationKey:
    """Return the key of the caller that `purge_user` names."""
    if isinstance(user_id, IsolationKey) or tenant_id is None:
        return partition_of(user_id)
    return isolation_key_of(CallerContext(user_id=user_id, tenant_id=tenant_id))


def checked_content(content: str) -> str:
    """Return `content`, or refuse what a store could not give back as it was.

    Raises:
        ConfigurationError: it is blank, or holds NUL or half of a surrogate pair.
    """
    if not content.strip():
        raise ConfigurationError(f"content {content!r} is blank; there is nothing in it to remember")
    if "\x00" in content or not _encodable(content):
        raise ConfigurationError(
            f"content {content[:80]!r} holds NUL or a lone surrogate, which no store keeps; remove it before adding"
        )
    return content


def words_of(text: str) -> list[str]:
    """Return the different words of `text` in lower case, in their order; at most 64."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(text) if _encodable(word)))[:_MOST_WORDS]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
