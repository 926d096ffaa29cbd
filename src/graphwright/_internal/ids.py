"""Names for runs and calls that never repeat."""

from __future__ import annotations

import os
import time
from binascii import hexlify
from datetime import UTC, datetime
from uuid import uuid4

__all__ = ["new_call_id", "new_run_id"]

_second = -1
_stamp = ""


def new_run_id() -> str:
    """Return a sortable id: the UTC time to the microsecond, then 32 random hex digits."""
    global _second, _stamp
    now = time.time()
    second = int(now)
    if second != _second:
        _stamp = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%S")
        _second = second
    return f"{_stamp}{int((now - second) * 1e6):06d}-{hexlify(os.urandom(16)).decode()}"


def new_call_id() -> str:
    """Return an id for a tool call or a model call that came without one."""
    return f"call_{uuid4().hex}"
