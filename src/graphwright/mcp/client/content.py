"""Show what a server sent to the model: text where text is enough, else LangChain content blocks."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from graphwright.tools.content import Content

__all__ = ["content_of", "error_of", "resource_content", "result_content"]

_NO_TEXT = "the tool reported an error and did not say which"


def result_content(result: Any) -> Content:
    """Return what the model reads of a tool's result.

    Structured content is added as JSON where the other content does not already hold it.
    """
    blocks = list(result.content)
    structured = result.structured_content
    if structured is not None and not any(_says(block, structured) for block in blocks):
        text = json.dumps(structured, ensure_ascii=False)
        if not blocks:
            return text
        return _joined([*_shown(blocks), text])
    return content_of(blocks)


def error_of(result: Any) -> str:
    """Return the text of a result that is an error."""
    content = result_content(result)
    if not isinstance(content, str):
        texts = [entry if isinstance(entry, str) else str(entry.get("text", "")) for entry in content]
        content = "\n".join(text for text in texts if text)
    return content.strip() or _NO_TEXT


def content_of(blocks: Iterable[Any]) -> Content:
    """Return the content of MCP blocks: one text when all of them are text, else a list of blocks."""
    return _joined(_shown(blocks))


def resource_content(contents: Iterable[Any]) -> Content:
    """Return the content of a resource that was read."""
    return _joined([_resource(entry, named=False) for entry in contents])


def _joined(parts: list[str | dict[str, Any]]) -> Content:
    if all(isinstance(part, str) for part in parts):
        # Back ends that take only a string for a tool's answer get one.
        return "\n".join(str(part) for part in parts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _shown(blocks: Iterable[Any]) -> list[str | dict[str, Any]]:
    return [_block(block) for block in blocks]


def _block(block: Any) -> str | dict[str, Any]:
    kind = block.type
    if kind == "text":
        return str(block.text)
    if kind in ("image", "audio"):
        return {"type": kind, "base64": block.data, "mime_type": block.mime_type}
    if kind == "resource":
        return _resource(block.resource, named=True)
    if kind == "resource_link":
        words = [f"[resource {block.uri}", f"named {block.title or block.name!r}"]
        words += [str(word) for word in (block.mime_type, block.description) if word]
        return ", ".join(words) + "]"
    return f"[content of the kind {kind!r}, which cannot be shown]"


def _resource(resource: Any, *, named: bool) -> str | dict[str, Any]:
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return f"[resource {resource.uri}]\n{text}" if named else text
    mime_type = resource.mime_type or "application/octet-stream"
    kind, _, subtype = mime_type.partition("/")
    if kind in ("image", "audio") or subtype == "pdf":
        shown = kind if kind in ("image", "audio") else "file"
        return {"type": shown, "base64": resource.blob, "mime_type": mime_type}
    return f"[resource {resource.uri}: {_size(resource.blob):,} bytes of {mime_type}]"


def _size(blob: str) -> int:
    try:
        return len(base64.b64decode(blob))
    except (binascii.Error, ValueError):
        return len(blob) * 3 // 4


def _says(block: Any, structured: Any) -> bool:
    """Whether a block is the structured content as text; a lone value comes wrapped in an object."""
    if block.type != "text":
        return False
    wrapped = structured.get("result") if isinstance(structured, Mapping) and structured.keys() == {"result"} else None
    if isinstance(wrapped, str) and block.text == wrapped:
        return True
    try:
        said = json.loads(block.text)
    except ValueError:
        return False
    return bool(said == structured or (wrapped is not None and said == wrapped))
