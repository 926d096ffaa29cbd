"""Ask a guard for its verdict, whatever form the guard has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright._internal.jsonio import dumps

__all__ = ["Verdict", "guard_name", "verdict_of"]


@dataclass(slots=True)
class Verdict:
    """What a guard says."""

    passed: bool
    reason: str = ""
    text: str | None = None
    """The text as the guard leaves it; `None` when it changed nothing."""

    @property
    def because(self) -> str:
        """The reason as the end of a sentence, or nothing."""
        return f": {self.reason}" if self.reason else ""


def guard_name(guard: Any) -> str:
    """Return what reports call the guard."""
    return str(getattr(guard, "name", None) or getattr(guard, "__name__", None) or type(guard).__name__)


async def verdict_of(guard: Any, value: Any) -> Verdict:
    """Return the verdict over `value` of an object with `check_output` or `check`, or of a callable, sync or async.

    `check_output` is given text; the others the value as it is. A check that cannot run refuses.
    """
    try:
        return await _asked(guard, value)
    except Exception as error:  # the user's code; a check that cannot run refuses
        return Verdict(False, f"{type(error).__name__}: {error}")


async def _asked(guard: Any, value: Any) -> Verdict:
    check_text = getattr(guard, "check_output", None)
    if check_text is not None:
        return _read(await call_maybe_async(check_text, _as_text(value)), none_passes=True)
    check = getattr(guard, "check", None)
    if check is not None:
        return _read(await call_maybe_async(check, value), none_passes=True)
    return _read(await call_maybe_async(guard, value), none_passes=False)


def _read(said: Any, *, none_passes: bool) -> Verdict:
    if isinstance(said, str):
        return Verdict(bool(said) or none_passes, text=said if said or none_passes else None)
    if hasattr(said, "passed"):
        return Verdict(bool(said.passed), str(getattr(said, "reason", "") or ""))
    if isinstance(said, tuple) and said and isinstance(said[0], bool):
        return Verdict(said[0], str(said[1]) if len(said) > 1 and said[1] else "")
    return Verdict(said is not False if none_passes else bool(said))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return dumps(value) if isinstance(value, (Mapping, list, tuple)) else str(value)
