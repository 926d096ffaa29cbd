"""Bring a model's answer into the one form that the rest of the package, and any provider later, can rely on.

Every call has an id of its own and arguments that are a JSON object; a call that must not run says why, and the message
carries that along for whoever reads it in another process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.ids import new_call_id
from graphwright._internal.jsonio import dumps
from graphwright.exceptions import ModelError
from graphwright.messages import refusal_of, text_of
from graphwright.models.base import ModelReply
from graphwright.models.joining import CallDraft, ChunkJoiner
from graphwright.models.tokens import RAW_USAGE, metadata_of, usage_of
from graphwright.types import ToolCall

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = ["RAW_ARGUMENTS", "calls_of", "finish_reason_of", "joined_reply", "reply_of"]

RAW_ARGUMENTS = "graphwright_raw_arguments"
"""Key in `response_metadata` for argument texts, by call id, that the client would have dropped."""

_NOTES = "graphwright"
_FINISH_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
_TOKEN_LIMITS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
_REFUSALS = frozenset(
    {"refusal", "content_filter", "content_filtered", "guardrail_intervened", "safety", "blocklist", "spii"}
    | {"prohibited_content", "recitation", "image_safety", "language"}
)
_MALFORMED = frozenset({"malformed_function_call", "malformed_response", "unexpected_tool_call"})
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call"})
_GEMINI_SIGNATURES = "__gemini_function_call_thought_signatures__"
_OLD_CALLS = ("tool_calls", "function_call")
"""Keys of `additional_kwargs` under which clients repeat the calls in an older form."""
_NO_NAME = "unknown"
_AT_TOKEN_LIMIT = "the call was cut off: the reply reached its token limit before the arguments were complete"
_AT_STREAM_END = "the call was cut off: the stream ended before the arguments were complete"


def reply_of(message: AIMessage) -> ModelReply:
    """Return the reply that a whole message makes.

    Raises:
        ModelError: the provider says that the model wrote a call it could not read, and there is nothing else.
    """
    if not message.response_metadata and not message.additional_kwargs and not message.invalid_tool_calls:
        plain = _plain_reply(message)
        if plain is not None:
            return plain
    kind: str = message.type
    if kind != "ai":  # a model that answers with a chunk
        joiner = ChunkJoiner()
        joiner.add(message)
        return joined_reply(joiner)
    if _NOTES in message.response_metadata and not message.invalid_tool_calls:  # it has been here before
        refusal = _refusal(message, finish_reason_of(message))
        return ModelReply(message, calls_of(message), text_of(message), usage_of(message), refusal)
    return _reply(message, _drafts_of(message))


def _plain_reply(message: AIMessage) -> ModelReply | None:
    """Return the reply of a message that is in form already and says nothing about itself, else `None`."""
    text = message.content
    if type(text) is not str or message.type != "ai":
        return None
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        call_id, name, args = call["id"], call["name"], call["args"]
        if not call_id or not name or type(args) is not dict:
            return None
        if calls and any(call_id == other.id for other in calls):
            return None
        calls.append(ToolCall(call_id, name, args))
    return ModelReply(message, calls, text, usage_of(message))


def joined_reply(joiner: ChunkJoiner) -> ModelReply:
    """Return the reply that the pieces of a stream make. Raises what `reply_of` does."""
    return _reply(joiner.message(), joiner.drafts)


def calls_of(message: AIMessage) -> list[ToolCall]:
    """Return the calls that a message of the conversation asks for, with what is wrong with them."""
    if message.invalid_tool_calls or any(not call["id"] for call in message.tool_calls):
        return reply_of(message).calls
    notes = message.response_metadata.get(_NOTES)
    problems = notes.get("problems", {}) if isinstance(notes, Mapping) else {}
    calls = []
    for call in message.tool_calls:
        call_id = cast(str, call["id"])
        noted = problems.get(call_id, {})
        calls.append(ToolCall(call_id, call["name"], call["args"], noted.get("problem", ""), noted.get("raw", "")))
    return calls


def finish_reason_of(message: AIMessage) -> str:
    """Return why the model stopped, in the provider's word and lower case; empty when it did not say."""
    metadata = message.response_metadata
    for key in _FINISH_KEYS:
        value = metadata.get(key)
        if value:
            return _word(value)
    if metadata.get("status") == "incomplete":
        details = metadata.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return _word(reason or "max_output_tokens")
    return _word(metadata["status"]) if metadata.get("status") in ("completed", "failed", "cancelled") else ""


def _word(value: Any) -> str:
    return str(getattr(value, "name", value)).lower()


