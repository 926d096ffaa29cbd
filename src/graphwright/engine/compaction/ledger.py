"""What a tool loop found out, as short facts: each call once, with its last result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.compaction.settings import ContextCompaction
from graphwright.messages import text_of

__all__ = ["Ledger", "history_lines", "shorten", "within"]

_LINE_CHARS = 120
_ARGUMENT_CHARS = 400
_EMPTY = "(no text)"


@dataclass(slots=True)
class _Fact:
    """One call and its last result, or something that was said on the way. Each form is written once."""

    number: int
    head: str
    text: str
    repeated: bool = False
    _full: str = ""
    _line: str = ""

    def full(self, limit: int) -> str:
        """Return the fact at length. Quotes keep a result that spans lines, or imitates a fact, in its place."""
        if not self._full:
            shown = self.text if self.repeated else shorten(self.text, limit)
            self._full = f"- [{self.number}] {self.head} {dumps(shown)}"
        return self._full

    def line(self) -> str:
        """Return the fact in one line."""
        if not self._line:
            if self._full and len(self._full) <= _LINE_CHARS:
                self._line = self._full
            else:
                self._line = (
                    f"- [{self.number}] {shorten(self.head, _LINE_CHARS)} {dumps(shorten(self.text, _LINE_CHARS))}"
                )
        return self._line


class Ledger:
    """The facts of a run, added once each and never built again."""

    __slots__ = ("_facts", "_made", "_most", "_settings", "left_out")

    def __init__(self, settings: ContextCompaction) -> None:
        self._settings = settings
        self._most = settings.most_facts
        self._facts: dict[str, _Fact] = {}
        self._made = 0
        self.left_out = 0
        """How many facts are too old to be kept."""

    def __len__(self) -> int:
        return len(self._facts)

    def add_call(self, name: str, args: dict[str, Any], result: Any) -> None:
        """Add a call with its result; an earlier result of the same call is replaced."""
        shown = dumps(args)
        how = "failed:" if getattr(result, "status", "") == "error" else "="
        # A picture is no text: the fact says that there was something.
        content = result.content
        text = content if type(content) is str else text_of(content)
        self._add(f"{name} {shown}", f"{name}({shorten(shown, _ARGUMENT_CHARS)}) {how}", text or _EMPTY)

    def add_text(self, text: str) -> None:
        """Add what the assistant wrote between its calls."""
        self._add(f" {text}", "you wrote:", text)

    def _add(self, key: str, head: str, text: str) -> None:
        self._made += 1
        known = self._facts.pop(key, None)
        # Whoever asks again for what was cut needs all of it.
        self._facts[key] = _Fact(self._made, head, text, known is not None)
        if len(self._facts) > self._most:
            del self._facts[next(iter(self._facts))]
            self.left_out += 1

    def lines(self, room: int | None, count: Callable[[str], int]) -> list[str]:
        """Return the facts, oldest first, in at most `room` tokens: the newest at length, the others a line each."""
        facts = list(self._facts.values())
        limit, at_length = self._settings.keep_result_chars, (self._settings.most_facts + 1) // 2
        if room is None:
            shown = [fact._line or fact.line() for fact in facts[:-at_length]]
            shown += [fact._full or fact.full(limit) for fact in facts[-at_length:]]
            return [_left_out(self.left_out), *shown] if self.left_out else shown
        shown = [fact.line() for fact in facts]
        left_out = self.left_out + within(shown, room, count)
        facts = facts[len(facts) - len(shown) :]
        room -= sum(map(count, shown))
        for place in range(len(facts) - 1, max(len(facts) - at_length, 0) - 1, -1):
            full = facts[place].full(limit)
            room -= count(full) - count(shown[place])
            if room < 0:
                break
            shown[place] = full
        return [_left_out(left_out), *shown] if left_out else shown


def _left_out(count: int) -> str:
    return f"({count} older facts are left out)"


def within(lines: list[str], room: int | None, count: Callable[[str], int]) -> int:
    """Take the oldest lines away until the rest fits, and return how many were taken."""
    if room is None:
        return 0
    kept = len(lines)
    for line in reversed(lines):
        room -= count(line)
        if room < 0:
            break
        kept -= 1
    del lines[:kept]
    return kept


def history_lines(messages: Iterable[Any], settings: ContextCompaction) -> list[str]:
    """Return what was said before the question, a line a message, the newest at more length."""
    told = [line for message in messages for line in _told(message)]
    longer = len(told) - settings.history_messages
    lines = [
        f"- {head} {dumps(shorten(text, settings.history_chars if place >= longer else _LINE_CHARS))}"
        for place, (head, text) in enumerate(told)
    ]
    spare = len(lines) - settings.most_facts - settings.history_messages
    return [f"({spare} older messages are left out)", *lines[spare:]] if spare > 0 else lines


def _told(message: Any) -> list[tuple[str, str]]:
    text = text_of(message)
    if message.type == "tool":
        return [(f"result of {message.name or 'a tool'}:", text or _EMPTY)]
    if message.type == "system" or not text:
        return []
    return [("the user:" if message.type == "human" else "you:", text)]


def shorten(text: str, limit: int) -> str:
    """Return the text in at most about `limit` characters, saying how long it was."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
