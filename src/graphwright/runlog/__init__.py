"""Keep what a run did, so that it can be paused, looked at, and gone on with after a crash."""

from __future__ import annotations

import os
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.runlog.base import ANY_OWNER, BusyPolicy, Row, RunInfo, RunLog, RunStatus, RunWriter, ThreadInfo
from graphwright.runlog.memory import MemoryRunLog
from graphwright.runlog.sqlite import SQLiteRunLog

__all__ = [
    "ANY_OWNER",
    "BusyPolicy",
    "MemoryRunLog",
    "Row",
    "RunInfo",
    "RunLog",
    "RunStatus",
    "RunWriter",
    "SQLiteRunLog",
    "ThreadInfo",
    "as_run_log",
]


def as_run_log(value: Any) -> RunLog | None:
    """Return the log that a `runlog=` option means: a log, a path, `True` for the default file, `None` for none."""
    if value is None or isinstance(value, RunLog):
        return value
    if value is True:
        return SQLiteRunLog()
    if isinstance(value, (str, os.PathLike)):
        return SQLiteRunLog(value)
    raise ConfigurationError(
        f"runlog is {value!r}; give a run log such as MemoryRunLog(), the path of a file, True for the default file, "
        "or None for no log"
    )
