"""Take credentials out of what is recorded, traced, or shown to a person who approves.

Keys decide first, then what looks like a credential inside a text. What a tool is called with is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

__all__ = ["REDACTED", "is_secret_key", "redact", "redact_text", "restored"]

REDACTED = "[redacted]"

_MOST_LEVELS = 60
_ATOMS = frozenset({int, float, bool, type(None)})


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = _split(
    "password passwords passwd passwds passphrase passcode pwd secret secrets credential credentials authorization "
    "cookie cookies bearer jwt apikey apikeys"
)
_PAIRS = _split(
    "api-key api-keys private-key private-keys secret-key signing-key encryption-key ssh-key access-key account-key "
    "session-key auth-key auth-header access-tokens refresh-tokens auth-tokens session-tokens bearer-tokens"
)
_SQUEEZED = re.compile(
    r"password|passwd|passphrase|secret(?!ar)|credential|apikey|privatekey|secretkey|accesskey"
    r"|(access|refresh|auth|session|bearer)tokens?(?!count|limit|type|iz)|authorization"
)
_HARMLESS_TOKENS = _split(
    "max min page next continuation stop start eos bos pad unk sep mask special per first last total input output "
    "prompt completion new previous prev cursor"
)
"""Words before `token` that tell of language or of paging, not of access."""

_FIGURES = _split("count counts length limit max min policy type expiry expires ttl age size")
"""Last words of a key that tell about a secret without being one, as long as the value is a number."""

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def is_secret_key(key: object) -> bool:
    """Return whether a key names a credential, however it is spelt: `api_key`, `apiKey`, `X-API-Key`."""
    return isinstance(key, str) and _names_secret(key)


@lru_cache(maxsize=4096)
def _names_secret(key: str) -> bool:
    words = [word.lower() for word in _WORD.findall(key)]
    if not words:
        return False
    pairs = (f"{first}-{second}" for first, second in pairwise(words))
    if words == ["auth"] or not _WORDS.isdisjoint(words) or not _PAIRS.isdisjoint(pairs):
        return True
    if words[-1] == "token" and (len(words) == 1 or words[-2] not in _HARMLESS_TOKENS):
        return True
    return bool(_SQUEEZED.search("".join(words)))


def redact(value: Any) -> Any:
    """Return a copy with every credential replaced by `REDACTED`; what holds none is equal to what was given.

    Dicts, lists, tuples, pydantic models and dataclasses are looked into (the last two become dicts), texts are
    searched, and anything else is passed on.
    """
    return _redacted(value, _MOST_LEVELS)


def _redacted(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind is str:
        return redact_text(value)
    if kind in _ATOMS:
        return value
    if isinstance(value, str):
        return redact_text(value)
    if kind is dict and levels:
        return {key: _entry(key, entry, levels - 1) for key, entry in value.items()}
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return value
    if levels == 0:
        return REDACTED  # what is not looked into may hold anything
    if isinstance(value, Mapping):
        return {key: _entry(key, entry, levels - 1) for key, entry in value.items()}
    inner = [_redacted(entry, levels - 1) for entry in value]
    if isinstance(value, tuple):
        return tuple(inner)
    # What was looked into may have become a dict, which no set can hold.
    return inner if isinstance(value, list) or not all(isinstance(entry, Hashable) for entry in inner) else set(inner)


def restored(edited: Any, shown: Any, raw: Any) -> Any:
    """Return an edited value with what was hidden from the editor put back: what equals `shown` becomes `raw` again.

    Raises:
        ValueError: something hidden was moved to a place where it cannot be told what it stands for.
    """
    if type(edited) is type(shown) and edited == shown:
        return raw
    if isinstance(edited, Mapping) and isinstance(shown, Mapping) and isinstance(raw, Mapping):
        return {
            key: restored(value, shown[key], raw[key]) if key in shown and key in raw else restored(value, None, None)
            for key, value in edited.items()
        }
    if isinstance(edited, Mapping):
        return {key: restored(value, None, None) for key, value in edited.items()}
    if isinstance(edited, list):
        known = isinstance(shown, list) and isinstance(raw, list) and len(shown) == len(edited) == len(raw)
        pairs = zip(shown, raw, strict=True) if known else [(None, None)] * len(edited)
        return [restored(value, *pair) for value, pair in zip(edited, pairs, strict=True)]
    if isinstance(edited, str) and REDACTED in edited and not (isinstance(raw, str) and REDACTED in raw):
        raise ValueError(f"{edited!r} holds {REDACTED!r}, which stands for something hidden; write it out or leave it")
    return edited


def _entry(key: object, value: Any, levels: int) -> Any:
    return REDACTED if is_secret_key(key) and _may_be_secret(key, value) else _redacted(value, levels)


def _may_be_secret(key: object, value: Any) -> bool:
    """Return whether a value under a secret's key can be the secret: that it is missing, or on or off, is none."""
    if value is None or isinstance(value, bool) or (isinstance(value, (str, list, tuple, Mapping)) and not value):
        return False
    is_figure = isinstance(value, (int, float)) and _WORD.findall(str(key))[-1].lower() in _FIGURES
    return not is_figure


