"""Join the pieces of a streamed answer into one message, without the client's own merging.

That merging repairs argument text that was cut off, sums figures that are totals, and repeats words such as the finish
reason; here text is joined as text, and the argument text of each call is kept exactly as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphwright.models.tokens import joined_usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = ["CallDraft", "ChunkJoiner"]

_TEXT_KEYS = frozenset(
    {"args", "arguments", "encrypted_content", "input", "partial_json", "reasoning", "refusal", "signature", "text"}
    | {"reasoning_content", "thinking"}
)
_OWN_IDS = ("run-", "lc_", "lc-")


@dataclass(slots=True)
class CallDraft:
    """A tool call as the model wrote it, before anybody has judged its arguments."""

    id: str | None
    name: str
    pieces: list[str] = field(default_factory=list)
    args: Any = None
    """The arguments where only these are known; then there are no pieces."""
    index: int | str | None = None
    seen_text: bool = True
    """Whether `pieces` is what the model wrote, and not what the client made of it."""

    @property
    def raw(self) -> str:
        """The argument text."""
        return "".join(self.pieces)


class ChunkJoiner:
    """Takes the pieces of one answer, in order, and gives the message they make."""

    __slots__ = ("_blocks", "_calls", "_extra", "_id", "_metadata", "_name", "_slots", "_texts", "_usage")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._blocks: list[Any] = []
        self._slots: dict[Any, dict[str, Any]] = {}
        self._calls: list[CallDraft] = []
        self._extra: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}
        self._usage: list[Mapping[str, Any]] = []
        self._id: str | None = None
        self._name: str | None = None

    def add_text(self, text: str) -> None:
        """Add a piece that is text and nothing else."""
        self._texts.append(text)

    def add(self, chunk: AIMessage) -> None:
        """Add a piece that is a message chunk, or a whole message."""
        fields = chunk.__dict__
        content = fields["content"]
        if content:
            if type(content) is str:
                self._texts.append(content)
            else:
                self._add_content(content)
        fragments = fields.get("tool_call_chunks")
        if fragments:
            seen_text = not _made_by_the_class(fragments, fields["tool_calls"])
            for fragment in fragments:
                self._add_fragment(fragment, seen_text=seen_text)
        elif fields["tool_calls"] or fields["invalid_tool_calls"]:
            self._add_finished(chunk)
        if fields["usage_metadata"]:
            self._usage.append(fields["usage_metadata"])
        if fields["additional_kwargs"]:
            _merge_extra(self._extra, fields["additional_kwargs"])
        if fields["response_metadata"]:
            self._add_metadata(fields["response_metadata"])
        if fields["id"] and (self._id is None or (_is_own_id(self._id) and not _is_own_id(fields["id"]))):
            self._id = fields["id"]
        if fields["name"] and self._name is None:
            self._name = fields["name"]

    @property
    def drafts(self) -> list[CallDraft]:
        """The calls so far, in the order in which they began."""
        return self._calls

    def message(self) -> AIMessage:
        """Return the message; its calls are in `drafts` and not yet in it."""
        from langchain_core.messages import AIMessage

        message = AIMessage(
            content=self._content(),
            additional_kwargs=self._extra,
            response_metadata=self._metadata,
            id=self._id,
            name=self._name,
        )
        usage = joined_usage(self._usage)
        return message.model_copy(update={"usage_metadata": usage}) if usage is not None else message

    def _content(self) -> Any:
        if not self._blocks:
            return "".join(self._texts)
        self._flush_texts()
        return [_finished(block) if isinstance(block, dict) else block for block in self._blocks]

    def _flush_texts(self) -> None:
        if self._texts:
            self._blocks.append({"type": "text", "text": "".join(self._texts)})
            self._texts.clear()

    def _add_content(self, content: list[Any]) -> None:
        for block in content:
            if isinstance(block, str):
                self._texts.append(block)
                continue
            if self._texts:
                self._flush_texts()
            if isinstance(block, Mapping):
                self._add_block(block)

    def _add_block(self, block: Mapping[str, Any]) -> None:
        index = block.get("index")
        if index is None:
            last = self._blocks[-1] if self._blocks else None
            if last is not None and _is_plain(block) and last.keys() == block.keys() and last["type"] == block["type"]:
                _merge_block(last, block)
            else:
                self._blocks.append(_opened(block))
            return
        slot = self._slots.get(index)
        if slot is not None and _belongs(slot, block):
            _merge_block(slot, block)
            return
        self._slots[index] = opened = _opened(block)
        self._blocks.append(opened)

    def _add_metadata(self, metadata: Mapping[str, Any]) -> None:
        for key, value in metadata.items():
            if value is not None and value != "":
                self._metadata[key] = value

    def _add_finished(self, message: AIMessage) -> None:
        for call in message.tool_calls:
            self._calls.append(CallDraft(call["id"], call["name"], args=call["args"], seen_text=False))
        for bad in message.invalid_tool_calls:
            self._calls.append(CallDraft(bad["id"], bad["name"] or "", [bad["args"] or ""]))

    def _add_fragment(self, fragment: Mapping[str, Any], *, seen_text: bool) -> None:
        call_id, name, index = fragment.get("id") or None, fragment.get("name") or "", fragment.get("index")
        args = fragment.get("args") or ""
        draft = self._continued(call_id, name, index)
        if draft is None:
            self._calls.append(CallDraft(call_id, name, [args] if args else [], index=index, seen_text=seen_text))
            return
        draft.id = draft.id or call_id
        if name and name != draft.name:
            draft.name += name
        if args:
            draft.pieces.append(args)

    def _continued(self, call_id: str | None, name: str, index: int | str | None) -> CallDraft | None:
        """Return the call that a fragment goes on with, or `None` when it begins one."""
        if index is not None:
            draft = next((call for call in reversed(self._calls) if call.index == index), None)
            if draft is None or (call_id and draft.id and call_id != draft.id):
                return None
            return None if name and not call_id and _is_complete(draft) else draft
        if call_id:
            return next((call for call in reversed(self._calls) if call.id == call_id), None)
        return self._calls[-1] if self._calls and not name else None


def _is_complete(draft: CallDraft) -> bool:
    raw = draft.raw.strip()
    return bool(draft.name) and raw.startswith("{") and raw.endswith("}")


def _made_by_the_class(fragments: list[Any], finished: list[Any]) -> bool:
    """Return whether a chunk was built from finished calls, so that its fragments are not the model's own text."""
    if len(fragments) != len(finished):
        return False
    return all(
        fragment["index"] is None and fragment["args"] == json.dumps(call["args"])
        for fragment, call in zip(fragments, finished, strict=True)
    )


