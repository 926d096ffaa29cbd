"""A text that a regular expression matches, made from its parse tree."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

_ALPHABET = "a0A_-. =/:;,@xyz123XYZ"
_MOST_EXTRA = 64

# The standard library's own parser of expressions has no public name.
_parser: Any = importlib.import_module("re._parser")


def text_matching(pattern: str, *, shortest: int, longest: int | None) -> str | None:
    """Return a text of the wanted length that `pattern` is found in, or `None` when none is found."""
    try:
        compiled, tree = re.compile(pattern), _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    for extra in range(max(shortest, _MOST_EXTRA) + 1):
        text = _text_of(tree, extra)
        if text is None:
            return None
        for candidate in (text, text.ljust(shortest, "a")):
            fits = len(candidate) >= shortest and (longest is None or len(candidate) <= longest)
            if fits and compiled.search(candidate):
                return candidate
    return None


def _text_of(tree: Iterable[Any], extra: int) -> str | None:
    parts = [_item(str(operation), argument, extra) for operation, argument in tree]
    return None if any(part is None for part in parts) else "".join(part for part in parts if part is not None)


def _item(operation: str, argument: Any, extra: int) -> str | None:
    match operation:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return next(char for char in _ALPHABET if ord(char) != argument)
        case "ANY":
            return "a"
        case "IN":
            return _member(argument)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, body = argument
            once = _text_of(body, 0)
            return None if once is None else once * min(int(most), int(least) + extra)
        case "SUBPATTERN":
            return _text_of(argument[-1], extra)
        case "ATOMIC_GROUP":
            return _text_of(argument, extra)
        case "BRANCH":
            return next((text for branch in argument[1] if (text := _text_of(branch, extra)) is not None), None)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""
    return None


def _member(items: list[tuple[Any, Any]]) -> str | None:
    negated = str(items[0][0]) == "NEGATE"
    wanted = [_matcher(item) for item in items if str(item[0]) != "NEGATE"]
    candidates: list[str] = [*_ALPHABET, *(_first_of(item) for item in items)]
    for char in candidates:
        if char and any(re.match(one, char) for one in wanted) is not negated:
            return char
    return None


def _first_of(item: tuple[Any, Any]) -> str:
    operation, argument = str(item[0]), item[1]
    if operation == "LITERAL":
        return chr(argument)
    return chr(argument[0]) if operation == "RANGE" else ""


def _matcher(item: tuple[Any, Any]) -> str:
    operation, argument = str(item[0]), item[1]
    if operation == "LITERAL":
        return re.escape(chr(argument))
    if operation == "RANGE":
        return f"[{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}]"
    letter = str(argument).rsplit("_", 1)[-1][0].lower()
    return f"\\{letter.upper() if '_NOT_' in str(argument) else letter}"
