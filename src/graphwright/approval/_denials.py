"""Remember who said no to what, so that a model which asks again and again is told no without anybody being asked."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

__all__ = ["Denials"]

_MOST_KEYS = 10_000


class Denials:
    """The latest denials of each tool, within a window of time."""

    def __init__(self, limit: int, window: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = max(1, limit)
        self._window = window
        self._clock = clock
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def add(self, scope: str, tool: str) -> None:
        """Count one denial."""
        times = self._times.setdefault((scope, tool), deque(maxlen=self._limit))
        times.append(self._clock())
        self._times.move_to_end((scope, tool))
        if len(self._times) > _MOST_KEYS:
            self._times.popitem(last=False)

    def refusal(self, scope: str, tool: str) -> str:
        """Return why nobody is asked about the tool now; empty when somebody may be."""
        times = self._times.get((scope, tool))
        if times is None:
            return ""
        oldest = self._clock() - self._window
        while times and times[0] < oldest:
            times.popleft()
        if not times:
            del self._times[(scope, tool)]
            return ""
        if len(times) < self._limit:
            return ""
        return (
            f"{tool!r} was denied {len(times)} times in the last {self._window:g} seconds, so nobody is asked about it "
            "now; do not call it again, and go on without it"
        )