def _is_own_id(value: str) -> bool:
    return value.startswith(_OWN_IDS)


def _is_plain(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("text", "thinking", "reasoning") and len(block) == 2


def _belongs(slot: Mapping[str, Any], block: Mapping[str, Any]) -> bool:
    before, now = slot.get("id"), block.get("id")
    if before and now and before != now:
        return False
    kind = block.get("type")
    return kind is None or kind == slot.get("type") or str(kind).endswith("_delta")


def _opened(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which the texts that may grow are lists of pieces."""
    return {key: [value] if key in _TEXT_KEYS and isinstance(value, str) else value for key, value in block.items()}


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    return {key: "".join(value) if _is_pieces(key, value) else value for key, value in block.items()}


def _is_pieces(key: str, value: Any) -> bool:
    return key in _TEXT_KEYS and isinstance(value, list) and all(isinstance(piece, str) for piece in value)


def _merge_block(slot: dict[str, Any], block: Mapping[str, Any]) -> None:
    for key, value in block.items():
        if value is None or key in ("type", "index"):
            continue
        before = slot.get(key)
        if key in _TEXT_KEYS and isinstance(value, str):
            if isinstance(before, list):
                before.append(value)
            else:
                slot[key] = [value]
        elif isinstance(value, list) and isinstance(before, list):
            slot[key] = _merged_lists(before, value)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            slot[key] = {**before, **value}
        elif value != "":
            slot[key] = value


def _merged_lists(before: list[Any], more: list[Any]) -> list[Any]:
    merged = list(before)
    for entry in more:
        index = entry.get("index") if isinstance(entry, Mapping) else None
        same = [place for place, old in enumerate(merged) if isinstance(old, Mapping) and old.get("index") == index]
        if index is None or not same:
            merged.append(entry)
            continue
        old = merged[same[-1]]
        merged[same[-1]] = {**old, **entry, **{key: _joined_text(old, entry, key) for key in _TEXT_KEYS & entry.keys()}}
    return merged


def _joined_text(old: Mapping[str, Any], entry: Mapping[str, Any], key: str) -> Any:
    before, now = old.get(key), entry[key]
    return before + now if isinstance(before, str) and isinstance(now, str) else now


def _merge_extra(target: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        before = target.get(key)
        if key == "tool_calls" or value is None:
            continue
        if isinstance(value, str) and isinstance(before, str):
            target[key] = before + value
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged = dict(before)
            _merge_extra(merged, value)
            target[key] = merged
        elif isinstance(value, list) and isinstance(before, list):
            target[key] = _merged_lists(before, value)
        else:
            target[key] = value
