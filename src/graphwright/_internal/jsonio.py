"""JSON as it crosses the border: found in a model's text, and written so that nothing can fail."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["dumps", "extract_object", "find_json"]

_MOST_CANDIDATES = 500
_decoder = json.JSONDecoder()
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def find_json(text: str) -> list[Any]:
    """Return every top-level JSON object and array in `text`, in order of appearance.

    Strings are respected, so a brace inside one never opens or closes a value; prose and code fences around the
    values do not matter. A comma before a closing bracket is forgiven.
    """
    found = _scan(text)
    if found:
        return found
    relaxed = _without_trailing_commas(text)
    return _scan(relaxed) if relaxed != text else []


def extract_object(text: str) -> dict[str, Any] | None:
    """Return the last JSON object in `text`, or `None`: a draft comes before the final version."""
    for value in reversed(find_json(text)):
        if isinstance(value, dict):
            return value
    return None


def dumps(value: Any) -> str:
    """Return `value` as JSON text; what JSON does not know is written as its `str`."""
    return _encode(value)


def _scan(text: str) -> list[Any]:
    found: list[Any] = []
    position, tries = 0, 0
    while tries < _MOST_CANDIDATES:
        position = _next_opening(text, position)
        if position < 0:
            break
        tries += 1
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            found.append(value)
    return found


def _next_opening(text: str, start: int) -> int:
    brace, bracket = text.find("{", start), text.find("[", start)
    if brace < 0 or bracket < 0:
        return max(brace, bracket)
    return min(brace, bracket)


def _without_trailing_commas(text: str) -> str:
    kept: list[str] = []
    in_string = False
    for char in text:
        if in_string:
            if char == '"' and not _is_escaped(kept):
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "}]":
            _drop_trailing_comma(kept)
        kept.append(char)
    return "".join(kept)


def _is_escaped(kept: list[str]) -> bool:
    backslashes = 0
    for char in reversed(kept):
        if char != "\\":
            break
        backslashes += 1
    return backslashes % 2 == 1


def _drop_trailing_comma(kept: list[str]) -> None:
    index = len(kept) - 1
    while index >= 0 and kept[index].isspace():
        index -= 1
    if index >= 0 and kept[index] == ",":
        del kept[index]
