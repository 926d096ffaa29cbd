"""Answers that are kept for a while and given again, to whoever they were given before."""

from graphwright.cache.base import (
    CacheBackend,
    CachedAnswer,
    CacheEntry,
    CacheLookup,
    CacheQuery,
    CacheStats,
)
from graphwright.cache.memory import MemoryBackend
from graphwright.cache.redis import RedisBackend
from graphwright.cache.semantic import CacheScope, SemanticCache

__all__ = [
    "CacheBackend",
    "CacheEntry",
    "CacheLookup",
    "CacheQuery",
    "CacheScope",
    "CacheStats",
    "CachedAnswer",
    "MemoryBackend",
    "RedisBackend",
    "SemanticCache",
]
