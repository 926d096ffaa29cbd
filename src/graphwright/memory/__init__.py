"""Keep what was learned in one run for later ones, each caller's apart."""

from __future__ import annotations

from graphwright.memory.base import MemoryIsolationError, MemoryProvider, MemoryResult, MemoryScope
from graphwright.memory.in_memory import InMemoryProvider
from graphwright.memory.sqlite import SQLiteMemoryProvider

__all__ = [
    "InMemoryProvider",
    "MemoryIsolationError",
    "MemoryProvider",
    "MemoryResult",
    "MemoryScope",
    "SQLiteMemoryProvider",
]
