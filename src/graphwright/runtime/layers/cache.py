"""Answer a run from the cache where its question was answered before, and keep what is answered now."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from graphwright.caller import IsolationKey, get_current_caller, get_current_session_id, isolation_key_of
from graphwright.messages import as_messages, text_of
from graphwright.tools.base import GatedCall, Verdict

if TYPE_CHECKING:
    from graphwright.cache import CacheQuery, SemanticCache
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["CacheUse", "cache_layer"]

logger = logging.getLogger(__name__)

_CUT_SHORT = frozenset({"length", "max_tokens", "MAX_TOKENS", "content_filter", "SAFETY"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheUse:
    """A cache, and what an agent says of itself to it."""

    cache: SemanticCache
    setting: Callable[[], Any]
    """Returns as plain data what the answers depend on besides the request: agent, model, instructions, tools."""
    as_data: Callable[[Any], Any] = lambda output: output
    """Turns the output of a run into plain data, of which the core makes it again."""
    owns_cache: bool = False
    """Whether the cache was made for the agent and is closed with it."""


def cache_layer(use: CacheUse) -> Layer:
    """Return the layer that asks the cache first. What a pause, a resumed run or a failure gave is never kept."""

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        owner = isolation_key_of(get_current_caller())
        watch = _Watch(use.cache, owner, request)
        query = None if _is_bypassed(request) else _query(use, owner, request)
        if query is None:
            return await watch.run(request, call_next)
        lookup = await use.cache.check(query)
        if lookup.answer is not None:
            request.cached = lookup.answer
            return await call_next(request)
        result = await watch.run(request, call_next)
        if watch.allows_keeping and _is_answer(result):
            await use.cache.store(query, result.text, output=_data_of(use, result), lookup=lookup)
        return result

    return layer


class _Watch:
    """A gate that lets everything through, and notes which calls a run makes."""

    def __init__(self, cache: SemanticCache, owner: IsolationKey, request: RunRequest) -> None:
        self._cache = cache
        self._owner = owner
        self._inner = request.gate
        self._called = False
        # What a resumed run called before its pause is judged already, and is not seen here.
        self._wrote = request.resume is not None

    @property
    def allows_keeping(self) -> bool:
        """Whether the answer depends on nothing that the cache cannot see."""
        return not self._wrote and (self._cache.cache_tool_turns or not self._called)

    async def run(self, request: RunRequest, call_next: Handler) -> Any:
        request.gate = self
        try:
            return await call_next(request)
        finally:
            # Again, at the end: what was read while a call was at work may be of before it.
            if self._wrote and self._cache.invalidate_on_write:
                await self._cache.invalidate(self._owner)

    async def judge(self, gated: GatedCall) -> Verdict:
        self._called = True
        if not self._wrote and self._cache.is_write(gated.tool):
            self._wrote = True
            if self._cache.invalidate_on_write:
                await self._cache.invalidate(self._owner)
        return Verdict() if self._inner is None else await self._inner.judge(gated)


def _is_bypassed(request: RunRequest) -> bool:
    # The rows of a run inside another one are the other's, and it may go on where the cache has changed.
    is_part = request.inside is not None and request.inside.journal is not None
    return not request.uses_cache or request.resume is not None or is_part


def _query(use: CacheUse, owner: IsolationKey, request: RunRequest) -> CacheQuery | None:
    """Return the question of a request; `None` where it is none that a cache could know again."""
    from graphwright.cache import CacheQuery

    try:
        messages, given = _read(request)
        *before, last = messages
        question = last.content
        if last.type != "human" or not isinstance(question, str) or not question.strip() or last.additional_kwargs:
            return None
        if not use.cache.cache_multi_turn and any(message.type != "system" for message in before):
            return None
        caller = get_current_caller()
        rights = [sorted(caller.roles), sorted(caller.scopes), caller.metadata] if caller is not None else []
        said = [_said(message) for message in before]
        context = [given, dict(request.context or {})]
        setting = json.dumps(
            [use.setting(), request.system_prompt, rights, context, said, last.name], sort_keys=True, allow_nan=False
        )
    except Exception as error:  # what cannot be told apart is not cached, and what is no input the run refuses
        logger.debug("a run is not cached: %s", error)
        return None
    return CacheQuery(
        question=question.strip(),
        owner=owner,
        session_id=request.session_id or get_current_session_id(),
        setting=blake2b(setting.encode(), digest_size=20).hexdigest(),
    )


def _read(request: RunRequest) -> tuple[list[Any], Any]:
    given = request.input.get("context") if isinstance(request.input, Mapping) else None
    return [*request.history, *as_messages(request.input)], given


def _said(message: Any) -> list[Any]:
    # Not its id, its usage or the like: the same words are the same words.
    calls = [[call["name"], call["args"]] for call in getattr(message, "tool_calls", ())]
    return [message.type, message.content, message.name, calls]


def _is_answer(result: Any) -> bool:
    if result.status != "completed":
        return False
    last = result["messages"][-1]
    if last.type != "ai" or last.tool_calls or last.additional_kwargs.get("refusal"):
        return False
    ending = last.response_metadata.get("finish_reason") or last.response_metadata.get("stop_reason")
    blocks = last.content if isinstance(last.content, list) else ()
    plain = all(isinstance(block, str) or block.get("type") == "text" for block in blocks)
    return plain and ending not in _CUT_SHORT and bool(text_of(last).strip())


def _data_of(use: CacheUse, result: Any) -> Any:
    return None if result.output is None else use.as_data(result.output)
