"""A small language for conditions that are data: `FIELD OPERATOR LITERAL` over the result of a node.

    confidence >= 0.7            a key of the node's output
    output.review.passes == true a path into it
    error != null                a field of the result
    raw_output contains "done"

Operators are `==`, `!=`, `>=`, `<=`, `>`, `<` and `contains`; a literal is JSON. Comparisons are joined by `and`.
Nothing is evaluated: a condition can read the result and compare, and do nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from graphwright.engine.state import NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["ResultCondition", "parse_condition"]

_MAX_LENGTH = 1000
_COMPARISON = re.compile(r"\s*(?P<field>[A-Za-z_]\w*(?:\.\w+)*)\s*(?P<op>==|!=|>=|<=|>|<|\bcontains\b)\s*")
_AND = re.compile(r"\s+and\s+")
_RESULT_FIELDS = frozenset(field.name for field in fields(NodeResult))
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Comparison:
    path: tuple[str, ...]
    operator: str
    literal: Any

    def holds(self, result: NodeResult) -> bool:
        value = _read(result, self.path)
        try:
            return bool(_OPERATORS[self.operator](value, self.literal))
        except TypeError:
            return False


@dataclass(frozen=True, slots=True)
class ResultCondition:
    """A parsed condition; it prints as it was written."""

    text: str
    comparisons: tuple[_Comparison, ...]

    def __call__(self, result: NodeResult) -> bool:
        """Return whether every comparison holds for this result. A field that is not there is `null`."""
        return all(comparison.holds(result) for comparison in self.comparisons)

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> ResultCondition:
    """Return the condition that `text` describes.

    Raises:
        ConfigurationError: the text is no condition of this language; the message shows where it stops being one.
    """
    if len(text) > _MAX_LENGTH:
        raise ConfigurationError(f"a condition of {len(text)} characters is too long; use at most {_MAX_LENGTH}")
    comparisons = []
    position = 0
    while True:
        match = _COMPARISON.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        try:
            literal, position = _decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            raise _unreadable(text, match.end()) from None
        path = tuple(match["field"].split("."))
        if any(part.startswith("__") for part in path):
            raise ConfigurationError(f"condition {text!r}: a field may not start with '__'")
        comparisons.append(_Comparison(path, match["op"], literal))
        joint = _AND.match(text, position)
        if joint is None:
            break
        position = joint.end()
    if text[position:].strip():
        raise _unreadable(text, position)
    return ResultCondition(text, tuple(comparisons))


def _unreadable(text: str, position: int) -> ConfigurationError:
    return ConfigurationError(
        f"condition {text!r} cannot be read from {text[position:]!r} on; "
        "write FIELD OPERATOR LITERAL, such as: confidence >= 0.7"
    )


def _read(result: NodeResult, path: tuple[str, ...]) -> Any:
    first = path[0]
    if first in _RESULT_FIELDS:
        value: Any = getattr(result, first)
        path = path[1:]
    else:
        value = result.output
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda value, literal: value == literal,
    "!=": lambda value, literal: value != literal,
    ">=": lambda value, literal: value is not None and value >= literal,
    "<=": lambda value, literal: value is not None and value <= literal,
    ">": lambda value, literal: value is not None and value > literal,
    "<": lambda value, literal: value is not None and value < literal,
    "contains": lambda value, literal: isinstance(value, (str, list, tuple, Mapping)) and literal in value,
}
