"""Decide whether and when a model call that failed is made again."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from graphwright._internal import clock
from graphwright.exceptions import ConfigurationError, ModelError

__all__ = ["DEFAULT_RETRY", "NO_RETRY", "RetryPolicy", "retry_after_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """How often a model call that failed in a way that can pass is made, and how long to wait in between."""

    attempts: int = 4
    """Most attempts in all; 1 never retries."""

    base_s: float = 0.5
    """Seconds up to which the first wait is drawn; doubled with every attempt."""

    cap_s: float = 60.0
    """Longest wait in seconds. A provider that asks for more ends the call with an error."""

    spread_s: float = 1.0
    """Most seconds added to a wait that the provider asked for, so that many clients do not return at once."""

    sleep: Callable[[float], Awaitable[None]] = clock.sleep

    draw: Callable[[], float] = random.random
    """Returns a number from 0 to below 1."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts!r}; give 1 or more")
        for name in ("base_s", "cap_s", "spread_s"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ConfigurationError(f"{name} is {value!r}; give a number of seconds, 0 or more")

    def wait_for(self, failure: ModelError, attempt: int) -> float | None:
        """Return the seconds to wait after attempt number `attempt` failed, or `None` when it has to stand."""
        if not failure.retryable or attempt >= self.attempts:
            return None
        asked = failure.retry_after
        if asked is None:
            return self.draw() * min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 60))
        if asked > self.cap_s:
            return None
        return asked + self.draw() * self.spread_s


DEFAULT_RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(attempts=1)


def retry_after_of(headers: Any, *, now: Callable[[], float] = clock.wall_time) -> float | None:
    """Return the seconds that a response's headers ask to wait, or `None` when they say nothing that makes sense."""
    get = getattr(headers, "get", None)
    if get is None:
        return None
    milliseconds = _number(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = _header(headers, "retry-after")
    if value is None:
        return None
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value, now())


def _header(headers: Any, name: str) -> str | None:
    for spelling in (name, name.title()):
        value = headers.get(spelling)
        if value is not None:
            return str(value)
    return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(value: str, now: float) -> float | None:
    try:
        wait = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait >= 0 else None
