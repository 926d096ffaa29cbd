"""Answer a question that was answered before: the very same one, or with an embedder one that means the same."""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import re
import time
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar

from graphwright.cache._options import (
    backend_of,
    check_above_zero,
    check_count,
    embed_of,
    names_of,
    patterns_of,
)
from graphwright.cache._sealing import Kept, Sealer, likeness, pack, unit, unpack
from graphwright.cache.base import CacheBackend, CachedAnswer, CacheEntry, CacheLookup, CacheQuery, CacheStats
from graphwright.caller import CallerContext, IsolationKey, isolation_key_of
from graphwright.exceptions import ConfigurationError, StoreUnavailable
from graphwright.models.base import Embedder
from graphwright.tools.base import Tool

__all__ = ["CacheScope", "SemanticCache"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
CacheScope = Literal["per_user", "per_session", "shared"]
"""Who is given an answer: the user who got it, the same user in the same session, or everybody."""

_AT_A_TIME = 100
_ROUNDING = 1e-6
"""What is lost where a vector is kept in 32 bits."""
_FIGURES = re.compile(r"\w*\d[\w.,:/-]*")


class SemanticCache:
    """Keeps answers for a while and gives them again. One cache serves any number of agents and runs at once.

    Without an `embedding` only the very same question is found. With one, a question that is alike enough is found
    too, unless a number or a code in it is another. It is never asked across settings (agent, model, instructions,
    tools, what was said before) or, unless the scope is `shared`, across users. What fails in it is logged and counts
    as a miss: no run fails because of its cache.
    """

    def __init__(
        self,
        backend: Literal["memory", "redis"] | CacheBackend = "memory",
        redis_url: str | None = None,
        embedding: Embedder | Any = None,
        similarity_threshold: float = 0.92,
        default_ttl: float = 3600,
        scope: CacheScope = "per_user",
        max_entries_per_user: int = 1000,
        max_total_entries: int = 100_000,
        encrypt_values: bool = False,
        ttl_patterns: Mapping[str, float] | None = None,
        invalidate_on_write: bool = True,
        cache_multi_turn: bool = False,
        cache_tool_turns: bool = False,
        write_tools: Collection[str] | None = None,
        read_only_tools: Collection[str] | None = None,
        shared_data_acknowledged: bool = False,
        *,
        encryption_key: str | bytes | None = None,
        timeout: float = 2.0,
    ) -> None:
        """Make the cache.

        Args:
            backend: Where answers are kept: `"memory"`, `"redis"`, or an object of yours.
            redis_url: The server, for `"redis"`.
            embedding: What turns texts into vectors: an `Embedder`, or LangChain `Embeddings`.
            similarity_threshold: The least cosine at which two questions count as the same, above 0 and at most 1.
            default_ttl: Seconds that an answer is kept.
            scope: Who is given an answer.
            max_entries_per_user: The most answers of one user; of two, the one that runs out first goes.
            max_total_entries: The most answers of all users.
            encrypt_values: Whether answers are encrypted where they are kept.
            ttl_patterns: Regular expressions that a question may match, with the seconds that its answer is kept;
                the shortest counts, and 0 keeps none.
            invalidate_on_write: Whether a run that calls a tool which writes empties the user's part of the cache.
            cache_multi_turn: Whether answers are kept to questions before which something was said.
            cache_tool_turns: Whether answers are kept for which tools were called, so long as all of them only read.
            write_tools: Patterns for names of tools that write, whatever they say of themselves.
            read_only_tools: Patterns for names of tools that only read, whatever they say of themselves.
            shared_data_acknowledged: Says that with the scope `shared` users see what others were answered.
            encryption_key: 32 bytes, or their base64. Needed where encrypted values outlive the process.
            timeout: Seconds to wait for the backend or the embedder before doing without.

        Raises:
            ConfigurationError: an argument does not fit; the message names it.
            MissingExtraError: `"redis"` or `encrypt_values` needs an extra that is not installed.
        """
        check_above_zero(default_ttl=default_ttl, timeout=timeout)
        check_count(max_entries_per_user=max_entries_per_user, max_total_entries=max_total_entries)
        if not 0 < similarity_threshold <= 1:
            raise ConfigurationError(
                f"similarity_threshold is {similarity_threshold!r}; give a number above 0, up to 1"
            )
        if scope not in ("per_user", "per_session", "shared"):
            raise ConfigurationError(f"scope is {scope!r}; use 'per_user', 'per_session' or 'shared'")
        if scope == "shared" and not shared_data_acknowledged:
            raise ConfigurationError(
                "scope='shared' gives users what others were answered; say that you mean it with "
                "shared_data_acknowledged=True, or use scope='per_user'"
            )
        self.scope: CacheScope = scope
        self.invalidate_on_write = invalidate_on_write
        self.cache_multi_turn = cache_multi_turn
        self.cache_tool_turns = cache_tool_turns
        self._backend = backend_of(backend, redis_url, timeout, needs_key=encrypt_values and encryption_key is None)
        self._embed = embed_of(embedding)
        self._threshold = similarity_threshold
        self._ttl = default_ttl
        self._ttl_patterns = patterns_of(ttl_patterns or {})
        self._most_of_user = max_entries_per_user
        self._most = max_total_entries
        self._sealer = Sealer(encryption_key, encrypt=encrypt_values)
        self._write_tools = names_of("write_tools", write_tools)
        self._read_only_tools = names_of("read_only_tools", read_only_tools)
        self._timeout = timeout
        self._owed: set[str] = set()
        self._counts = dict.fromkeys(("hits", "misses", "stored", "invalidations", "errors"), 0)

    async def check(self, query: CacheQuery) -> CacheLookup:
        """Look for an answer. Hand what is returned to `store` when there was none."""
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._look(query)
        except Exception:  # the run does without
            self._failed("the cache could not be asked")
            found = CacheLookup()
        self._counts["misses" if found.answer is None else "hits"] += 1
        return found

    async def store(self, query: CacheQuery, text: str, *, output: Any = None, lookup: CacheLookup) -> bool:
        """Keep an answer; return whether it was kept.

        It is not when the user's part of the cache was emptied since the `lookup`: the answer may be of before.
        """
        seconds = self._seconds(query.question)
        if seconds <= 0 or lookup.generation is None:
            return False
        try:
            async with asyncio.timeout(self._timeout):
                kept = await self._put(
                    query, Kept(query.question, text, output, time.time(), lookup.vector), seconds, lookup
                )
        except (TypeError, ValueError) as error:
            logger.debug("an answer cannot be kept: %s", error)
            return False
        except Exception:  # the run has its answer all the same
            self._failed("an answer could not be kept")
            return False
        self._counts["stored"] += kept
        return kept

    async def invalidate(self, owner: IsolationKey) -> None:
        """Empty the part of the cache that this user is answered from: they have changed something.

        What could not be emptied is not asked either, until it has been.
        """
        partition = self._partition(owner)
        self._counts["invalidations"] += 1
        self._owed.add(partition)
        try:
            async with asyncio.timeout(self._timeout):
                await self._settle(partition)
        except Exception:  # it stays owed
            self._failed("the cache could not be emptied")

    async def purge_user(self, user_id: str | None, *, tenant_id: str | None = None) -> int:
        """Delete every answer that this user's runs have left, and return how many; `None` is the anonymous.

        `user_id` may also be an isolation key, with the tenant in it.

        Raises:
            StoreUnavailable: some of them may still be there.
        """
        if isinstance(user_id, IsolationKey) or (user_id is not None and tenant_id is None):
            owner = IsolationKey(user_id)
        else:
            owner = isolation_key_of(CallerContext(user_id=user_id, tenant_id=tenant_id))
        try:
            return await self._backend.purge_owner(self._sealer.name("owner", owner), self._partition(owner))
        except Exception as error:  # whoever wants to be forgotten must hear that they are not
            raise StoreUnavailable(f"the answers of a user could not be deleted, so try again: {error}") from error

    async def stats(self) -> CacheStats:
        """Return what the cache has done since it was made."""
        try:
            async with asyncio.timeout(self._timeout):
                entries: int | None = await self._backend.count()
        except Exception:  # the other figures are worth having
            self._failed("the cache could not be counted")
            entries = None
        return CacheStats(**self._counts, entries=entries)

    async def warmup(self) -> None:
        """Reach the backend and make a first vector, so that the first run need not wait. What fails is raised."""
        await self._backend.count()
        if self._embed is not None:
            await self._embed(["warm up"])

    async def close(self) -> None:
        """Release what the cache holds; values in Redis stay."""
        await self._backend.close()

    def is_write(self, tool: Tool) -> bool:
        """Return whether a call of this tool may change what later answers depend on.

        A tool that does not say that it only reads, by `risk_level = 0`, counts as one that writes.
        """
        names = (tool.name, *tool.other_names)
        if _matches(names, self._write_tools):
            return True
        if _matches(names, self._read_only_tools):
            return False
        return not _only_reads(tool)

    async def _look(self, query: CacheQuery) -> CacheLookup:
        partition, group = self._partition(query.owner), self._group(query)
        await self._settle(partition)
        value, generation = await self._backend.get(partition, group, self._sealer.name(query.question))
        if value is not None:
            opened = self._opened(value, partition, group)
            kept = None if opened is None else unpack(opened)
            if kept is not None and kept.question == query.question:
                return CacheLookup(answer=_answer(kept, 1.0), generation=generation)
        if self._embed is None or self._seconds(query.question) <= 0:
            return CacheLookup(generation=generation)
        vector = await self._vector(query.question)
        if vector is None:
            return CacheLookup(generation=generation)
        answer = await self._alike(query.question, vector, partition, group)
        return CacheLookup(answer=answer, generation=generation, vector=vector)

    async def _alike(self, question: str, vector: tuple[float, ...], partition: str, group: str) -> CachedAnswer | None:
        found: list[tuple[float, bytes]] = []
        for number, value in enumerate(await self._backend.group(partition, group), 1):
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)  # so that many answers hold nobody else up
            opened = self._opened(value, partition, group)
            if opened is None:
                continue
            like = likeness(vector, opened)
            if like >= self._threshold - _ROUNDING:
                found.append((like, opened))
        figures = _figures(question)
        for like, opened in sorted(found, reverse=True):
            kept = unpack(opened)
            # Order 17 and order 18 are alike to every embedder, and their answers are not.
            if _figures(kept.question) == figures:
                return _answer(kept, min(1.0, like))
        return None

    async def _put(self, query: CacheQuery, kept: Kept, seconds: float, lookup: CacheLookup) -> bool:
        assert lookup.generation is not None
        partition, group = self._partition(query.owner), self._group(query)
        if partition in self._owed:
            return False
        entry = CacheEntry(
            partition=partition,
            group=group,
            name=self._sealer.name(query.question),
            owner=self._sealer.name("owner", query.owner),
            value=self._sealer.seal(pack(kept), partition, group),
            seconds=seconds,
        )
        most = self._most if self.scope == "shared" else min(self._most_of_user, self._most)
        return await self._backend.put(entry, generation=lookup.generation, most_of_partition=most, most=self._most)

    async def _settle(self, partition: str) -> None:
        if partition in self._owed:
            await self._backend.invalidate(partition)
            self._owed.discard(partition)

    async def _vector(self, question: str) -> tuple[float, ...] | None:
        assert self._embed is not None
        try:
            (vector,) = await self._embed([question])
            return unit(vector)
        except Exception:  # the same question is still found
            self._failed("the embedder failed")
            return None

    def _opened(self, value: bytes, *place: str) -> bytes | None:
        try:
            return self._sealer.open(value, *place)
        except Exception:  # another key, or changed where it was kept
            self._failed("a kept answer cannot be read")
            return None

    def _partition(self, owner: IsolationKey) -> str:
        return self._sealer.name("shared") if self.scope == "shared" else self._sealer.name("user", owner)

    def _group(self, query: CacheQuery) -> str:
        session = [query.session_id] if self.scope == "per_session" and query.session_id is not None else []
        return self._sealer.name(query.setting, *session)

    def _seconds(self, question: str) -> float:
        found = [seconds for pattern, seconds in self._ttl_patterns if pattern.search(question)]
        return min(found, default=self._ttl)

    def _failed(self, what: str) -> None:
        self._counts["errors"] += 1
        logger.exception("%s", what)


def _answer(kept: Kept, likeness: float) -> CachedAnswer:
    return CachedAnswer(
        text=kept.text, output=kept.output, question=kept.question, similarity=likeness, stored_at=kept.stored_at
    )


def _figures(text: str) -> list[str]:
    return sorted(found.rstrip(".,:/-").casefold() for found in _FIGURES.findall(text))


def _only_reads(tool: Tool) -> bool:
    """Return whether the tool, or the function or tool that it is made of, was declared to have the risk 0."""
    inside = [getattr(tool, name, None) for name in ("tool", "function")]
    for source in [tool, *inside, *[getattr(each, "metadata", None) for each in (tool, *inside)]]:
        for name in ("risk_level", "risk_hint"):
            found = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
            if found is not None:
                return type(found) is int and found == 0
    return False


def _matches(names: Collection[str], patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)
