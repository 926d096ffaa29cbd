"""What a cache of answers is asked, what it gives back, and the port of the places where it keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from graphwright.caller import IsolationKey

__all__ = ["CacheBackend", "CacheEntry", "CacheLookup", "CacheQuery", "CacheStats", "CachedAnswer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheQuery:
    """A question, and everything else that its answer depends on."""

    question: str

    owner: IsolationKey
    """Who asks."""

    session_id: str | None = None

    setting: str = ""
    """A digest of the agent, its model, instructions and tools, and of what was said before. Answers to one setting
    are never given in another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedAnswer:
    """An answer that was given before."""

    text: str

    output: Any = None
    """The output of the run, as plain data."""

    question: str = ""
    """What was asked then."""

    similarity: float = 1.0
    """How like the two questions are; 1.0 for the same."""

    stored_at: float = 0.0
    """Seconds since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheLookup:
    """What a cache found. Hand it to `store` with the new answer when it found none."""

    answer: CachedAnswer | None = None

    generation: int | None = None
    """How often the partition had been emptied when it was looked at; `None` when the cache could not be asked."""

    vector: tuple[float, ...] | None = None
    """That of the question, where an embedder made one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheStats:
    """What a cache has done since it was made."""

    hits: int = 0
    misses: int = 0
    stored: int = 0
    invalidations: int = 0
    errors: int = 0
    """Times that the place of the answers, the embedder or a stored value failed; each counted as a miss."""
    entries: int | None = None
    """How many answers there are now; `None` when the cache could not be asked."""

    @property
    def hit_rate(self) -> float:
        """Hits as a part of all questions; 0 without any."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheEntry:
    """One value in its place. Every name is a digest: none tells whom or what it is of."""

    partition: str
    """Who may be given it."""

    group: str
    """The setting."""

    name: str
    """The question; unique in its group."""

    owner: str
    """Whose run it comes from."""

    value: bytes

    seconds: float
    """How long it is kept."""


class CacheBackend(Protocol):
    """Keeps values that run out. What it raises counts as a miss."""

    async def get(self, partition: str, group: str, name: str) -> tuple[bytes | None, int]:
        """Return one value, and the generation of its partition."""
        ...

    async def group(self, partition: str, group: str) -> list[bytes]:
        """Return the values of a group, at most about a thousand: those that are kept longest."""
        ...

    async def put(self, entry: CacheEntry, *, generation: int, most_of_partition: int, most: int) -> bool:
        """Keep a value, unless the partition was emptied since; return whether it was kept.

        Where there are too many, what runs out first goes.
        """
        ...

    async def invalidate(self, partition: str) -> int:
        """Empty a partition and raise its generation; return how many values there were."""
        ...

    async def purge_owner(self, owner: str, partition: str) -> int:
        """Delete every value of this owner's runs, raise the generation of `partition`; return how many there were."""
        ...

    async def count(self) -> int:
        """Return how many values there are."""
        ...

    async def close(self) -> None:
        """Release what the backend holds."""
        ...
