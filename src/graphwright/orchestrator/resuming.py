"""The answers that were given ahead of a stream: each belongs to one thread, or to the task that gave it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from graphwright.runtime import NOTHING

__all__ = ["Armed"]


class Armed:
    """Keeps answers until the stream that goes on with them begins. One that no stream took stays with its thread."""

    def __init__(self) -> None:
        self._by_thread: dict[str, Any] = {}
        # A variable of the task, so that no other task ever finds the answer of this one.
        self._here: ContextVar[Any] = ContextVar("graphwright_answer", default=NOTHING)
        self._seen: ContextVar[str | None] = ContextVar("graphwright_paused_thread", default=None)

    def saw_pause(self, thread_id: str) -> None:
        """Note that the task that reads a stream was shown an interrupt of a thread."""
        self._seen.set(thread_id)

    def last_thread(self) -> str | None:
        """Return the thread whose interrupt this task has seen last."""
        return self._seen.get()

    def set(self, answers: Any, thread_id: str | None) -> None:
        """Keep answers for a thread; without one, for the thread that this task saw pause, else for this task."""
        thread_id = thread_id or self._seen.get()
        if thread_id is not None:
            self._by_thread[thread_id] = answers
        else:
            self._here.set(answers)

    def take(self, thread_id: str | None) -> Any:
        """Return the answers for a thread and forget them; `NOTHING` when there are none."""
        thread_id = thread_id or self._seen.get()
        if thread_id is not None and thread_id in self._by_thread:
            return self._by_thread.pop(thread_id)
        answers = self._here.get()
        self._here.set(NOTHING)
        return answers

    def drop(self, thread_id: str | None) -> None:
        """Forget what was given for a thread: a new goal asks its own questions."""
        if thread_id is not None:
            self._by_thread.pop(thread_id, None)
        self._here.set(NOTHING)
