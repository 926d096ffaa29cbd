"""Read the tokens of one model call, whatever shape the provider's client reports them in.

Cached tokens are a part of the input and reasoning tokens a part of the output: they are never added on top, and a
total that leaves them out is corrected. What the provider did not say stays `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from graphwright.usage import Usage

__all__ = ["RAW_USAGE", "joined_usage", "metadata_of", "usage_of"]

RAW_USAGE = "graphwright_raw_usage"
"""Key in a chunk's `response_metadata` for the figures that the client would have dropped."""

_PLACES = (RAW_USAGE, "token_usage", "usage", "usage_metadata", "amazon-bedrock-invocationMetrics")
_INPUT = ("prompt_tokens", "input_tokens", "inputTokens", "prompt_token_count", "promptTokenCount", "inputTokenCount")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "candidates_token_count", "candidatesTokenCount")
_OUTPUT_MORE = ("outputTokenCount",)
_TOTAL = ("total_tokens", "totalTokens", "total_token_count", "totalTokenCount")
_CACHED = ("cache_read_input_tokens", "cacheReadInputTokens", "prompt_cache_hit_tokens", "cached_tokens")
_CACHED_MORE = ("cachedContentTokenCount", "cached_content_token_count", "cacheReadInputTokenCount")
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount")
_THOUGHTS = ("thoughtsTokenCount", "thoughts_token_count")
_OWN_INPUT_ONLY = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
"""With these keys the provider's input figure leaves out what came from the cache."""


def usage_of(message: Any) -> Usage | None:
    """Return the tokens that a message reports, or `None` when it reports none."""
    reported = getattr(message, "usage_metadata", None)
    metadata = getattr(message, "response_metadata", None)
    if (
        reported
        and not metadata
        and len(reported) == 3
        and reported.get("input_tokens")
        and reported.get("total_tokens")
    ):
        return Usage(reported["input_tokens"], reported.get("output_tokens"), reported["total_tokens"])
    usage = _from_metadata(reported) if reported else None
    if not metadata or (usage is not None and usage.input_tokens is not None and usage.cached_tokens is not None):
        return usage
    raw = _from_raw(metadata)
    if usage is None or raw is None:
        return usage if raw is None else raw
    return _completed(usage, raw)


def metadata_of(usage: Usage) -> dict[str, Any] | None:
    """Return the figures as LangChain's `usage_metadata`; `None` when it could not hold them."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    total = usage.total_tokens if usage.total_tokens is not None else usage.input_tokens + usage.output_tokens
    metadata: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": total,
    }
    if usage.cached_tokens is not None:
        metadata["input_token_details"] = {"cache_read": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        metadata["output_token_details"] = {"reasoning": usage.reasoning_tokens}
    return metadata


def joined_usage(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the `usage_metadata` of a whole answer from what its pieces reported.

    Most clients report parts that add up; some report the figures so far with every piece, and then the last one
    holds. A prompt is counted in one piece only when the pieces add up, which tells the two apart.
    """
    if len(reports) <= 1:
        return dict(reports[0]) if reports else None
    if _is_cumulative(reports):
        return dict(reports[-1])
    from langchain_core.messages.ai import UsageMetadata, add_usage

    whole: UsageMetadata | None = None
    for report in reports:
        whole = add_usage(whole, cast(UsageMetadata, report))
    return cast("dict[str, Any]", whole)


def _is_cumulative(reports: Sequence[Mapping[str, Any]]) -> bool:
    prompts = [report.get("input_tokens") or 0 for report in reports]
    outputs = [report.get("output_tokens") or 0 for report in reports]
    return min(prompts) > 0 and prompts == sorted(prompts) and outputs == sorted(outputs)


def _from_metadata(metadata: Mapping[str, Any] | None) -> Usage | None:
    usage = Usage.from_metadata(metadata)
    if usage is None or metadata is None:
        return usage
    if usage.input_tokens and usage.total_tokens and usage.cached_tokens is None and usage.reasoning_tokens is None:
        return usage  # nothing in it that clients are known to count in different ways
    details = metadata.get("input_token_details") or {}
    cached, written = usage.cached_tokens or 0, details.get("cache_creation") or 0
    given_in, given_out, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if given_in is not None and cached > given_in:
        usage.input_tokens = given_in + cached + written
        usage.total_tokens = None if given_out is None else usage.input_tokens + given_out
    reasoning = usage.reasoning_tokens or 0
    if reasoning and None not in (given_in, given_out, total):
        left_out = cast(int, given_in) + cast(int, given_out) + reasoning == total
        if left_out or reasoning > cast(int, given_out):
            usage.output_tokens = cast(int, given_out) + reasoning
            usage.total_tokens = cast(int, usage.input_tokens) + usage.output_tokens
    if usage.input_tokens == 0 and usage.output_tokens:
        # Every request has a prompt, so a zero means that the client lost the figure.
        usage.input_tokens = usage.total_tokens = None
    return usage


def _from_raw(metadata: Mapping[str, Any]) -> Usage | None:
    for place in _PLACES:
        raw = metadata.get(place)
        if isinstance(raw, Mapping):
            usage = _read(raw)
            if usage is not None:
                return usage
    if isinstance(metadata.get("prompt_eval_count"), int):
        return _read({"input_tokens": metadata["prompt_eval_count"], "output_tokens": metadata.get("eval_count")})
    return None


def _read(raw: Mapping[str, Any]) -> Usage | None:
    given_in, given_out, total = _first(raw, _INPUT), _first(raw, (*_OUTPUT, *_OUTPUT_MORE)), _first(raw, _TOTAL)
    if given_in is None and given_out is None:
        return None
    cached = _first(raw, (*_CACHED, *_CACHED_MORE))
    for name in ("prompt_tokens_details", "input_tokens_details", "input_token_details"):
        cached = _detail(raw, name, ("cached_tokens", "cache_read")) if cached is None else cached
    reasoning = _first(raw, _THOUGHTS)
    if reasoning is not None:
        given_out = (given_out or 0) + reasoning
    for name in ("completion_tokens_details", "output_tokens_details", "output_token_details"):
        names = ("reasoning_tokens", "thinking_tokens", "reasoning")
        reasoning = _detail(raw, name, names) if reasoning is None else reasoning
    own_only = any(name in raw for name in (*_OWN_INPUT_ONLY, *_WRITTEN))
    if given_in is not None and (own_only or (cached or 0) > given_in):
        given_in += (cached or 0) + (_first(raw, _WRITTEN) or 0)
        total = None
    if total is None and given_in is not None and given_out is not None:
        total = given_in + given_out
    return Usage(given_in, given_out, total, cached, reasoning)


def _completed(usage: Usage, raw: Usage) -> Usage:
    given_in = usage.input_tokens if usage.input_tokens is not None else raw.input_tokens
    given_out = usage.output_tokens if usage.output_tokens is not None else raw.output_tokens
    total = usage.total_tokens
    if total is None:
        total = raw.total_tokens if None in (given_in, given_out) else cast(int, given_in) + cast(int, given_out)
    return Usage(
        given_in,
        given_out,
        total,
        usage.cached_tokens if usage.cached_tokens is not None else raw.cached_tokens,
        usage.reasoning_tokens if usage.reasoning_tokens is not None else raw.reasoning_tokens,
    )


def _first(raw: Mapping[str, Any], names: Iterable[str]) -> int | None:
    for name in names:
        value = raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _detail(raw: Mapping[str, Any], name: str, keys: Iterable[str]) -> int | None:
    details = raw.get(name)
    return _first(details, keys) if isinstance(details, Mapping) else None
