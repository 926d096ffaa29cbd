"""What a model reads of a tool's result: text, or a list of content blocks, whatever the tool returned.

Text stays as it is, `None` is `null`, data is JSON, images become image blocks, and everything else is its `str`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from io import BytesIO
from reprlib import Repr
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.tool import ToolOutputMixin
from pydantic import BaseModel

from graphwright.exceptions import ToolError

__all__ = ["ERROR_CHARS", "Content", "cut_content", "error_text", "is_picture", "render", "safe_str", "short_repr"]

Content = str | list[str | dict[str, Any]]
"""The content of a message, as LangChain has it."""

ERROR_CHARS = 2000
"""Longest text of an error that a model is shown."""

_IMAGE_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)

_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"})

# A block is told from data by its type, by what it must hold, and by holding nothing that no provider knows.
_MEDIA = ("source", "url", "base64", "file_id", "data", "file")
_BLOCKS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "input_text": ("text",),
    "text-plain": ("text", *_MEDIA),
    "image": _MEDIA,
    "image_url": ("image_url",),
    "input_image": ("image_url", "file_id"),
    "audio": _MEDIA,
    "input_audio": ("input_audio", "data"),
    "video": _MEDIA,
    "file": _MEDIA,
    "input_file": ("file_id", "file_data", "file_url"),
    "document": _MEDIA,
    "search_result": ("source",),
    "json": ("json",),
}
_BLOCK_KEYS = frozenset(
    {"type", "id", "index", "mime_type", "source_type", "extras", "filename", "title", "cache_control", "citations"}
    | {"context", "content", "metadata", "detail", "annotations"}
    | {key for keys in _BLOCKS.values() for key in keys}
)


def render(value: Any) -> Content:
    """Return what a model reads of `value`. Never raises an `Exception`."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encodable(value)
    if kind is dict or kind is list:
        return _blocks(value) or _json(value)
    if value is None:
        return "null"
    try:
        return _render_object(value)
    except Exception:  # the value's own code fails: say what it is
        return safe_str(value)


def _render_object(value: Any) -> Content:
    if isinstance(value, Enum):
        return render(value.value)
    if isinstance(value, str):
        return _encodable(str(value))
    if isinstance(value, BaseMessage):
        return render(value.content)
    if isinstance(value, ToolOutputMixin):
        return safe_str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _render_bytes(bytes(value))
    if is_picture(value):
        buffer = BytesIO()
        # The colours of print, for one, have no place in a PNG.
        picture = value if value.mode in _PNG_MODES else value.convert("RGB")
        picture.save(buffer, format="PNG")
        return [_image(buffer.getvalue(), "image/png")]
    if isinstance(value, (dict, list, tuple, int, float, Mapping, Set, BaseModel)) or _is_data(value):
        return _json(value)
    if callable(getattr(value, "tolist", None)):
        return _json(value)
    return safe_str(value)


def _is_data(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _blocks(value: dict[str, Any] | list[Any]) -> list[str | dict[str, Any]] | None:
    entries = value if isinstance(value, list) else [value]
    found = False
    for entry in entries:
        if type(entry) is dict and "type" in entry and _is_block(entry):
            found = True
        elif type(entry) is not str:
            return None
    return list(entries) if found else None


def _is_block(entry: dict[str, Any]) -> bool:
    kind = entry["type"]
    needed = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if needed is None or not any(entry.get(key) is not None for key in needed) or not entry.keys() <= _BLOCK_KEYS:
        return False
    return "text" not in kind or isinstance(entry.get("text", ""), str)


def is_picture(value: Any) -> bool:
    """Whether `value` is an image in memory, as Pillow makes them."""
    try:
        return (
            callable(getattr(value, "save", None))
            and isinstance(getattr(value, "mode", None), str)
            and isinstance(getattr(value, "size", None), tuple)
        )
    except Exception:  # an attribute of a foreign object is code, too
        return False


def _render_bytes(data: bytes) -> Content:
    for magic, mime_type in _IMAGE_MAGIC:
        if data.startswith(magic):
            return [_image(data, mime_type)]
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return [_image(data, "image/webp")]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if all(char.isprintable() or char in "\t\n\r" for char in text):
        return text
    return f"[{len(data):,} bytes of binary data]"


def _image(data: bytes, mime_type: str) -> dict[str, Any]:
    return {"type": "image", "base64": base64.b64encode(data).decode("ascii"), "mime_type": mime_type}


def _json(value: Any) -> str:
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        try:
            text = _encode(_with_text_keys(value))
        except Exception:  # it holds itself, or its own code fails
            return safe_str(value)
    except Exception:  # code of an object inside it fails
        return safe_str(value)
    return text if text.isascii() else _encodable(text)


def _plain(value: Any) -> Any:
    """Return JSON data for an object that the encoder does not know."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if _is_data(value):
        return {entry.name: getattr(value, entry.name) for entry in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return list(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        content = _render_bytes(bytes(value))
        return content if isinstance(content, str) else f"[an image of {len(value):,} bytes]"
    tolist = getattr(value, "tolist", None)
    return tolist() if callable(tolist) else safe_str(value)


_encode: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, default=_plain).encode


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else _key(key): _with_text_keys(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(entry) for entry in value]
    if isinstance(value, (str, int, float)) or value is None:
        return value
    plain = _plain(value)
    return plain if isinstance(plain, str) else _with_text_keys(plain)


def _key(key: Any) -> str:
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    return str(key.value) if isinstance(key, Enum) else safe_str(key)


def _encodable(text: str) -> str:
    """Return text that can be sent: a lone surrogate, which no encoder takes, becomes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def safe_str(value: Any) -> str:
    """Return `str(value)`, or words about the value when that fails."""
    try:
        return _encodable(str(value))
    except Exception:  # foreign code, with nothing left to show but the type
        return f"[a {type(value).__name__} that cannot be shown]"


def short_repr(value: Any, limit: int = 60) -> str:
    """Return the `repr` of a value, cut, for use inside a sentence."""
    try:
        text = _encodable(repr(value[: limit + 1]) if isinstance(value, str) else _short.repr(value))
    except Exception:  # as in safe_str
        return f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


_short = Repr()
_short.maxstring = _short.maxother = 80


def error_text(error: BaseException) -> str:
    """Return what a model is told of an exception: type and message, no traceback.

    Of a `ToolError`, which is raised for the model to read, it is the message alone.
    """
    message = safe_str(error)
    if isinstance(error, ToolError) or type(error).__name__ == "ToolException":
        return _cut(message or "the tool failed", ERROR_CHARS)
    text = _described(error, message)
    if isinstance(error, BaseExceptionGroup):
        text += ": " + "; ".join(error_text(inner) for inner in error.exceptions[:10])
    return _cut(text, ERROR_CHARS)


def _described(error: BaseException, message: str) -> str:
    if "errors.pydantic.dev" in message:
        lines = message.splitlines()
        message = "\n".join(line for line in lines if not line.lstrip().startswith("For further information visit"))
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def cut_content(content: Content, limit: int) -> Content:
    """Return the content with its text cut to `limit` characters and a mark that says so."""
    if isinstance(content, str):
        return _cut(content, limit)
    kept: list[str | dict[str, Any]] = []
    for block in content:
        text = block if isinstance(block, str) else block.get("text")
        if not isinstance(text, str):
            kept.append(block)
            continue
        shown = _cut(text, limit)
        limit = max(0, limit - len(text))
        kept.append(shown if isinstance(block, str) else {**block, "text": shown})
    return kept


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... [{len(text) - limit:,} more characters]"
