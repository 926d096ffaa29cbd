"""Find every text in what a user sends or a model writes, and put others in their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["changed", "replaced_texts", "texts_in"]

_SILENT = frozenset(
    [
        "type",
        "id",
        "index",
        "mime_type",
        "media_type",
        "format",
        "detail",
        "signature",
        "role",
        "status",
        "tool_call_id",
        "encrypted_content",
    ]
)
"""Keys of blocks whose values are no words."""
_CALL_BLOCKS = ("tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call", "server_tool_use")
"""Blocks that repeat a tool call, which is judged where it is made."""
_CALLS = ("tool_calls", "function_call")
_RAW = ("data", "base64", "bytes")
"""Keys whose values are no words either, unless they hold spaces."""
_MOST_LEVELS = 60

Change = Callable[[str], str]


def texts_in(value: Any) -> list[str]:
    """Return the texts of a message, a list of content blocks or any plain data, in order; pictures have none."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    changed(value, note)
    return found


def replaced_texts(value: Any, texts: Sequence[str]) -> Any:
    """Return a copy of `value` with `texts` in the places of those that `texts_in` gives."""
    rest: Iterator[str] = iter(texts)
    return changed(value, lambda _: next(rest))


def changed(value: Any, change: Change) -> Any:
    """Return `value` with `change` applied to every text in it; what stays the same is the same object."""
    return _changed(value, change, _MOST_LEVELS)


def _changed(value: Any, change: Change, levels: int) -> Any:
    if isinstance(value, str):
        return value if _is_data(value) else change(value)
    if levels == 0:
        raise ValueError("the input is nested too deeply to be looked at")
    content = getattr(value, "content", None)
    if content is not None and hasattr(value, "model_copy"):
        return _message(value, change, levels - 1)
    if isinstance(value, Mapping):
        if value.get("type") in _CALL_BLOCKS:
            return value
        entries = {key: _entry(key, entry, change, levels - 1) for key, entry in value.items()}
        return value if all(entries[key] is value[key] for key in entries) else entries
    if isinstance(value, (list, tuple)):
        items = [_changed(entry, change, levels - 1) for entry in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


def _entry(key: Any, value: Any, change: Change, levels: int) -> Any:
    if isinstance(value, str) and (key in _SILENT or (key in _RAW and " " not in value[:2000])):
        return value
    return _changed(value, change, levels)


def _is_data(text: str) -> bool:
    return text.startswith("data:") and ";base64," in text[:100]


def _message(message: Any, change: Change, levels: int) -> Any:
    update: dict[str, Any] = {}
    content = _changed(message.content, change, levels)
    if content is not message.content:
        update["content"] = content
    extra = {
        key: value for key, value in message.additional_kwargs.items() if key not in ("tool_calls", "function_call")
    }
    if extra:
        new = _changed(extra, change, levels)
        if new is not extra:
            update["additional_kwargs"] = {**message.additional_kwargs, **new}
    return message.model_copy(update=update) if update else message