def _reply(message: AIMessage, drafts: Sequence[CallDraft]) -> ModelReply:
    finish = finish_reason_of(message)
    usage = usage_of(message)
    calls = _judged(drafts, finish) if drafts else []
    refusal = _refusal(message, finish)
    updates: dict[str, Any] = {}
    if calls and not _is_in_form(message, calls):
        updates = _with_calls(message, drafts, calls)
    elif not calls and isinstance(message.content, list):
        content = _aligned(message.content, [], [])
        if len(content) != len(message.content):
            updates["content"] = content
    if refusal is not None and not text_of(message):
        updates["content"] = _with_refusal(updates.get("content", message.content), refusal)
    if RAW_USAGE in message.response_metadata or RAW_ARGUMENTS in message.response_metadata:
        metadata = updates.get("response_metadata", message.response_metadata)
        updates["response_metadata"] = {k: v for k, v in metadata.items() if k not in (RAW_USAGE, RAW_ARGUMENTS)}
    if usage is not None and RAW_USAGE in message.response_metadata:
        updates["usage_metadata"] = metadata_of(usage) or message.usage_metadata
    if updates:
        message = message.model_copy(update=updates)
    text = text_of(message)
    if finish in _MALFORMED and not calls and not text:
        raise ModelError(f"the model wrote a tool call that its provider could not read ({finish})", retryable=True)
    return ModelReply(message, calls, text, usage, refusal)


def _drafts_of(message: AIMessage) -> list[CallDraft]:
    if not message.tool_calls and not message.invalid_tool_calls:
        return []
    raw = _raw_arguments(message)
    drafts = []
    for call in message.tool_calls:
        written = raw.get(call["id"] or "")
        pieces = [] if written is None else [written]
        drafts.append(CallDraft(call["id"], call["name"], pieces, call["args"], seen_text=written is not None))
    for bad in message.invalid_tool_calls:
        drafts.append(CallDraft(bad["id"], bad["name"] or "", [raw.get(bad["id"] or "") or bad["args"] or ""]))
    if message.invalid_tool_calls:
        order = {call_id: place for place, call_id in enumerate(_written_order(message, raw))}
        drafts.sort(key=lambda draft: order.get(draft.id or "", len(order)))
    return drafts


def _raw_arguments(message: AIMessage) -> dict[str, str]:
    """Return the argument texts that the message still holds, by call id."""
    found: dict[str, Any] = {}
    for entry in message.additional_kwargs.get("tool_calls") or ():
        function = entry.get("function") if isinstance(entry, Mapping) else None
        if isinstance(function, Mapping):
            found[entry.get("id") or ""] = function.get("arguments")
    if isinstance(message.content, list):
        for block in message.content:
            if isinstance(block, Mapping) and block.get("type") == "function_call":
                found[block.get("call_id") or ""] = block.get("arguments")
    found.update(message.response_metadata.get(RAW_ARGUMENTS) or {})
    return {call_id: text for call_id, text in found.items() if call_id and isinstance(text, str)}


def _written_order(message: AIMessage, raw: Mapping[str, str]) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else []
    ids = [_block_id(block) for block in blocks if isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS]
    return [call_id for call_id in ids if call_id] or list(raw)


def _block_id(block: Mapping[str, Any]) -> str | None:
    value = block.get("call_id") or block.get("id")
    return value if isinstance(value, str) else None


def _judged(drafts: Sequence[CallDraft], finish: str) -> list[ToolCall]:
    at_limit = finish in _TOKEN_LIMITS
    seen: set[str] = set()
    calls = []
    for draft in drafts:
        call_id = draft.id if draft.id and draft.id not in seen else new_call_id()
        seen.add(call_id)
        args, problem = _arguments(draft, finish)
        if not draft.name and not problem:
            problem = "the call names no tool"
        raw = draft.raw if draft.pieces else dumps(draft.args)
        name = draft.name or _NO_NAME
        calls.append(ToolCall(call_id, name, {}, problem, raw) if problem else ToolCall(call_id, name, args))
    last, written = calls[-1], drafts[-1]
    # Arguments that were seen as text and are complete cannot have been cut; others may be a repaired half.
    unsure = not written.seen_text or not written.raw.strip()
    if at_limit and unsure and not any(call.problem for call in calls):
        last.problem, last.raw, last.args = _AT_TOKEN_LIMIT, written.raw or dumps(last.args), {}
    return calls


def _arguments(draft: CallDraft, finish: str) -> tuple[dict[str, Any], str]:
    if not draft.pieces:
        return _checked(draft.args if draft.args is not None else {})
    raw = draft.raw
    if not raw.strip():
        return {}, ""
    try:
        value = json.loads(raw, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if finish in _TOKEN_LIMITS:
            return {}, _AT_TOKEN_LIMIT
        if not finish and _ends_early(raw, error):
            return {}, _AT_STREAM_END
        return {}, f"the arguments are not valid JSON: {error}"
    return _checked(value)


def _ends_early(raw: str, error: BaseException) -> bool:
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(raw.rstrip()) or error.msg.startswith("Unterminated string")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _checked(value: Any) -> tuple[dict[str, Any], str]:
    if isinstance(value, dict):
        return value, ""
    kinds = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}
    return {}, f"the arguments are JSON but not an object: they are {kinds.get(type(value), 'something else')}"


