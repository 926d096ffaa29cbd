"""A scripted step as a provider would send it: one whole message, or the same message in pieces."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.jsonio import dumps
from graphwright.testing.steps import ScriptedCall, Step
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.messages.ai import UsageMetadata

_WORD = re.compile(r"\s*\S+\s*|\s+")


def with_ids(step: Step, next_id: Callable[[], str]) -> Step:
    """Return the step with a number for each call that has no id of its own."""
    if not any(call.numbered for call in step.calls):
        return step
    return replace(step, calls=tuple(call.with_id(next_id()) if call.numbered else call for call in step.calls))


def message_of(step: Step, *, model: str) -> AIMessage:
    """Return the whole answer."""
    from langchain_core.messages import AIMessage

    if step.message is not None:
        return step.message.model_copy()
    good, bad = _split(step.calls)
    return AIMessage(
        content=cast(Any, _content(step)),
        tool_calls=cast(Any, good),
        invalid_tool_calls=cast(Any, bad),
        usage_metadata=_usage_metadata(step.usage),
        additional_kwargs={"refusal": step.refusal} if step.refusal else {},
        response_metadata={"model_name": model, "finish_reason": _finish_reason(step)},
    )


def pieces_of(step: Step, *, model: str) -> Iterator[AIMessageChunk | asyncio.Event]:
    """Yield the answer in pieces: thinking, text, calls, then what stands at the end of a provider's stream."""
    whole = message_of(step, model=model)
    for content in _content_pieces(whole, step):
        yield content if isinstance(content, asyncio.Event) else _chunk(whole.id, content=content)
    written = step.calls if step.message is None else _calls_of(step.message)
    for index, call in enumerate(written):
        yield from _call_pieces(whole.id, call, index)
    if step.error is None:
        yield _chunk(
            whole.id,
            usage_metadata=whole.usage_metadata,
            additional_kwargs=whole.additional_kwargs,
            response_metadata=whole.response_metadata,
            name=whole.name,
            chunk_position="last",
        )


def _chunk(message_id: str | None, **fields: Any) -> AIMessageChunk:
    from langchain_core.messages import AIMessageChunk

    return AIMessageChunk(id=message_id, **{"content": "", **fields})


def _content(step: Step) -> str | list[dict[str, Any]]:
    if not step.thinking:
        return step.text
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": step.thinking, "index": 0}]
    if step.text:
        blocks.append({"type": "text", "text": step.text, "index": 1})
    return blocks


def _content_pieces(whole: AIMessage, step: Step) -> Iterator[str | list[Any] | asyncio.Event]:
    if isinstance(whole.content, str):
        yield from step.chunks or _words(whole.content)
        return
    for block in whole.content:
        kind = block.get("type") if isinstance(block, dict) else ""
        if not isinstance(block, dict) or kind not in ("text", "thinking") or "index" not in block:
            yield [block]
            continue
        pieces = step.chunks if kind == "text" and step.chunks else _words(block[kind])
        for piece in pieces:
            yield piece if isinstance(piece, asyncio.Event) else [{**block, kind: piece}]


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _call_pieces(message_id: str | None, call: ScriptedCall, index: int) -> Iterator[AIMessageChunk]:
    raw = _raw(call)
    middle = len(raw) // 2
    for name, call_id, args in ((call.name, call.id, ""), (None, None, raw[:middle]), (None, None, raw[middle:])):
        if name or args:
            fragment = {"name": name, "args": args, "id": call_id, "index": index, "type": "tool_call_chunk"}
            yield _chunk(message_id, tool_call_chunks=[fragment])


def _calls_of(message: AIMessage) -> list[ScriptedCall]:
    found = [ScriptedCall(name=call["name"], args=call["args"], id=call["id"]) for call in message.tool_calls]
    for bad in message.invalid_tool_calls:
        found.append(ScriptedCall(name=bad["name"] or "", raw=bad["args"] or "", id=bad["id"]))
    return found


def _split(calls: tuple[ScriptedCall, ...]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for call in calls:
        args = _parsed(_raw(call))
        if args is None:
            entry = {"name": call.name, "args": _raw(call), "id": call.id, "error": "the arguments are no JSON object"}
            bad.append({**entry, "type": "invalid_tool_call"})
        else:
            good.append({"name": call.name, "args": args, "id": call.id, "type": "tool_call"})
    return good, bad


def _raw(call: ScriptedCall) -> str:
    return call.raw if call.raw is not None else dumps(call.args or {})


def _parsed(raw: str) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finish_reason(step: Step) -> str:
    return step.finish_reason or ("tool_calls" if step.calls else "stop")


def _usage_metadata(usage: Usage | None) -> UsageMetadata | None:
    if usage is None:
        return None
    given_in, given_out = usage.input_tokens or 0, usage.output_tokens or 0
    total = usage.total_tokens if usage.total_tokens is not None else given_in + given_out
    metadata: UsageMetadata = {"input_tokens": given_in, "output_tokens": given_out, "total_tokens": total}
    if usage.cached_tokens is not None:
        metadata["input_token_details"] = {"cache_read": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        metadata["output_token_details"] = {"reasoning": usage.reasoning_tokens}
    return metadata
