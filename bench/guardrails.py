"""Measure what the scanner in the box finds, and what it takes for an attack that is none.

python bench/guardrails.py            the half that the rules may be tuned to
python bench/guardrails.py --final    the half that is only measured, for the figures in the documentation
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import codecs
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphwright.guardrails import SecurityScanner

CORPUS = Path(__file__).parents[1] / "tests" / "data" / "guardrails" / "corpus.jsonl"

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "reversed": lambda text: text[::-1],
    "zero-width": lambda text: "\u200b".join(text),
    "full-width": lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
    "look-alikes": lambda text: text.translate(str.maketrans("aeiopcxyAEOPCXTHKM", "аеіорсхуАЕОРСХТНКМ")),
    "tag characters": lambda text: "".join(chr(ord(char) + 0xE0000) if char.isascii() else char for char in text),
    "leet": lambda text: text.translate(str.maketrans("oieas", "01345")),
    "spaced": lambda text: "  ".join(" ".join(word) for word in text.split()),
}
"""Name -> how an attack is disguised."""


def corpus(half: str | None = None) -> list[dict[str, Any]]:
    """Return the labelled texts; a mark that keeps made-up keys from looking like leaked ones is taken out."""
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["text"] = row["text"].replace("¦", "")
    return [row for row in rows if half is None or row["half"] == half]


async def found(scanner: SecurityScanner, kind: str, text: str) -> bool:
    """Return whether anything of a kind is found."""
    report = await scanner.scan_text(text, direction="input")
    return any(finding.detector == kind for finding in report.findings)


async def rate(scanner: SecurityScanner, rows: list[dict[str, Any]], encode: Callable[[str], str]) -> tuple[int, int]:
    """Return how many of the texts are found, and how many there are."""
    hits = [await found(scanner, row["kind"], encode(row["text"])) for row in rows]
    return sum(hits), len(hits)


async def measure(half: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the figures of a half: table -> line -> (found, of)."""
    scanner = SecurityScanner()
    rows = corpus(half)
    kinds = ("injection", "pii", "credentials")
    attacks = [row for row in rows if row["kind"] == "injection" and row["harmful"]]
    harmless = [row for row in rows if row["kind"] == "injection" and not row["harmful"]]
    languages = sorted({row["language"] for row in attacks})
    plain = ENCODINGS["plain"]
    return {
        "found, by kind": {
            kind: await rate(scanner, [row for row in rows if row["kind"] == kind and row["harmful"]], plain)
            for kind in kinds
        },
        "false alarms, by kind": {
            kind: await rate(scanner, [row for row in rows if row["kind"] == kind and not row["harmful"]], plain)
            for kind in kinds
        },
        "injections found, by language": {
            language: await rate(scanner, [row for row in attacks if row["language"] == language], plain)
            for language in languages
        },
        "injections found, by disguise": {
            name: await rate(scanner, attacks, encode) for name, encode in ENCODINGS.items()
        },
        "false alarms on harmless text, by disguise": {
            name: await rate(scanner, harmless, encode) for name, encode in ENCODINGS.items()
        },
    }


async def misses(half: str) -> list[str]:
    """Return the plain texts of a half that were judged wrongly."""
    scanner = SecurityScanner()
    return [
        f"{'missed' if row['harmful'] else 'false alarm'} {row['kind']}: {row['text']}"
        for row in corpus(half)
        if await found(scanner, row["kind"], row["text"]) != row["harmful"]
    ]


async def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--final", action="store_true", help="measure the half that is not tuned to")
    half = "final" if parser.parse_args().final else "tune"
    started = time.perf_counter()
    tables = await measure(half)
    for table, lines in tables.items():
        print(f"\n{table}")
        for name, (hits, count) in lines.items():
            print(f"  {name:18} {hits:3} of {count:3}  {hits / count:6.1%}")
    print(f"\n{time.perf_counter() - started:.1f} s")
    if half == "tune":
        print("\n" + "\n".join(await misses(half)))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
