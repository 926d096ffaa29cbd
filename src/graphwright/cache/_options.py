"""Check what a cache is made with, and turn its shorthands into what it uses."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast

from graphwright.cache.base import CacheBackend
from graphwright.cache.memory import MemoryBackend
from graphwright.exceptions import ConfigurationError

__all__ = ["Embed", "backend_of", "check_above_zero", "check_count", "embed_of", "names_of", "patterns_of"]

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]


def backend_of(backend: Any, redis_url: str | None, timeout: float, *, needs_key: bool) -> CacheBackend:
    """Return where answers are kept."""
    if redis_url is not None and backend != "redis":
        raise ConfigurationError(f"redis_url is given and backend is {backend!r}; use backend='redis'")
    if backend == "memory":
        return MemoryBackend()
    if needs_key:
        raise ConfigurationError(
            f"encrypt_values=True with backend={backend!r} needs encryption_key=, or no process could read the values "
            "of another; give 32 random bytes or their base64"
        )
    if backend == "redis":
        from graphwright.cache.redis import RedisBackend

        return RedisBackend(redis_url or "redis://localhost:6379", timeout=timeout)
    if isinstance(backend, str) or not callable(getattr(backend, "put", None)):
        raise ConfigurationError(f"backend is {backend!r}; use 'memory', 'redis' or an object with a backend's methods")
    return cast("CacheBackend", backend)


def embed_of(embedding: Any) -> Embed | None:
    """Return what makes vectors; `None` without an embedder."""
    if embedding is None:
        return None
    # LangChain's embeddings have the same method under another name.
    for name in ("embed", "aembed_documents"):
        found = getattr(embedding, name, None)
        if callable(found):
            return cast("Embed", found)
    raise ConfigurationError(
        f"embedding is {embedding!r}; give an object with 'async embed(texts)', LangChain embeddings, or None to find "
        "only the very same question"
    )


def patterns_of(patterns: Mapping[str, float]) -> list[tuple[re.Pattern[str], float]]:
    """Return the patterns of questions with the seconds that their answers are kept."""
    made = []
    for pattern, seconds in patterns.items():
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
            raise ConfigurationError(f"ttl_patterns[{pattern!r}] is {seconds!r}; give seconds, or 0 to keep no answer")
        try:
            made.append((re.compile(pattern, re.IGNORECASE), float(seconds)))
        except (re.error, TypeError) as error:
            raise ConfigurationError(f"ttl_patterns: {pattern!r} is no regular expression: {error}") from error
    return made


def names_of(keyword: str, names: Collection[str] | None) -> tuple[str, ...]:
    """Return patterns for names of tools."""
    if isinstance(names, str):
        raise ConfigurationError(f"{keyword} is {names!r}; give a list of names or patterns")
    return tuple(names or ())


def check_above_zero(**values: float) -> None:
    """Refuse what is no number of seconds."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise ConfigurationError(f"{name} is {value!r}; give seconds above 0")


def check_count(**values: int) -> None:
    """Refuse what is no number of things."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{name} is {value!r}; give a number of at least 1")
