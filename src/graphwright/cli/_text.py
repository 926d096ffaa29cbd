"""Make text of models, tools and files safe to print: nothing in it may steer a terminal."""

from __future__ import annotations

__all__ = ["elided", "one_line", "visible"]

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINES = (0x2028, 0x2029)
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_VISIBLE: dict[int, str] = {
    code: _escape(code) for code in (*_CONTROLS, *_BIDI, *_LINES, *range(0xD800, 0xE000)) if chr(code) not in "\n\t"
}


def visible(text: str) -> str:
    """Return `text` with every control character but newline and tab shown as an escape.

    That covers the escape sequences of terminals, the marks that reorder text, and halves of surrogate pairs. A
    carriage return counts as a new line.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_VISIBLE)


def one_line(text: str, limit: int = 0) -> str:
    """Return `text` as one visible line, cut to `limit` characters where that is given."""
    if limit:
        text = text[: 4 * limit]
    line = " ".join(visible(text).split())
    return line if not limit or len(line) <= limit else f"{line[: limit - 3]}..."


def elided(text: str, limit: int) -> str:
    """Return `text` with its middle left out where it is longer than `limit`: what happened, and the remedy."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 5]} ... {text[-tail:]}"
