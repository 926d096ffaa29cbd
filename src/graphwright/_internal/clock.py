"""The one place where time is read and waited for by code whose waits a test wants to decide."""

from __future__ import annotations

import asyncio
import time

__all__ = ["sleep", "wall_time"]


async def sleep(seconds: float) -> None:
    """Wait for `seconds`, or until cancelled."""
    await asyncio.sleep(seconds)


def wall_time() -> float:
    """Return the seconds since the epoch."""
    return time.time()
