"""Text that several models write at the same time, told one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphwright.run_events import TextDelta, ThinkingDelta

__all__ = ["Speaker", "Speech"]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who writes: one model call of a node."""

    path: str

    node: str

    call_id: str


class Speech:
    """Gives the floor to the first who writes until that text ends, and keeps what others write meanwhile."""

    def __init__(self, tell: Callable[[Speaker, str, bool], None], close: Callable[[Speaker], None]) -> None:
        """`tell(speaker, text, is_thinking)` shows a piece, and `close(speaker)` comes after the last one of a text."""
        self._tell = tell
        self._close = close
        self._floor: Speaker | None = None
        self._kept: dict[Speaker, list[tuple[str, bool]]] = {}
        self._ended: set[Speaker] = set()
        self._said: list[str] = []
        self.last = ""
        """The text that was told last, as a whole."""

    @property
    def is_open(self) -> bool:
        """Whether somebody has the floor."""
        return self._floor is not None

    def say(self, event: TextDelta | ThinkingDelta) -> None:
        """Tell a piece, now or when its speaker has the floor."""
        speaker = Speaker(event.path, event.node, event.call_id)
        piece = event.text, isinstance(event, ThinkingDelta)
        if self._floor is None:
            self._floor = speaker
        if speaker == self._floor:
            self._out(speaker, *piece)
        else:
            self._kept.setdefault(speaker, []).append(piece)

    def restart(self, speaker: Speaker) -> bool:
        """Forget what a speaker has said so far, and return whether some of it was told."""
        self._kept.pop(speaker, None)
        if speaker != self._floor:
            return False
        self._said.clear()
        return True

    def finish(self, speaker: Speaker) -> None:
        """End the text of a speaker, and tell what others have said meanwhile."""
        if speaker in self._kept:
            self._ended.add(speaker)
        elif speaker == self._floor:
            self._end(speaker)
            self._next()

    def finish_node(self, path: str, node: str) -> None:
        """End every text of a node."""
        for speaker in [*self._kept, self._floor]:
            if speaker is not None and (speaker.path, speaker.node) == (path, node):
                self.finish(speaker)

    def finish_all(self) -> None:
        """End every text."""
        self._ended.update(self._kept)
        if self._floor is not None:
            self.finish(self._floor)

    def _next(self) -> None:
        """Tell what has ended meanwhile, and give the floor to one that goes on."""
        for speaker in sorted(self._kept, key=lambda waiting: waiting not in self._ended):
            for text, thinking in self._kept.pop(speaker):
                self._out(speaker, text, thinking)
            if speaker not in self._ended:
                self._floor = speaker
                return
            self._ended.discard(speaker)
            self._end(speaker)

    def _out(self, speaker: Speaker, text: str, thinking: bool) -> None:
        if not thinking:
            self._said.append(text)
        self._tell(speaker, text, thinking)

    def _end(self, speaker: Speaker) -> None:
        self._close(speaker)
        self.last = "".join(self._said)
        self._said.clear()
        self._floor = None
