"""The JSON block that may close a text: kept from the reader, also while the text is still being written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from graphwright.run_events import Emit, ModelFinished, Restarted, RunEvent, TextDelta

__all__ = ["ClosedText", "HoldBack", "split_closing"]

_KEYS = ("confidence", "sources")
_WHOLE_KEYS = ("answer", *_KEYS)
_OPENING = re.compile(r"(?:^|\n)[ \t]*(?=[`{])")
_decoder = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedText:
    """A text, and the data of the block that closed it."""

    text: str
    data: dict[str, Any] | None = None
    """`None` when no block closes the text."""


def split_closing(text: str) -> ClosedText:
    """Return the text without the block of `confidence` and `sources` that closes it, and the block's data.

    A text that is nothing but such an object with an `answer` is read as that answer.
    """
    for opening in _OPENING.finditer(text):
        before = text[: opening.start()].rstrip()
        data = _closing_data(text[opening.end() :], whole=not before)
        if data is None:
            continue
        if before:
            return ClosedText(text=before, data=data)
        answer = data.get("answer")
        if isinstance(answer, str) and answer.strip():
            return ClosedText(text=answer, data=data)
    return ClosedText(text=text)


class HoldBack:
    """Passes events on, and keeps back what may turn out to be the closing block until it is clear."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._all = ""
        self._shown = 0
        self._last: TextDelta | None = None

    async def __call__(self, event: RunEvent) -> None:
        """Take one event."""
        if isinstance(event, TextDelta):
            if self._last is not None and self._last.call_id != event.call_id:
                await self.flush()
            self._all += event.text
            self._last = event
            await self._show(self._all[: self._clear()])
            return
        if isinstance(event, ModelFinished):
            await self.flush()
        elif isinstance(event, Restarted):
            event = replace(event, dropped=self._all[: self._shown])
            self._reset()
        await self._emit(event)

    async def flush(self) -> None:
        """Show the rest of a text that has ended, without the block that closed it."""
        if self._last is not None:
            await self._show(split_closing(self._all).text)
        self._reset()

    def _reset(self) -> None:
        self._all, self._shown, self._last = "", 0, None

    async def _show(self, text: str) -> None:
        event = self._last
        if event is None or len(text) <= self._shown:
            return
        piece = text[self._shown :]
        self._shown = len(text)
        await self._emit(event if piece == event.text else replace(event, text=piece, chunk=None))

    def _clear(self) -> int:
        """Return how much of the text cannot belong to a closing block."""
        # A block opens after a line break, which is kept back with it; so the shown part holds no opening.
        for opening in _OPENING.finditer(self._all, max(self._shown - 1, 0)):
            if opening.start() and self._all[opening.start()] != "\n":
                continue
            before = self._all[: opening.start()].rstrip()
            if _may_close(self._all[opening.end() :], whole=not before):
                return len(before)
        return len(self._all.rstrip())


def _closing_data(text: str, *, whole: bool) -> dict[str, Any] | None:
    """Return the object that `text` is, alone or in a fence, when its keys are those of a closing block."""
    body = _without_fence(text)
    if not body or body[0] != "{":
        return None
    try:
        data, end = _decoder.raw_decode(body)
    except (ValueError, RecursionError):
        return None
    known = _WHOLE_KEYS if whole else _KEYS
    return data if data and set(data) <= set(known) and body[end:].strip() in ("", "```") else None


def _may_close(text: str, *, whole: bool) -> bool:
    """Return whether `text`, of which more may come, can still become a closing block."""
    body = _without_fence(text)
    if body is None:
        return False
    if not body:
        return True
    if body[0] != "{":
        return False
    inner = body[1:].lstrip()
    keys = [f'"{key}"' for key in (_WHOLE_KEYS if whole else _KEYS)]
    if inner and not any(inner.startswith(key) or key.startswith(inner) for key in keys):
        return False
    try:
        _, end = _decoder.raw_decode(body)
    except (ValueError, RecursionError):
        return True
    return "```".startswith(body[end:].strip())


def _without_fence(text: str) -> str | None:
    """Return what follows the opening of a JSON fence, `""` when that is not there yet, `None` for another fence."""
    if not text.startswith("`"):
        return text.lstrip()
    if not text.startswith("```"):
        return "" if "```".startswith(text) else None
    rest = text[3:]
    word = re.match(r"[^\s{]*", rest)
    assert word is not None
    language = word.group().lower()
    if word.end() == len(rest):
        return "" if "json".startswith(language) else None
    return rest[word.end() :].lstrip() if language in ("", "json") else None
