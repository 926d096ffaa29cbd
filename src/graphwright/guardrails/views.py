"""Read a text as a model might: without disguises, and with every place in it mapped to the author's text.

Only what detectors look at is made here. What is passed on is the author's text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

__all__ = ["View", "all_views", "plain_views"]

_MOST_ROUNDS = 3
_MOST_CHARS = 400_000

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class View:
    """One reading of a text."""

    text: str
    places: list[Place] | None = None
    """For each character the stretch of the author's text that it stands for; `None` where they are the same."""
    loose: bool = False
    """Whether spaces between words may be missing."""

    def place_of(self, start: int, end: int) -> Place:
        """Return where in the author's text a stretch of this view comes from."""
        if self.places is None:
            return start, end
        inside = self.places[start:end]
        if not inside:
            return 0, 0
        return min(place[0] for place in inside), max(place[1] for place in inside)


def plain_views(text: str) -> list[View]:
    """Return the text itself, folded to plain characters, and with what is encoded in it decoded."""
    first = View(text)
    found = [first]
    folded = _folded(first)
    if folded is not first:
        found.append(folded)
    decoded = _decoded(folded)
    if decoded is not folded:
        found.append(decoded)
    return found


def all_views(text: str) -> list[View]:
    """Return the plain views, and the disguises that only instructions wear: spaced, leet, turned and shifted."""
    found = plain_views(text)
    clear = found[-1]
    spaced = _substituted(clear, _SPACED, _without_gaps) if _CLEARLY_SPACED.search(clear.text) else None
    if spaced is not None:
        found.append(View(spaced.text, spaced.places, loose=True))
    if _LEET_WORD.search(clear.text):
        found.append(View(clear.text.translate(_LEET), clear.places))
    shifted = codecs.encode(clear.text, "rot13")
    found.append(View(shifted, clear.places))
    places = clear.places or [(at, at + 1) for at in range(len(clear.text))]
    found.append(View(clear.text[::-1], places[::-1]))
    return found


_INVISIBLE = frozenset(
    [
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0xE007F),
        *(*range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
        *(*range(0xFE00, 0xFE10), *range(0xE0000, 0xE0020), *range(0xE0100, 0xE01F0)),
    ]
)
_LOOKALIKES = {
    pair[0]: pair[1]
    for pair in [
        "аa",
        "вb",
        "еe",
        "кk",
        "мm",
        "нh",
        "оo",
        "рp",
        "сc",
        "тt",
        "уy",
        "хx",
        "іi",
        "јj",
        "ѕs",
        "ԁd",
        "һh",
        "ӏl",
        "ԛq",
        "ԝw",
        "АA",
        "ВB",
        "ЕE",
        "КK",
        "МM",
        "НH",
        "ОO",
        "РP",
        "СC",
        "ТT",
        "УY",
        "ХX",
        "ІI",
        "ЈJ",
        "ЅS",
        "αa",
        "εe",
        "ιi",
        "κk",
        "νv",
        "οo",
        "ρp",
        "τt",
        "υu",
        "χx",
        "ΑA",
        "ΒB",
        "ΕE",
        "ΖZ",
        "ΗH",
        "ΙI",
        "ΚK",
        "ΜM",
        "ΝN",
        "ΟO",
        "ΡP",
        "ΤT",
        "ΥY",
        "ΧX",
        "ıi",
        "ɑa",
        "ɡg",
        "ոn",
        "սu",
        "օo",
    ]
}
"""Letters of other scripts -> the Latin letter that they look like."""


def _fold_char(char: str) -> str:
    code = ord(char)
    if code in _INVISIBLE:
        return ""
    if 0xE0020 <= code <= 0xE007E:  # invisible, and a model reads it as ASCII
        return chr(code - 0xE0000)
    parts = unicodedata.normalize("NFKD", char)
    return "".join(_LOOKALIKES.get(part, part) for part in parts if unicodedata.category(part) != "Mn")


def _folded(view: View) -> View:
    text = view.text
    if text.isascii():
        return view
    out: list[str] = []
    places: list[Place] = []
    known: dict[str, str] = {}
    for at, char in enumerate(text):
        folded = char if char.isascii() else known.get(char)
        if folded is None:
            folded = known[char] = _fold_char(char)
        out.append(folded)
        places += [(at, at + 1)] * len(folded)
    joined = "".join(out)
    return view if joined == text else View(joined, places)


