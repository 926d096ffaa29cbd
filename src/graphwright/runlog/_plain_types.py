"""How a log writes the types of the standard library that JSON does not have."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from graphwright.caller import IsolationKey
from graphwright.runlog._walk import DECODERS, ENCODERS, Unstorable, careful, encode_list

__all__: list[str] = []


def _kind(word: str, kind: type, write: Callable[[Any, int], Any], read: Callable[[Any], Any]) -> None:
    """Write values of `kind` as one piece of data under `word`."""
    ENCODERS[kind] = lambda value, depth: {"$": word, "v": write(value, depth)}
    DECODERS[word] = lambda data: read(data["v"])


def _members(value: Any, depth: int) -> list[Any]:
    # Equal sets have to be written equally, whatever the order in which they are walked.
    return sorted(encode_list(value, depth), key=lambda item: json.dumps(careful(item), sort_keys=True))


def _base64(value: Any, depth: int) -> str:
    return b64encode(value).decode()


def _text(value: Any, depth: int) -> str:
    return str(value)


_kind("tuple", tuple, encode_list, tuple)
_kind("set", set, _members, set)
_kind("frozenset", frozenset, _members, frozenset)
_kind("bytes", bytes, _base64, b64decode)
_kind("bytearray", bytearray, _base64, lambda text: bytearray(b64decode(text)))
_kind("date", date, lambda value, depth: value.isoformat(), date.fromisoformat)
_kind(
    "timedelta",
    timedelta,
    lambda value, depth: [value.days, value.seconds, value.microseconds],
    lambda parts: timedelta(*parts),
)
_kind("decimal", Decimal, _text, Decimal)
_kind("uuid", UUID, lambda value, depth: value.hex, UUID)
_kind("path", type(Path()), _text, Path)
_kind("posixpath", PurePosixPath, _text, PurePosixPath)
_kind("windowspath", PureWindowsPath, _text, PureWindowsPath)

DECODERS["dict"] = lambda data: {key: item for key, item in data["v"]}
DECODERS["text"] = lambda data: b64decode(data["v"]).decode("utf-8", "surrogatepass")
DECODERS["float"] = lambda data: float(data["v"])
DECODERS["int"] = lambda data: int(data["v"], 16)


def _write_moment(word: str, value: Any) -> dict[str, Any]:
    data = {"$": word, "v": value.replace(tzinfo=None).isoformat()}
    if value.fold:
        data["fold"] = 1
    zone = value.tzinfo
    if zone is None:
        return data
    name = getattr(zone, "key", None)
    if isinstance(name, str) and type(zone).__module__.startswith("zoneinfo"):
        data["zone"] = name
        return data
    offset = value.utcoffset()
    if offset is None:
        raise Unstorable(value, f"has the time zone {zone!r}, whose offset is not known; use zoneinfo.ZoneInfo")
    data["offset"] = [offset.days, offset.seconds, offset.microseconds]
    return data


def _read_zone(data: dict[str, Any]) -> tzinfo | None:
    if "zone" in data:
        return _zone(data["zone"])
    if "offset" not in data:
        return None
    from datetime import timezone

    offset = timedelta(*data["offset"])
    return timezone(offset) if offset else UTC


@lru_cache
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones

    # The name comes from the log, and looking for a zone may import a part of `tzdata` by that name.
    if not re.fullmatch(r"[\w+\-/]+", name) or name not in available_timezones():
        raise ValueError(f"there is no time zone {name!r} on this machine")
    return ZoneInfo(name)


def _read_datetime(data: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(data["v"]).replace(tzinfo=_read_zone(data), fold=data.get("fold", 0))


def _read_time(data: dict[str, Any]) -> time:
    return time.fromisoformat(data["v"]).replace(tzinfo=_read_zone(data), fold=data.get("fold", 0))


# A caller's key is a text like any other once it is written down.
ENCODERS[IsolationKey] = _text
ENCODERS[datetime] = lambda value, depth: _write_moment("datetime", value)
ENCODERS[time] = lambda value, depth: _write_moment("time", value)
DECODERS["datetime"] = _read_datetime
DECODERS["time"] = _read_time
