"""What goes to stderr: errors of a few lines, and log records and warnings of one line each."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from graphwright.cli._text import elided, one_line, visible
from graphwright.exceptions import GraphIterationLimitError, GraphwrightError, RunTimeoutError

__all__ = ["DEBUG", "error_lines", "print_error", "short_diagnostics"]

DEBUG = "GRAPHWRIGHT_DEBUG"

_MOST_LINES = 5
_MOST_CHARS = 400


def print_error(error: BaseException, options: argparse.Namespace) -> None:
    """Print what went wrong, and with GRAPHWRIGHT_DEBUG set also where."""
    if _debugging():
        print(visible("".join(traceback.format_exception(error))), file=sys.stderr)
    for line in error_lines(error, options):
        print(line, file=sys.stderr)


def error_lines(error: BaseException, options: argparse.Namespace) -> list[str]:
    """Return the message of an error in at most six lines; the last one says what to do, where that is known."""
    known = isinstance(error, GraphwrightError)
    text = str(error) if known else f"unexpected {type(error).__name__}: {error}"
    lines = [line for line in visible(text).splitlines() if line.strip()] or [type(error).__name__]
    hint = _hint(error, options)
    most = _MOST_LINES if hint else _MOST_LINES + 1
    if len(lines) > most:
        lines = [*lines[: most - 1], f"... and {len(lines) - most + 1} more lines; {DEBUG}=1 shows them"]
    lines = [elided(line, _MOST_CHARS) for line in lines]
    return [f"graphwright: error: {lines[0]}", *lines[1:], *([hint] if hint else [])]


def _hint(error: BaseException, options: argparse.Namespace) -> str:
    if isinstance(error, GraphIterationLimitError) and hasattr(options, "max_iterations"):
        return "try: --max-iterations with a larger number"
    if isinstance(error, RunTimeoutError) and hasattr(options, "timeout"):
        return "try: --timeout with more seconds"
    if not isinstance(error, GraphwrightError):
        return f"this should not happen; {DEBUG}=1 shows where it did"
    return ""


@contextmanager
def short_diagnostics() -> Iterator[None]:
    """Show log records as one line each, and Python's warnings not at all, unless somebody has said otherwise."""
    root = logging.getLogger()
    handler = _ToStderr(logging.WARNING)
    handler.setFormatter(_OneLine())
    ours = not root.handlers
    if ours:
        root.addHandler(handler)
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions and not _debugging():
                warnings.simplefilter("ignore")
            yield
    finally:
        if ours:
            root.removeHandler(handler)


class _ToStderr(logging.Handler):
    """Prints to what stderr is when a record comes: a view may stand in front of it."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


class _OneLine(logging.Formatter):
    """One line a record; with GRAPHWRIGHT_DEBUG set, its traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"graphwright: {record.levelname.lower()}: {one_line(record.getMessage(), _MOST_CHARS)}"
        if record.exc_info and record.exc_info[1] is not None:
            if _debugging():
                return f"{line}\n{visible(self.formatException(record.exc_info))}"
            line += f" ({type(record.exc_info[1]).__name__}: {one_line(str(record.exc_info[1]), _MOST_CHARS)})"
        return line


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")
