"""Cached values in the memory of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from heapq import nlargest, nsmallest

from graphwright.cache.base import CacheEntry

__all__ = ["MemoryBackend"]

_MOST_OF_GROUP = 1000


class MemoryBackend:
    """Keeps values in a dict. They end with the process."""

    def __init__(self) -> None:
        """Begin empty."""
        # Runs of several event loops may share it; nothing is awaited while the lock is held.
        self._lock = threading.Lock()
        self._partitions: dict[str, dict[tuple[str, str], tuple[float, CacheEntry]]] = {}
        self._generations: dict[str, int] = {}
        self._count = 0

    async def get(self, partition: str, group: str, name: str) -> tuple[bytes | None, int]:
        """Return one value, and the generation of its partition."""
        with self._lock:
            kept = self._partitions.get(partition, {}).get((group, name))
            value = kept[1].value if kept is not None and kept[0] > time.monotonic() else None
            return value, self._generations.get(partition, 0)

    async def group(self, partition: str, group: str) -> list[bytes]:
        """Return the values of a group, at most a thousand: those that are kept longest."""
        now = time.monotonic()
        with self._lock:
            kept = [
                (ends, entry.value)
                for (its_group, _), (ends, entry) in self._partitions.get(partition, {}).items()
                if its_group == group and ends > now
            ]
        return [value for _, value in nlargest(_MOST_OF_GROUP, kept)]

    async def put(self, entry: CacheEntry, *, generation: int, most_of_partition: int, most: int) -> bool:
        """Keep a value, unless the partition was emptied since; what runs out first makes room."""
        with self._lock:
            if self._generations.get(entry.partition, 0) != generation:
                return False
            self._drop(entry.partition, [(entry.group, entry.name)])
            values = self._partitions.setdefault(entry.partition, {})
            values[entry.group, entry.name] = (time.monotonic() + entry.seconds, entry)
            self._count += 1
            if len(values) > most_of_partition:
                over = len(values) - most_of_partition
                self._drop(entry.partition, nsmallest(over, values, key=lambda place: values[place][0]))
            if self._count > most:
                self._make_room(most)
            return True

    async def invalidate(self, partition: str) -> int:
        """Empty a partition and raise its generation; return how many values there were."""
        with self._lock:
            return self._empty(partition)

    async def purge_owner(self, owner: str, partition: str) -> int:
        """Delete every value of this owner's runs, raise the generation of `partition`; return how many there were."""
        with self._lock:
            self._generations[partition] = self._generations.get(partition, 0) + 1
            before = self._count
            for name in list(self._partitions):
                values = self._partitions[name]
                self._drop(name, [place for place, (_, entry) in values.items() if entry.owner == owner])
            return before - self._count

    async def count(self) -> int:
        """Return how many values there are."""
        with self._lock:
            self._drop_expired()
            return self._count

    async def close(self) -> None:
        """Forget everything."""
        with self._lock:
            for partition in list(self._partitions):
                self._empty(partition)

    def _empty(self, partition: str) -> int:
        self._generations[partition] = self._generations.get(partition, 0) + 1
        dropped = len(self._partitions.pop(partition, {}))
        self._count -= dropped
        return dropped

    def _drop(self, partition: str, places: Iterable[tuple[str, str]]) -> None:
        values = self._partitions.get(partition)
        if values is None:
            return
        for place in places:
            if values.pop(place, None) is not None:
                self._count -= 1
        if not values:
            del self._partitions[partition]

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for partition, values in list(self._partitions.items()):
            self._drop(partition, [place for place, (ends, _) in values.items() if ends <= now])

    def _make_room(self, most: int) -> None:
        """Drop what has run out, else a twentieth at once, so that not every new value looks at all of them."""
        self._drop_expired()
        over = self._count - most
        if over <= 0:
            return
        places = (
            (ends, partition, place)
            for partition, values in self._partitions.items()
            for place, (ends, _) in values.items()
        )
        for _, partition, place in nsmallest(over + most // 20, places):
            self._drop(partition, [place])
