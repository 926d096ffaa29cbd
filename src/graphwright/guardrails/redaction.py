"""Take findings out of a text. What parses as JSON before parses as JSON afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from graphwright.guardrails.report import Finding

__all__ = ["json_strings", "redacted"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)


def redacted(text: str, findings: Iterable[Finding]) -> str:
    """Return the text with every finding replaced by `[REDACTED:kind]`; one without a place takes the whole text."""
    spans = _merged([(finding.start, finding.end, finding.category) for finding in findings], len(text))
    if not spans:
        return text
    return _in_json(text, spans) if _is_json(text) else _replaced(text, spans)


def json_strings(text: str) -> list[tuple[str, list[int]]]:
    """Return the texts in a JSON document, unescaped, each with the place of every character; empty for other texts."""
    if "\\" not in text or not _is_json(text):
        return []
    return [_unescaped(match) for match in _TOKEN.finditer(text) if match.group()[0] == '"' and "\\" in match.group()]


def _merged(spans: Sequence[tuple[int, int, str]], length: int) -> list[tuple[int, int, str]]:
    whole = [(0, length, kind) if start < 0 else (start, end, kind) for start, end, kind in spans]
    merged: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(whole, key=lambda span: (span[0], -span[1])):
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            first, last, first_kind = merged[-1]
            merged[-1] = (first, max(last, end), first_kind)
        else:
            merged.append((start, end, kind))
    return merged


def _replaced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    kept: list[str] = []
    done = 0
    for start, end, kind in spans:
        kept += (text[done:start], _mark(kind))
        done = end
    return "".join([*kept, text[done:]])


def _mark(kind: str) -> str:
    return f"[REDACTED:{re.sub(r'[^a-z0-9_-]', '_', kind.lower())}]"


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_json(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """Redact inside strings and whole numbers; the signs between them stay."""
    kept: list[str] = []
    done = 0
    for token in _TOKEN.finditer(text):
        hit = [span for span in spans if span[0] < token.end() and span[1] > token.start()]
        if not hit:
            continue
        kept.append(text[done : token.start()])
        kept.append(_token(token, hit))
        done = token.end()
    return "".join([*kept, text[done:]])


def _token(token: re.Match[str], spans: Sequence[tuple[int, int, str]]) -> str:
    if token.group()[0] != '"':
        return json.dumps(_mark(spans[0][2]))
    out: list[str] = []
    marked: set[int] = set()
    inner = token.group()[1:-1]
    start = token.start() + 1
    for unit in _UNIT.finditer(inner):
        place = start + unit.start()
        hit = next((n for n, span in enumerate(spans) if span[0] < start + unit.end() and span[1] > place), None)
        if hit is None:
            out.append(unit.group())
        elif hit not in marked:
            marked.add(hit)
            out.append(_mark(spans[hit][2]))
    return f'"{"".join(out)}"'


def _unescaped(token: re.Match[str]) -> tuple[str, list[int]]:
    chars: list[str] = []
    places: list[int] = []
    start = token.start() + 1
    for unit in _UNIT.finditer(token.group()[1:-1]):
        plain = json.loads(f'"{unit.group()}"') if unit.group()[0] == "\\" else unit.group()
        chars.append(plain)
        places += [start + unit.start()] * len(plain)
    return "".join(chars), [*places, token.end() - 1]
