"""What the logs check alike."""

from __future__ import annotations

from graphwright.exceptions import ConfigurationError

__all__ = ["check_retention"]


def check_retention(older_than_seconds: float | None, keep_threads: int | None) -> None:
    """Refuse limits that would delete what nobody meant to delete."""
    if older_than_seconds is not None and not older_than_seconds >= 0:
        raise ConfigurationError(f"older_than_seconds is {older_than_seconds!r}; give a number of seconds from 0")
    if keep_threads is not None and keep_threads < 0:
        raise ConfigurationError(f"keep_threads is {keep_threads!r}; give the number of threads to keep, from 0")
