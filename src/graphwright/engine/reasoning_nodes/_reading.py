"""Read the values that models write in answers: numbers on either scale, truth in words, lists in any shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from graphwright._internal.jsonio import dumps

__all__ = ["Quality", "Share", "Text", "Texts", "Truth", "quality", "share", "text", "texts", "truth"]

_TRUE = frozenset({"true", "yes", "y", "1", "pass", "passes", "passed", "ok", "valid"})
_FALSE = frozenset({"false", "no", "n", "0", "fail", "fails", "failed", "invalid", "none", "null", ""})
_LEVELS = {"none": 0.0, "low": 0.25, "minor": 0.25, "medium": 0.5, "moderate": 0.5, "high": 0.8, "critical": 1.0}
_NOTHING = frozenset({"", "none", "n/a", "na", "null", "nothing", "no mistake", "no mistakes"})
_SCALE = 5.0


def truth(value: Any) -> bool:
    """Return the truth that `value` says: the word "false" is false.

    Raises:
        ValueError: it says neither.
    """
    if isinstance(value, bool):
        return value
    if value is None:
        return False
    word = str(value).strip().strip(".!").lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    number = _number(value)
    if number is None:
        raise ValueError(f"{value!r} is neither true nor false")
    return number != 0


def share(value: Any) -> float:
    """Return `value` as a number from 0 to 1; above 1 it is read on the scale from 1 to 5.

    Raises:
        ValueError: it is no number.
    """
    level = _LEVELS.get(value.strip().lower()) if isinstance(value, str) else None
    if level is not None:
        return level
    if isinstance(value, str) and value.strip().endswith("%"):
        percent = _number(value.strip()[:-1])
        number = None if percent is None else min(percent / 100, 1.0)
    else:
        number = _number(value)
    if number is None:
        raise ValueError(f"{value!r} is no number from 0 to 1")
    return max(0.0, min(number / _SCALE if number > 1 else number, 1.0))


def quality(value: Any) -> float:
    """Return `value` as a number from 1 to 5; below 1 it is read on the scale from 0 to 1.

    Raises:
        ValueError: it is no number.
    """
    number = _number(value)
    if number is None:
        raise ValueError(f"{value!r} is no number from 1 to 5")
    return max(1.0, min(number * _SCALE if number < 1 else number, _SCALE))


def text(value: Any) -> str:
    """Return `value` as text; what says that there is nothing is empty."""
    found = value if isinstance(value, str) else "" if value is None or value is False else _item(value)
    return "" if found.strip().strip(".").lower() in _NOTHING else found.strip()


def texts(value: Any) -> list[str]:
    """Return `value` as a list of texts: a list, the lines of a text, or the entries of an object."""
    if value is None:
        return []
    if isinstance(value, str):
        items: list[Any] = [line.strip().lstrip("-*•").strip() for line in value.splitlines()]
    elif isinstance(value, Mapping):
        items = [f"{key}: {_item(held)}" for key, held in value.items()]
    elif isinstance(value, (list, tuple)):
        items = list(value)
    else:
        items = [value]
    return [found for item in items if (found := _item(item).strip())]


def _item(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        # A subgoal, fact or issue is often written as an object of which one field is its text.
        words = [held for held in value.values() if isinstance(held, str)]
        return words[0] if len(words) == 1 else dumps(value)
    return "" if value is None else dumps(value) if isinstance(value, (list, tuple)) else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        # "4/5" and "0.8 (quite sure)" start with the number.
        value = value.strip().split("/")[0].split(" ")[0].rstrip(",;")
    elif not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Truth = Annotated[bool, BeforeValidator(truth)]
Share = Annotated[float, BeforeValidator(share), Field(ge=0, le=1)]
Quality = Annotated[float, BeforeValidator(quality), Field(ge=1, le=5)]
Text = Annotated[str, BeforeValidator(text)]
Texts = Annotated[list[str], BeforeValidator(texts)]
