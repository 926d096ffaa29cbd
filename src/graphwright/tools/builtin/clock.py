"""The tool that tells the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from graphwright.exceptions import ToolError
from graphwright.tools.builtin._base import BuiltinTool

__all__ = ["GetDateTimeTool"]


class GetDateTimeTool(BuiltinTool):
    """Tell the date and time, in the zone of this machine or a named one.

    `now` returns the moment to tell, with its zone; it is there for tests and simulations.
    """

    tool_name = "get_datetime"
    risk_level = 0
    idempotent = True

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        name: str | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(name=name, timeout=timeout)
        self._now = now

    def call(self, tz: str = "local") -> str:
        """Tell the date and time as ISO 8601 with its offset from UTC, then the weekday and the zone.

        Args:
            tz: "local", "UTC" or an IANA name such as "Europe/Berlin".
        """
        zone = None if tz == "local" else _zone(tz)
        moment = self._now().astimezone(zone)
        return f"{moment.isoformat(timespec='seconds')} ({_WEEKDAYS[moment.weekday()]}, {moment.tzname() or tz})"


# Not strftime's, which are in the language of the machine.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, not a name at all, or a folder of the zone data
        raise ToolError(
            f"there is no time zone {name!r}; give 'local', 'UTC' or an IANA name of the form Region/City, "
            "such as 'Europe/Berlin' or 'America/New_York'"
        ) from None
