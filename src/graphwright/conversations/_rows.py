"""Messages and their metadata as text that every database can hold, without losing anything.

Databases differ in what they refuse: NUL, lone surrogates, NaN. What goes in is therefore encoded the same way for
all of them, before anything is touched, and comes back as it was or is refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from graphwright.conversations.base import Message
from graphwright.exceptions import ConfigurationError, UnstorableError

__all__ = [
    "Row",
    "check_session_id",
    "from_micros",
    "message_of",
    "micros",
    "pack",
    "pack_text",
    "rows_of",
    "unpack",
    "unpack_text",
]

_MARK = "\x02b64\x03"
_AWKWARD = re.compile("[\x00\ud800-\udfff]")
# JSON would make one character of two surrogates that happen to stand side by side.
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_TAG = "$type"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SPECIAL_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Row(NamedTuple):
    """A message as it is written."""

    seq: int
    role: str
    content: str
    metadata: str
    created_at: int
    """Microseconds since the epoch."""


def rows_of(messages: Iterable[Message]) -> list[Row]:
    """Return the messages as rows that are numbered from 1.

    Raises:
        UnstorableError: a value cannot be kept; the message names its place.
    """
    rows: list[Row] = []
    for number, message in enumerate(messages, 1):
        where = f"message {number}"
        if not isinstance(message, Message):
            raise UnstorableError(f"{where} is of type {type(message).__name__}; store Message objects")
        if not isinstance(message.content, str):
            raise UnstorableError(
                f"the content of {where} is of type {type(message.content).__name__}; it has to be text"
            )
        if not isinstance(message.metadata, Mapping):
            raise UnstorableError(f"the metadata of {where} is {message.metadata!r}; it has to be a dict")
        metadata = pack(message.metadata, f"the metadata of {where}") if message.metadata else "{}"
        rows.append(Row(number, message.role, pack_text(message.content), metadata, micros(message.created_at)))
    return rows


def message_of(seq: int, role: str, content: str, metadata: str, created_at: int) -> Message:
    """Return the message of a row."""
    return Message(
        role=role,  # type: ignore[arg-type]  # checked by the class
        content=unpack_text(content),
        metadata=unpack(metadata) if metadata != "{}" else {},
        created_at=from_micros(created_at),
        seq=seq,
    )


def check_session_id(session_id: str) -> str:
    """Return the id, or refuse one that cannot be a key.

    Raises:
        ConfigurationError: it is no text, is empty, or holds a character that databases refuse.
    """
    if not isinstance(session_id, str) or not session_id or _AWKWARD.search(session_id):
        raise ConfigurationError(
            f"the session id {session_id!r} cannot be used; give text without NUL and lone surrogates, "
            "such as generate_session_id() makes"
        )
    return session_id


def pack_text(text: str) -> str:
    """Return the text as every database takes it: as it is, or marked and escaped where it holds what some refuse."""
    if _AWKWARD.search(text) or text.startswith(_MARK):
        return _MARK + _bytes_as_text(text.encode("utf-8", "surrogatepass"))
    return text


def unpack_text(text: str) -> str:
    """Return the text that `pack_text` was given."""
    if not text.startswith(_MARK):
        return text
    return base64.b64decode(text[len(_MARK) :]).decode("utf-8", "surrogatepass")


def pack(value: Any, what: str) -> str:
    """Return a value as strict JSON in ASCII, from which `unpack` makes an equal one.

    Raises:
        UnstorableError: it holds something that is no plain value.
    """
    try:
        return json.dumps(_plain(value, what), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise UnstorableError(f"{what} is nested too deeply, or holds itself; store flat data") from None
    except ValueError as error:
        if isinstance(error, UnstorableError):
            raise
        raise UnstorableError(f"{what} cannot be stored: {error}") from error


def unpack(text: str) -> Any:
    """Return the value that `pack` was given."""
    return json.loads(text, object_hook=_restored)


def micros(at: datetime) -> int:
    """Return a time as microseconds since the epoch."""
    return (at - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Return the time that `micros` was given, in UTC."""
    return _EPOCH + timedelta(microseconds=value)


def _plain(value: Any, what: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # A subclass is kept as the plain value that it equals.
    if isinstance(value, str):
        text = str.__str__(value)
        return {_TAG: "text", "value": pack_text(text)} if _PAIR.search(text) else text
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return number if number - number == 0 else {_TAG: "float", "value": repr(number)}
    if isinstance(value, Mapping):
        return _plain_mapping(value, what)
    if type(value) is list:
        return [_plain(item, f"{what}[{index}]") for index, item in enumerate(value)]
    return _tagged(value, what)


def _plain_mapping(value: Mapping[Any, Any], what: str) -> Any:
    if all(isinstance(key, str) and not _PAIR.search(key) for key in value) and _TAG not in value:
        return {str.__str__(key): _plain(item, f"{what}[{key!r}]") for key, item in value.items()}
    pairs = [[_plain(key, f"a key of {what}"), _plain(item, f"{what}[{key!r}]")] for key, item in value.items()]
    return {_TAG: "dict", "value": pairs}


def _bytes_as_text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _tagged(value: Any, what: str) -> dict[str, Any]:
    kind = type(value)
    if kind is datetime or kind is date:
        return {_TAG: kind.__name__, "value": value.isoformat()}
    if kind is bytes:
        return {_TAG: "bytes", "value": _bytes_as_text(value)}
    if kind is tuple:
        return {_TAG: "tuple", "value": [_plain(item, f"{what}[{index}]") for index, item in enumerate(value)]}
    raise UnstorableError(
        f"{what} is of type {kind.__module__}.{kind.__qualname__}, which cannot be stored; make it text, a number, "
        "a list, a dict, a time or bytes"
    )


def _restored(data: dict[str, Any]) -> Any:
    kind, value = data.get(_TAG), data.get("value")
    if kind is None or len(data) != 2:
        return data
    if kind == "float":
        return _SPECIAL_FLOATS[str(value)]
    if kind == "text":
        return unpack_text(str(value))
    if kind == "datetime":
        return datetime.fromisoformat(str(value))
    if kind == "date":
        return date.fromisoformat(str(value))
    if kind == "bytes":
        return base64.b64decode(str(value))
    if kind == "tuple" and isinstance(value, list):
        return tuple(value)
    if kind == "dict" and isinstance(value, list):
        return dict(value)
    return data
