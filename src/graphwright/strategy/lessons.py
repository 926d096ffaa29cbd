"""What went wrong, what was learned from it, and where both are kept."""

from __future__ import annotations

import copy
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

from graphwright._internal.ids import new_call_id
from graphwright._internal.jsonio import dumps
from graphwright._internal.redact import redact, redact_text
from graphwright.caller import IsolationKey

__all__ = ["Failure", "InMemoryLessons", "Lesson", "LessonBook", "LessonStore", "one_line"]

_ARGUMENT_CHARS = 300
_ERROR_CHARS = 300
_MOST_KEYS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One tool call that went wrong. Secrets are taken out, long texts are cut."""

    tool: str
    arguments: str
    error: str
    at: float
    kind: Literal["error", "denied", "feedback"] = "error"

    @classmethod
    def of(cls, tool: str, arguments: object, error: object, *, at: float, denied: bool = False) -> Failure:
        """Return the failure of a call as it may be kept."""
        return cls(
            tool=tool,
            arguments=one_line(dumps(redact(arguments)), _ARGUMENT_CHARS),
            error=one_line(redact_text(str(error)), _ERROR_CHARS),
            at=at,
            kind="denied" if denied else "error",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """A piece of advice on how to call one tool."""

    tool: str
    text: str
    confidence: float
    """From 0 to 1, as the model gave it."""
    made_at: float
    approved: bool = True
    """Whether it may be shown; with `review_lessons` only once somebody has said so."""
    id: str = field(default_factory=lambda: new_call_id().replace("call", "lesson"))

    def confidence_at(self, now: float, half_life: float) -> float:
        """Return the confidence that is left; with a half-life of 0 it does not fade."""
        if half_life <= 0:
            return self.confidence
        return self.confidence * float(0.5 ** (max(0.0, now - self.made_at) / half_life))

    def as_approved(self) -> Lesson:
        """Return the lesson as one that may be shown."""
        return replace(self, approved=True)


@dataclass(slots=True)
class LessonBook:
    """Everything that is kept for one caller, or for all of them together."""

    failures: list[Failure] = field(default_factory=list)
    """Those of which nothing was learned yet, the newest last."""
    lessons: list[Lesson] = field(default_factory=list)
    feedback_at: list[float] = field(default_factory=list)
    """When people gave feedback lately."""


@runtime_checkable
class LessonStore(Protocol):
    """Keeps one book a key."""

    async def load(self, key: IsolationKey) -> LessonBook:
        """Return the book of a key; an empty one where there is none."""
        ...

    async def save(self, key: IsolationKey, book: LessonBook) -> None:
        """Keep the book of a key."""
        ...

    async def purge(self, key: IsolationKey) -> int:
        """Forget the book of a key; return how many failures and lessons were in it."""
        ...


class InMemoryLessons:
    """Keeps books as long as the process lives, those used last."""

    def __init__(self, *, max_keys: int = _MOST_KEYS) -> None:
        self._most = max_keys
        self._books: OrderedDict[IsolationKey, LessonBook] = OrderedDict()

    async def load(self, key: IsolationKey) -> LessonBook:
        """Return a copy of the book."""
        found = self._books.get(key)
        return copy.deepcopy(found) if found is not None else LessonBook()

    async def save(self, key: IsolationKey, book: LessonBook) -> None:
        """Keep a copy of the book."""
        self._books[key] = copy.deepcopy(book)
        self._books.move_to_end(key)
        if len(self._books) > self._most:
            self._books.popitem(last=False)

    async def purge(self, key: IsolationKey) -> int:
        """Forget the book."""
        book = self._books.pop(key, None)
        return len(book.failures) + len(book.lessons) if book is not None else 0


def one_line(text: str, limit: int) -> str:
    """Return the text without line breaks and other control characters, cut to `limit` characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