def _decoded(view: View) -> View:
    for _ in range(_MOST_ROUNDS):
        before = view
        for pattern, decode in _ENCODINGS:
            changed = _substituted(view, pattern, decode)
            if changed is not None:
                view = _folded_again(changed)
        if view is before or len(view.text) > _MOST_CHARS:
            break
    return view


def _folded_again(view: View) -> View:
    """Fold a view that was decoded, and keep its places."""
    folded = _folded(View(view.text))
    if folded.places is None or view.places is None:
        return view
    return View(folded.text, [view.places[start] for start, _ in folded.places])


def _substituted(view: View, pattern: re.Pattern[str], decode: Callable[[re.Match[str]], str | None]) -> View | None:
    """Return the view with every match decoded; `None` where there is nothing to decode."""
    out: list[str] = []
    places: list[Place] = []
    done = 0
    for match in pattern.finditer(view.text):
        plain = decode(match)
        if plain is None or plain == match.group():
            continue
        out += (view.text[done : match.start()], plain)
        places += _places(view, done, match.start())
        places += [view.place_of(match.start(), match.end())] * len(plain)
        done = match.end()
    if not out:
        return None
    places += _places(view, done, len(view.text))
    return View("".join([*out, view.text[done:]]), places)


def _places(view: View, start: int, end: int) -> Iterator[Place] | list[Place]:
    if view.places is None:
        return ((at, at + 1) for at in range(start, end))
    return view.places[start:end]


def _readable(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    printable = sum(char.isprintable() or char in "\n\r\t" for char in text)
    return text if len(text) >= 4 and printable >= 0.95 * len(text) else None


def _from_base64(match: re.Match[str]) -> str | None:
    raw = re.sub(r"\s", "", match.group()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def _from_base32(match: re.Match[str]) -> str | None:
    raw = match.group().rstrip("=")
    try:
        return _readable(base64.b32decode(raw + "=" * (-len(raw) % 8)))
    except (binascii.Error, ValueError):
        return None


def _from_hex(match: re.Match[str]) -> str | None:
    digits = re.sub(r"0x|\\x|[\s:,]", "", match.group())
    try:
        return _readable(bytes.fromhex(digits))
    except ValueError:
        return None


def _from_percent(match: re.Match[str]) -> str | None:
    return unquote_to_bytes(match.group()).decode("utf-8", "replace")


def _from_entity(match: re.Match[str]) -> str | None:
    return html.unescape(match.group())


def _from_escape(match: re.Match[str]) -> str | None:
    code = int(match[1] or match[2], 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else None


def _from_bits(match: re.Match[str]) -> str | None:
    bits = re.sub(r"\s", "", match.group())
    return _readable(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))


_ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (re.compile(r"(?:%[0-9A-Fa-f]{2})+"), _from_percent),
    (re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"), _from_entity),
    (re.compile(r"\\u\{?([0-9A-Fa-f]{4,6})\}?|\\x([0-9A-Fa-f]{2})"), _from_escape),
    (re.compile(r"\b[01]{8}(?:\s?[01]{8}){3,}\b"), _from_bits),
    (re.compile(r"\b(?:0x)?[0-9A-Fa-f]{2}(?:[\s:,]?(?:0x)?[0-9A-Fa-f]{2}){5,}\b"), _from_hex),
    (re.compile(r"(?<![A-Z2-7])[A-Z2-7]{16,}={0,6}(?![A-Z2-7=])"), _from_base32),
    (re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{12,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*={0,2}(?![\w+/=])"), _from_base64),
)

_SPACED = re.compile(r"(?<![^\W_])(?<![^\W_][ .\-_*|])(?:[^\W_][ .\-_*|])+[^\W_](?![^\W_])")
_CLEARLY_SPACED = re.compile(r"(?:(?<![^\W_])[^\W_][ .\-_*|]){4,}")


def _without_gaps(match: re.Match[str]) -> str:
    return re.sub(r"[\s.\-_*|]", "", match.group())


_LEET_WORD = re.compile(r"[A-Za-z][013457@$][A-Za-z013457@$]|[013457@$][A-Za-z]")
_LEET = str.maketrans("013457@$", "oieastas")
