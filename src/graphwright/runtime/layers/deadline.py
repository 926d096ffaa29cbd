"""Stop a run that takes too long."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import RunTimeoutError

if TYPE_CHECKING:
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["deadline_layer"]


def deadline_layer(seconds: float) -> Layer:
    """Return a layer that stops the rest after `seconds`, whether or not somebody reads its events."""

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        request.deadline = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                return await call_next(request)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise RunTimeoutError(
                f"the run took longer than its limit of {seconds:g} s and was stopped; "
                "raise max_invocation_time or ask for less",
                seconds=seconds,
            ) from error

    return layer
