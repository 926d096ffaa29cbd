"""Walk a value on its way into a log and out of it again.

What JSON has is written as it is. Everything else is an object whose key `$` says what it is; a map that has such a
key itself is written as pairs, so that data never passes for one.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from math import isfinite
from typing import Any

__all__ = ["ATOMS", "DECODERS", "ENCODERS", "FINDERS", "Unstorable", "careful", "encode", "encode_list", "encode_map"]

ATOMS = frozenset({str, int, float, bool, type(None)})
"""Types that are written as they are."""

ENCODERS: dict[type, Callable[[Any, int], Any]] = {}
"""How a value of exactly this type is written; the number is how deep it lies."""

DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {}
"""How what is marked with this word is read."""

FINDERS: list[Callable[[type], bool]] = []
"""Asked about a type that has no encoder; true when it has one now."""

_DEEPEST = 150
_LONG_INT_BITS = 2000


class Unstorable(Exception):
    """A value cannot be written; collects the way to it while it passes outward."""

    def __init__(self, value: Any, reason: str = "", *, deep: bool = False) -> None:
        super().__init__(reason)
        self._value = value
        self._reason = reason
        self._deep = deep
        self._way: list[tuple[str, int]] = []

    def add(self, step: str, container: Any) -> None:
        """Note one step of the way."""
        self._way.append((step, id(container)))

    def describe(self, where: str) -> str:
        """Return the message for whoever gave the value; `where` names the whole."""
        steps: list[str] = []
        seen: set[int] = set()
        for step, container in reversed(self._way):
            if container in seen:
                place = where + "".join(steps)
                return f"{place} contains itself, which a log cannot hold; leave it out, or name it by an id"
            seen.add(container)
            steps.append(step)
        if self._deep:
            place = where + "".join(steps[:4])
            return f"{place}... is nested deeper than {_DEEPEST} levels, which a log cannot hold; make it flatter"
        place = where + "".join(steps)
        if self._reason:
            return f"{place} {self._reason}"
        kind = type(self._value)
        return (
            f"{place} is a {kind.__module__}.{kind.__qualname__}, which a log cannot hold; keep plain data there, or "
            "register the class with graphwright.runlog.codec.register"
        )


def encode(value: Any, depth: int) -> Any:
    """Return a value as data that JSON has."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if depth > _DEEPEST:
        raise Unstorable(value, deep=True)
    if kind is dict:
        return encode_map(value, depth)
    if kind is list:
        return encode_list(value, depth)
    encoder = ENCODERS.get(kind)
    if encoder is None:
        if not any(find(kind) for find in FINDERS):
            raise Unstorable(value)
        encoder = ENCODERS[kind]
    return encoder(value, depth)


def encode_map(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    """Return a map with its values encoded; one with other keys than plain texts becomes pairs."""
    out: dict[str, Any] = {}
    key: Any = None
    try:
        for key, item in value.items():
            if type(key) is not str or key == "$":
                break
            out[key] = item if type(item) in ATOMS else encode(item, depth + 1)
        else:
            return out
    except Unstorable as problem:
        problem.add(_step(key), value)
        raise
    return {"$": "dict", "v": [_pair(key, item, value, depth + 1) for key, item in value.items()]}


def _pair(key: Any, item: Any, container: Any, depth: int) -> list[Any]:
    try:
        written = encode(key, depth)
    except Unstorable as problem:
        problem.add(f" key {key!r}", container)
        raise
    try:
        return [written, encode(item, depth)]
    except Unstorable as problem:
        problem.add(_step(key), container)
        raise


def _step(key: Any) -> str:
    return f'["{key}"]' if type(key) is str else f"[{key!r}]"


def encode_list(value: Any, depth: int) -> list[Any]:
    """Return the items of a sequence, encoded."""
    out: list[Any] = []
    try:
        for item in value:
            out.append(item if type(item) in ATOMS else encode(item, depth + 1))
    except Unstorable as problem:
        problem.add(f"[{len(out)}]", value)
        raise
    return out


def careful(plain: Any) -> Any:
    """Return encoded data with what a JSON writer or a file cannot take marked: half characters, NaN, huge numbers."""
    if type(plain) is dict:
        if all(type(key) is str and _is_whole(key) for key in plain):
            return {key: careful(item) for key, item in plain.items()}
        return {"$": "dict", "v": [[careful(key), careful(item)] for key, item in plain.items()]}
    if type(plain) is list:
        return [careful(item) for item in plain]
    if type(plain) is str and not _is_whole(plain):
        return {"$": "text", "v": b64encode(plain.encode("utf-8", "surrogatepass")).decode()}
    if type(plain) is float and not isfinite(plain):
        return {"$": "float", "v": str(plain)}
    if type(plain) is int and plain.bit_length() > _LONG_INT_BITS:
        return {"$": "int", "v": hex(plain)}
    return plain


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
