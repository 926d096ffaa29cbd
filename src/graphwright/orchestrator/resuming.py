"""The answers that were given ahead of a stream: each belongs to one thread, or to the task that gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from graphwright.runtime import NOTHING

__all__ = ["Armed"]

_MOST_THREADS = 10_000


@dataclass(frozen=True, slots=True)
class _Here:
    """What one task knows of a bot."""

    thread_id: str | None = None
    ids: tuple[str, ...] = ()
    """What the thread was waiting for when the task was shown it."""
    answers: Any = NOTHING


_NOBODY = _Here()

# One variable for all bots: a context keeps each variable that was ever set in it, and would keep one for each bot.
_here: ContextVar[WeakKeyDictionary[Armed, _Here] | None] = ContextVar("graphwright_answers", default=None)


class Armed:
    """Keeps answers until the stream that goes on with them begins.

    An answer that is not given by its id is tied to what the task was shown when it gave it, so that it can answer
    nothing that came later.
    """

    def __init__(self) -> None:
        self._by_thread: dict[str, Any] = {}

    def saw_pause(self, thread_id: str, ids: Sequence[str]) -> None:
        """Note that the calling task was shown what a thread waits for."""
        self._note(_Here(thread_id, tuple(ids)))

    def last_thread(self) -> str | None:
        """Return the thread whose interrupt this task has seen last."""
        return self._mine().thread_id

    def set(self, answers: Any, thread_id: str | None) -> None:
        """Keep answers for a thread; without one, for the thread that this task saw pause, else for this task."""
        mine = self._mine()
        thread_id = thread_id or mine.thread_id
        if thread_id is None:
            self._note(replace(mine, answers=answers))
            return
        if thread_id == mine.thread_id and mine.ids and not _has_ids(answers):
            answers = {mine.ids[0]: answers}
        self._by_thread.pop(thread_id, None)
        self._by_thread[thread_id] = answers
        if len(self._by_thread) > _MOST_THREADS:
            # A thread that nobody went on with for so long waits for its answer again.
            del self._by_thread[next(iter(self._by_thread))]

    def take(self, thread_id: str | None) -> Any:
        """Return the answers for a thread and forget them; `NOTHING` when there are none."""
        mine = self._mine()
        thread_id = thread_id or mine.thread_id
        if thread_id is not None and thread_id in self._by_thread:
            return self._by_thread.pop(thread_id)
        if mine.answers is not NOTHING:
            self._note(replace(mine, answers=NOTHING))
        return mine.answers

    def drop(self, thread_id: str | None) -> None:
        """Forget what was given for a thread and what this task gave: something new is about to be asked."""
        if thread_id is not None:
            self._by_thread.pop(thread_id, None)
        if self._mine() is not _NOBODY:
            self._note(_NOBODY)

    def _mine(self) -> _Here:
        known = _here.get()
        return known.get(self, _NOBODY) if known is not None else _NOBODY

    def _note(self, mine: _Here) -> None:
        # A copy, for other tasks may have begun with the same one.
        known = WeakKeyDictionary(_here.get() or {})
        known[self] = mine
        _here.set(known)


def _has_ids(answers: Any) -> bool:
    return isinstance(answers, Mapping) and any(isinstance(key, str) and key.startswith("int_") for key in answers)