def _is_in_form(message: AIMessage, calls: Sequence[ToolCall]) -> bool:
    """Return whether the message says just what the calls say, so that nothing in it has to change."""
    written = message.tool_calls
    if message.invalid_tool_calls or message.additional_kwargs or len(written) != len(calls):
        return False
    same = all(old["id"] == call.id and not call.problem for old, call in zip(written, calls, strict=True))
    return same and isinstance(message.content, str)


def _with_calls(message: AIMessage, drafts: Sequence[CallDraft], calls: Sequence[ToolCall]) -> dict[str, Any]:
    updates: dict[str, Any] = {
        "tool_calls": [{"name": c.name, "args": c.args, "id": c.id, "type": "tool_call"} for c in calls],
        "invalid_tool_calls": [],
    }
    if isinstance(message.content, list):
        updates["content"] = _aligned(message.content, drafts, calls)
    extra = message.additional_kwargs
    if any(key in extra for key in (*_OLD_CALLS, _GEMINI_SIGNATURES)):
        updates["additional_kwargs"] = _aligned_extra(extra, drafts, calls)
    problems = {call.id: {"problem": call.problem, "raw": call.raw} for call in calls if call.problem}
    if problems:
        notes = message.response_metadata.get(_NOTES)
        noted = {**notes, "problems": problems} if isinstance(notes, Mapping) else {"problems": problems}
        updates["response_metadata"] = {**message.response_metadata, _NOTES: noted}
    return updates


def _aligned_extra(extra: Mapping[str, Any], drafts: Sequence[CallDraft], calls: Sequence[ToolCall]) -> dict[str, Any]:
    aligned = {key: value for key, value in extra.items() if key not in _OLD_CALLS}
    signatures = aligned.get(_GEMINI_SIGNATURES)
    if isinstance(signatures, Mapping):
        renamed = dict(signatures)
        for draft, call in zip(drafts, calls, strict=True):
            if draft.id and draft.id != call.id and draft.id in signatures:
                renamed[call.id] = signatures[draft.id]
        aligned[_GEMINI_SIGNATURES] = renamed
    return aligned


def _aligned(content: Sequence[Any], drafts: Sequence[CallDraft], calls: Sequence[ToolCall]) -> list[Any]:
    """Return the content with blocks that say the same about the calls as the calls themselves."""
    waiting = list(zip(drafts, calls, strict=True))
    aligned: list[Any] = []
    for block in content:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "input_json_delta":
            continue
        if kind not in _CALL_BLOCKS:
            aligned.append(block)
            continue
        call = _take_call(waiting, _block_id(block))
        if call is not None:
            aligned.append(_call_block(block, call))
    return aligned


def _take_call(waiting: list[tuple[CallDraft, ToolCall]], block_id: str | None) -> ToolCall | None:
    for place, (draft, call) in enumerate(waiting):
        if (draft.id or None) == block_id:
            del waiting[place]
            return call
    return None


def _call_block(block: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    kind = block["type"]
    if kind == "tool_use":
        kept = {key: value for key, value in block.items() if key != "partial_json"}
        return {**kept, "id": call.id, "name": call.name, "input": call.args}
    if kind == "function_call":
        arguments = dumps(call.args) if call.problem or not block.get("arguments") else block["arguments"]
        return {**block, "call_id": call.id, "name": call.name, "arguments": arguments}
    kept = {key: value for key, value in block.items() if key not in ("error", "args")}
    return {**kept, "type": "tool_call", "id": call.id, "name": call.name, "args": call.args}


def _refusal(message: AIMessage, finish: str) -> str | None:
    said = refusal_of(message)
    if said is not None:
        return said
    metadata = message.response_metadata
    if finish in _REFUSALS:
        reason = metadata.get("finish_message")
        return text_of(message) or (reason if isinstance(reason, str) and reason else f"The model refused ({finish}).")
    feedback = metadata.get("prompt_feedback")
    blocked = feedback.get("block_reason", feedback.get("blockReason")) if isinstance(feedback, Mapping) else None
    if blocked:
        return f"The provider blocked the prompt ({_word(blocked)})."
    return None


def _with_refusal(content: Any, refusal: str) -> Any:
    if not isinstance(content, list) or not content:
        return refusal
    kept = [block for block in content if not (isinstance(block, Mapping) and block.get("type") == "refusal")]
    return [*kept, {"type": "text", "text": refusal}] if kept else refusal
