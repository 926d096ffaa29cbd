"""Personal data: what has a checksum counts only where the checksum fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from graphwright.guardrails.detectors.base import Detector, Match, chosen_patterns, distinct, in_thread_if_long
from graphwright.guardrails.report import GuardrailAction
from graphwright.guardrails.views import View, plain_views

__all__ = ["PII_PATTERNS", "PIIDetector", "PiiPattern", "iban_length", "luhn", "verhoeff"]


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char.isdecimal()]


def luhn(text: str) -> bool:
    """Return whether the digits pass the Luhn check."""
    digits = _digits(text)
    if len(set(digits)) < 2:
        return False
    doubled = (2 * digit - 9 * (digit > 4) if at % 2 else digit for at, digit in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def iban_length(text: str) -> int:
    """Return how many characters an IBAN at the start of the text has, with its gaps; 0 when its check fails.

    The check is that of ISO 7064, mod 97.
    """
    length = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    places = [at for at, char in enumerate(text) if char.isalnum()][:length]
    if not length or len(places) != length:
        return 0
    plain = "".join(text[at] for at in places)
    end = places[-1] + 1
    fits = int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1
    return end if fits and not text[end : end + 1].isalnum() else 0


def _lengths(table: str) -> dict[str, int]:
    return {entry[:2]: int(entry[3:]) for entry in table.split()}


_IBAN_LENGTHS = _lengths(
    "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 "
    "DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HR:21 HU:28 "
    "IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 MC:27 MD:24 "
    "ME:22 MK:19 MR:27 MT:31 MU:30 NL:18 NO:15 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 SA:24 SE:24 "
    "SI:19 SK:24 SM:27 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20"
)


def _us_ssn(text: str) -> bool:
    area, group, serial = re.split(r"[- ]", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _weighted(text: str, weights: Iterable[int], modulus: int) -> int:
    return sum(digit * weight for digit, weight in zip(_digits(text), weights, strict=False)) % modulus


def _nhs(text: str) -> bool:
    check = 11 - _weighted(text, range(10, 1, -1), 11)
    return check != 10 and check % 11 == _digits(text)[9]


def _steuer_id(text: str) -> bool:
    digits = _digits(text)
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return digits[0] != 0 and (11 - product) % 10 == digits[10]


def _fr_nir(text: str) -> bool:
    plain = re.sub(r"[\s.]", "", text).upper().replace("2A", "19").replace("2B", "18")
    return plain.isdecimal() and 97 - int(plain[:13]) % 97 == int(plain[13:])


def _es_dni(text: str) -> bool:
    plain = text.upper().replace("-", "").replace(" ", "")
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


_CF_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
     22, 25, 24, 23], strict=True))  # fmt: skip


def _it_cf(text: str) -> bool:
    plain = text.upper()
    even = (int(char, 36) - (10 if char.isalpha() else 0) for char in plain[1:15:2])
    return chr(65 + (sum(_CF_ODD[char] for char in plain[0:15:2]) + sum(even)) % 26) == plain[15]


def _bsn(text: str) -> bool:
    return _weighted(text, [9, 8, 7, 6, 5, 4, 3, 2, -1], 11) == 0 and len(set(text)) > 2


def _pesel(text: str) -> bool:
    check = (10 - _weighted(text[:10], [1, 3, 7, 9, 1, 3, 7, 9, 1, 3], 10)) % 10
    return check == int(text[10]) and 1 <= int(text[2:4]) % 20 <= 12


def _cpf(text: str) -> bool:
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    for count in (9, 10):
        weighted = sum(digit * weight for digit, weight in zip(digits, range(count + 1, 1, -1), strict=False))
        if weighted * 10 % 11 % 10 != digits[count]:
            return False
    return True


_D = [[(a + b) % 5 if a < 5 and b < 5 else 5 + (b - 5 + a) % 5 if a < 5 else 5 + (a - 5 - b) % 5 if b < 5
       else (a - b) % 5 for b in range(10)] for a in range(10)]  # fmt: skip
_P = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 5, 7, 6, 2, 8, 3, 0, 9, 4], [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
      [8, 9, 1, 6, 0, 4, 3, 5, 2, 7], [9, 4, 5, 3, 1, 2, 6, 8, 7, 0], [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
      [2, 7, 9, 3, 8, 0, 6, 4, 1, 5], [7, 0, 4, 6, 9, 1, 3, 2, 5, 8]]  # fmt: skip


def verhoeff(text: str) -> bool:
    """Return whether the digits pass the Verhoeff check."""
    check = 0
    for at, digit in enumerate(reversed(_digits(text))):
        check = _D[check][_P[at % 8][digit]]
    return check == 0


def _cn_id(text: str) -> bool:
    weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]
    return "10X98765432"[_weighted(text[:17], weights, 11)] == text[17].upper()


def _phone(text: str) -> bool:
    return 8 <= len(_digits(text)) <= 15


class PiiPattern(NamedTuple):
    """How one kind is found."""

    pattern: re.Pattern[str]
    check: Callable[[str], bool | int] | None = None
    context: re.Pattern[str] | None = None
    """What has to stand in the 60 characters before: for numbers that are not telling by themselves."""


def _near(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


_A, _Z = r"(?<![\w.-])", r"(?![\w-]|\.\d)"

PII_PATTERNS: dict[str, PiiPattern] = {
    "email": PiiPattern(
        re.compile(
            r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\b"
        )
    ),
    "credit_card": PiiPattern(re.compile(_A + r"[3-6]\d{3}(?:[ -]?\d{2,6}){2,4}" + _Z), lambda t: _card(t)),
    "iban": PiiPattern(
        re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{1,4}){3,9}\b", re.ASCII | re.IGNORECASE), iban_length
    ),
    "phone": PiiPattern(
        re.compile(
            r"(?<![\w.+/-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,5}\)[ .-]?)?\d{1,5}(?:[ ./-]?\d{2,5}){1,4}"
            r"|\(\d{3}\) ?\d{3}-\d{4}|\d{3}[-.]\d{3}[-.]\d{4})(?![\w-]|\.\d)"
        ),
        _phone,
    ),
    "us_ssn": PiiPattern(re.compile(_A + r"\d{3}[- ]\d{2}[- ]\d{4}" + _Z), _us_ssn),
    "uk_nhs": PiiPattern(re.compile(_A + r"\d{3} ?\d{3} ?\d{4}" + _Z), _nhs, _near(r"\bnhs\b")),
    "uk_nino": PiiPattern(
        re.compile(r"\b(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b")
    ),
    "de_tax_id": PiiPattern(
        re.compile(_A + r"\d{2} ?\d{3} ?\d{3} ?\d{3}" + _Z), _steuer_id, _near(r"steuer|tax|idnr|\btin\b")
    ),
    "fr_nir": PiiPattern(
        re.compile(_A + r"[12][ .]?\d{2}[ .]?\d{2}[ .]?(?:\d{2}|2[ABab])[ .]?\d{3}[ .]?\d{3}[ .]?\d{2}" + _Z), _fr_nir
    ),
    "es_dni": PiiPattern(re.compile(r"\b(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z]\b"), _es_dni),
    "it_codice_fiscale": PiiPattern(re.compile(r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b", re.I), _it_cf),
    "nl_bsn": PiiPattern(re.compile(_A + r"\d{9}" + _Z), _bsn, _near(r"\bbsn\b|burgerservice|sofi")),
    "pl_pesel": PiiPattern(re.compile(_A + r"\d{11}" + _Z), _pesel, _near(r"pesel")),
    "br_cpf": PiiPattern(re.compile(_A + r"\d{3}\.\d{3}\.\d{3}-\d{2}" + _Z), _cpf),
    "in_aadhaar": PiiPattern(re.compile(_A + r"[2-9]\d{3} ?\d{4} ?\d{4}" + _Z), verhoeff, _near(r"aadh?aar|uidai")),
    "cn_resident_id": PiiPattern(re.compile(_A + r"[1-9]\d{5}(?:19|20)\d{9}[\dXx]" + _Z), _cn_id),
    "se_personnummer": PiiPattern(re.compile(_A + r"\d{6}[-+]\d{4}" + _Z), luhn),
}
"""Kind -> how it is found."""


def _card(text: str) -> bool:
    digits = "".join(char for char in text if char.isdecimal())
    known = {"3": (14, 15, 16), "4": (13, 16, 19), "5": (16,), "6": (16, 17, 18, 19)}
    return len(digits) in known.get(digits[:1], ()) and luhn(digits)


class PIIDetector(Detector):
    """Finds personal data in a text and in its decoded forms."""

    name = "pii"
    action = GuardrailAction.REDACT

    def __init__(
        self,
        action: GuardrailAction | str = GuardrailAction.REDACT,
        *,
        patterns: Iterable[str] | Mapping[str, str] | None = None,
        exclude: Iterable[str] = (),
    ) -> None:
        """`patterns` are the kinds to look for, or expressions of yours by name, which come beside the known ones."""
        self.action = GuardrailAction(action)
        self._patterns = chosen_patterns(PII_PATTERNS, patterns, exclude, what="pii_patterns")

    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return the places of personal data."""
        return await in_thread_if_long(self._find, text)

    def _find(self, text: str) -> list[Match]:
        views = plain_views(text)
        return distinct(
            match for view in views for name, rule in self._patterns.items() for match in _found(view, name, rule)
        )


def _found(view: View, name: str, rule: Any) -> Iterable[Match]:
    known = rule if isinstance(rule, PiiPattern) else PiiPattern(rule)
    for match in known.pattern.finditer(view.text):
        fits = True if known.check is None else known.check(match.group())
        if not fits:
            continue
        if known.context is not None and not known.context.search(view.text, max(0, match.start() - 60), match.start()):
            continue
        # A check that knows how long the thing is says so; what follows is no part of it.
        end = match.end() if fits is True else match.start() + fits
        yield Match(name, *view.place_of(match.start(), end))
