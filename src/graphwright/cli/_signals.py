"""End a command by SIGTERM as by Ctrl-C: what is at work is cancelled, and cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["note_termination", "sigterm_interrupts", "was_terminated"]

_seen = threading.Event()


def was_terminated() -> bool:
    """Return whether SIGTERM ended the command."""
    return _seen.is_set()


def note_termination() -> None:
    """Let the command end with the exit code of SIGTERM."""
    _seen.set()


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM as an interrupt, unless somebody else handles it or this is not the main thread."""
    _seen.clear()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _seen.set()
    if callable(signal.getsignal(signal.SIGINT)):
        # The event loop's own handler cancels the run, and a second signal leaves at once.
        signal.raise_signal(signal.SIGINT)
    else:  # where interrupts are ignored, as in the background of a script
        raise KeyboardInterrupt
