"""Names for runs and calls that never repeat."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

__all__ = ["new_call_id", "new_run_id"]

_second = -1
_stamp = ""

# The system is asked for many ids' worth of random bytes at a time: the call costs more than the rest of an id.
_AHEAD = 256
_random: list[str] = []


def new_run_id() -> str:
    """Return a sortable id: the UTC time to the microsecond, then 32 random hex digits."""
    global _second, _stamp
    now = time.time()
    second = int(now)
    if second != _second:
        _stamp = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%S")
        _second = second
    return f"{_stamp}{int((now - second) * 1e6):06d}-{_random_hex()}"


def new_call_id() -> str:
    """Return an id for a tool call or a model call that came without one."""
    return f"call_{_random_hex()}"


def _random_hex() -> str:
    """Return 32 random hex digits."""
    try:
        return _random.pop()
    except IndexError:
        digits = os.urandom(16 * _AHEAD).hex()
        _random.extend(digits[start : start + 32] for start in range(0, len(digits), 32))
        return _random.pop()


if hasattr(os, "register_at_fork"):
    # A child that went on with its parent's digits would give the same ids.
    os.register_at_fork(after_in_child=_random.clear)
