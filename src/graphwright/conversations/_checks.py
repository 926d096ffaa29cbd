"""What every store does with its arguments before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from graphwright._internal.clock import wall_time
from graphwright.conversations._rows import check_session_id, micros, pack, pack_text
from graphwright.exceptions import ConfigurationError, UnstorableError

__all__ = ["check_count", "check_owner_id", "check_page", "now_micros", "session_changes"]


def now_micros() -> int:
    """Return the time as microseconds since the epoch."""
    return int(wall_time() * 1_000_000)


def check_count(name: str, value: int) -> int:
    """Return a number of things, or refuse a negative one and one that no database counts to."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise ConfigurationError(f"{name} is {value!r}; give a whole number from 0 on")
    return value


def check_page(limit: int, offset: int) -> None:
    """Refuse a page that cannot be."""
    check_count("limit", limit)
    check_count("offset", offset)


def check_owner_id(owner: Any) -> str | None:
    """Return the id of an owner, or refuse what cannot be one: an empty id would be mistaken for nobody."""
    if owner is None:
        return None
    if not isinstance(owner, str) or not owner:
        raise ConfigurationError(f"the owner {owner!r} cannot be used; give a user id, or None for nobody")
    return owner


def session_changes(session_id: str, *, user_id: Any, title: Any, metadata: Any, expires_at: Any) -> dict[str, Any]:
    """Return the columns that an update sets, encoded.

    Raises:
        UnstorableError: a value cannot be kept.
    """
    check_session_id(session_id)
    given: tuple[tuple[str, Any, Callable[[Any], Any]], ...] = (
        ("user_id", user_id, lambda value: None if check_owner_id(value) is None else pack_text(value)),
        ("title", title, lambda value: None if value is None else pack_text(_text("title", value))),
        ("metadata", metadata, _metadata),
        ("expires_at", expires_at, _expiry),
    )
    return {name: encode(value) for name, value, encode in given if value is not ...}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UnstorableError(f"the {name} {value!r} is no text; give a string or None")
    return value


def _metadata(value: Any) -> str:
    if value is not None and not isinstance(value, dict):
        raise UnstorableError(f"the metadata {value!r} is no dict; give a dict or None")
    return pack(value or {}, "the metadata of the session")


def _expiry(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise UnstorableError(f"expires_at {value!r} is no time; give a datetime or None")
    return micros(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