_KNOWN_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}",
    re.DOTALL,
)
_SCHEME = re.compile(r"\b(Bearer|Basic|Digest|Token)(\s+)([A-Za-z0-9._~+/=:-]+)", re.IGNORECASE)
_HEADER = re.compile(
    r"(\bAuthorization[\"']?\s*[:=]\s*[\"']?)(?!\s*\[redacted\])"
    r"((?:Bearer|Basic|Digest|Token|ApiKey|Negotiate|AWS4-HMAC-SHA256)\s[^\"'\r\n]+|[^\s\"',;]+)",
    re.IGNORECASE,
)
_KEY = re.compile(r"(?P<quote>[\"']?)(?<!\w)(?P<key>[A-Za-z_][\w.-]{0,80})(?P=quote)\s{0,3}(?P<sign>[=:])\s{0,3}")
_VALUE = re.compile(r"\"(?:[^\"\\\r\n]|\\.)*\"|'(?:[^'\\\r\n]|\\.)*'|[^\s\"'&;,(){}]+")
_HINT = re.compile(
    r"[:=]|-----BEGIN|eyJ|[spr]k[-_]|gh[pousr]_|github_pat|glpat|xox|A[KS]IA|AIza|bearer|basic|digest|token",
    re.IGNORECASE,
)
"""What a text has in it that one of the searches below could find something in."""
_NO_VALUES = frozenset({"", "true", "false", "null", "none"})
_USER_INFO = re.compile(r"(?<=://)([^\s/@:]*):([^\s/@]+)(?=@)")


def redact_text(text: str) -> str:
    """Return the text without what looks like a credential in it: `Bearer ...`, `password=...`, well-known keys."""
    if len(text) < 6 or _HINT.search(text) is None:
        return text
    cut = _USER_INFO.sub(rf"\1:{REDACTED}", text)
    cut = _KNOWN_FORMS.sub(REDACTED, cut)
    cut = _HEADER.sub(rf"\1{REDACTED}", cut)
    cut = _SCHEME.sub(_without_token, cut)
    return _without_assigned(cut)


def _without_token(match: re.Match[str]) -> str:
    scheme, space, token = match.groups()
    alone = scheme.lower() == "bearer" and match.group() == match.string.strip()
    # "bearer of news" is prose.
    return f"{scheme}{space}{REDACTED}" if alone or _looks_made(token, least=6) else match.group()


def _looks_made(value: str, *, least: int) -> bool:
    """Return whether a value is no word: it has digits or signs in it, or is longer than words are."""
    return len(value) >= 20 or (len(value) >= least and re.search(r"\d|[_+/=!$%^*#]", value) is not None)


def _without_assigned(text: str) -> str:
    """Return the text without the values of `password=...`, `"password": "..."` and the like."""
    kept: list[str] = []
    done = position = 0
    while (key := _KEY.search(text, position)) is not None:
        position = key.end()
        value = _VALUE.match(text, position) if is_secret_key(key["key"]) else None
        if value is None or not _is_assigned(key, value.group()):
            continue
        quote = value.group()[0] if value.group()[0] in "\"'" else ""
        kept += (text[done:position], quote, REDACTED, quote)
        done = position = value.end()
    return "".join([*kept, text[done:]]) if kept else text


def _is_assigned(key: re.Match[str], value: str) -> bool:
    plain = value.strip("\"'")
    if plain.lower() in _NO_VALUES or plain == REDACTED:
        return False
    # In prose a colon ends a word; it assigns after a key that is quoted or of several words, or before a made value.
    several = re.search(r"[_.-]|[a-z][A-Z]", key["key"]) is not None
    return key["sign"] == "=" or bool(key["quote"]) or several or _looks_made(plain, least=4)
