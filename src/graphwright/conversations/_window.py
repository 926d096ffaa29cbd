"""Where a conversation can be cut: never inside a tool round, and never so that the question is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

__all__ = ["Window", "newest", "window_of"]


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...

    @property
    def role(self) -> str: ...


Item = TypeVar("Item", bound=_Numbered)


class Window(NamedTuple):
    """What is kept: everything from `start` on, and the question where it is older."""

    start: int
    """Sequence number of the first message that stays."""
    question: int
    """Sequence number of the user's last message; 0 when there is none."""

    def keeps(self, seq: int) -> bool:
        """Return whether the message with this number stays."""
        return seq >= self.start or seq == self.question


def window_of(newest_first: Sequence[tuple[int, str]], limit: int, *, question: int, head: int) -> Window:
    """Return the window of about `limit` messages, from the (seq, role) of the newest ones.

    `question` is the sequence number of the user's last message, `head` that of the last message that is no tool
    result. Older rounds that do not fit go as a whole; the newest round stays, also beyond the limit.
    """
    kept = newest_first[:limit]
    if question and limit > 1 and all(seq != question for seq, _ in kept):
        kept = kept[: limit - 1]
    starts = [seq for seq, role in kept if role != "tool"]
    return Window(min(starts) if starts else head, question)


def newest(items: list[Item], limit: int) -> list[Item]:
    """Return about the newest `limit` of what is in the order of its `seq`, cut where a conversation can be cut."""
    if len(items) <= limit:
        return items
    ahead = [(item.seq, item.role) for item in items[: -limit - 1 : -1]]
    question = next((item.seq for item in reversed(items) if item.role == "user"), 0)
    head = next((item.seq for item in reversed(items) if item.role != "tool"), 0)
    window = window_of(ahead, limit, question=question, head=head)
    return [item for item in items if window.keeps(item.seq)]
