"""Keep memories in this process, for tests and short-lived agents."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from graphwright.caller import IsolationKey
from graphwright.exceptions import ConfigurationError
from graphwright.memory.base import (
    MemoryResult,
    MemoryScope,
    checked_content,
    partition_of,
    purged_partition,
    words_of,
)

__all__ = ["InMemoryProvider"]

_Entry = tuple[IsolationKey, str, dict[str, Any]]


class InMemoryProvider:
    """Memories of this process, found by their words; the oldest goes when there are more than `max_entries`."""

    def __init__(self, *, max_entries: int = 10_000, scope: MemoryScope = MemoryScope.PER_USER) -> None:
        if max_entries < 1:
            raise ConfigurationError(f"max_entries is {max_entries!r}; it must be 1 or more")
        self._most = max_entries
        self._shared = MemoryScope(scope) is MemoryScope.SHARED
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def search(self, query: str, *, limit: int = 5, user_id: str | None = None) -> list[MemoryResult]:
        """Return the memories that hold the query or words of it, best first."""
        owner = partition_of(user_id)
        sought, words = query.strip().lower(), set(words_of(query))
        found = [
            MemoryResult(content, score, memory_id, copy.deepcopy(metadata))
            for memory_id, (whose, content, metadata) in self._entries.items()
            if (self._shared or whose == owner) and (score := _score(sought, words, content)) > 0
        ]
        found.sort(key=lambda result: result.score, reverse=True)
        return found[: max(limit, 0)]

    async def add(self, content: str, *, metadata: Mapping[str, Any] | None = None, user_id: str | None = None) -> str:
        """Keep `content` and return its id."""
        memory_id = uuid4().hex
        self._entries[memory_id] = (
            partition_of(user_id),
            checked_content(content),
            copy.deepcopy(dict(metadata or {})),
        )
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return memory_id

    async def delete(self, memory_id: str, *, user_id: str | None = None) -> bool:
        """Remove a memory of this caller's and say whether there was one."""
        owner, entry = partition_of(user_id), self._entries.get(memory_id)
        if entry is None or not (self._shared or entry[0] == owner):
            return False
        del self._entries[memory_id]
        return True

    async def purge_user(self, user_id: str | None, *, tenant_id: str | None = None) -> int:
        """Remove everything that a caller stored, also where all is shared."""
        owner = purged_partition(user_id, tenant_id)
        theirs = [memory_id for memory_id, entry in self._entries.items() if entry[0] == owner]
        for memory_id in theirs:
            del self._entries[memory_id]
        return len(theirs)

    async def close(self) -> None:
        """Do nothing: there is nothing held open."""


def _score(sought: str, words: set[str], content: str) -> float:
    held = content.lower()
    if sought and sought in held:
        return 0.5 + 0.5 * len(sought) / len(held)
    return 0.49 * len(words & set(words_of(held))) / len(words) if words else 0.0
