"""A ratchet on size: the ten longest files and functions may shrink, and grow only on purpose."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "graphwright"
RECORD = Path(__file__).with_name("sizes.json")
UPDATE = "GRAPHWRIGHT_UPDATE_SIZES"

Size = tuple[str, int]


def longest_files() -> list[Size]:
    return _ten([(_label(path), len(_text(path).splitlines())) for path in PACKAGE.rglob("*.py")])


def longest_functions() -> list[Size]:
    sizes = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(_text(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                sizes.append((f"{_label(path)}:{node.name}", _code_lines(node)))
    return _ten(sizes)


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function's body; its signature and docstring are there to be read, and are free."""
    first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def _ten(sizes: list[Size]) -> list[Size]:
    return sorted(sizes, key=lambda size: (-size[1], size[0]))[:10]


def _label(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("what", "measure"), [("files", longest_files), ("functions", longest_functions)])
def test_the_ten_longest_have_not_grown(what: str, measure: object) -> None:
    assert callable(measure)
    now: list[Size] = measure()
    recorded = json.loads(_text(RECORD)) if RECORD.exists() else {}
    if os.environ.get(UPDATE):
        recorded[what] = now
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        return

    grown = [
        f"{name} has {lines} lines, and number {rank} of the longest {what} had {limit}"
        for rank, ((name, lines), (_, limit)) in enumerate(zip(now, recorded[what], strict=False), 1)
        if lines > limit
    ]

    assert grown == [], (
        f"find the second idea in it and give it its own place; where that would read worse, set {UPDATE}=1, "
        f"run this test again and say why in the commit"
    )
