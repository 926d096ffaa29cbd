"""The rows of the architecture: what may import what."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "graphwright"


def contracts() -> dict[str, Any]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["name"]: contract for contract in config["tool"]["importlinter"]["contracts"]}


def rows() -> list[set[str]]:
    """Return the names in each row, from the top."""
    layers = contracts()["A module imports from lower rows only"]["layers"]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_every_module_imports_from_lower_rows_only() -> None:
    # In a process of its own: the linter switches the loggers of its process off.
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    arguments = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run(
        [sys.executable, "-c", command, *arguments], env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports when it runs, those of type hints left out."""
    found: set[str] = set()

    def collect(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        for child in ast.iter_child_nodes(node):
            collect(child)

    collect(ast.parse(path.read_text(encoding="utf-8")))
    return found


def ports() -> list[str]:
    features = next(row for row in rows() if "models" in row)
    return sorted(f"{feature}/base.py" for feature in features if (PACKAGE / feature / "base.py").exists())


WORDS, INTERNAL, ERRORS = rows()[-3:]


@pytest.mark.parametrize("port", ports())
def test_a_port_sees_words_only(port: str) -> None:
    own = f"graphwright.{port.removesuffix('.py').replace('/', '.')}"
    words = {f"graphwright.{name}" for name in WORDS | ERRORS} | {own}

    strange = {
        name
        for name in imports_of(PACKAGE / port)
        if name not in words and name.partition(".")[0] not in sys.stdlib_module_names
    }

    assert strange == set()


@pytest.mark.parametrize("word", sorted(WORDS))
def test_a_word_sees_words_and_helpers_only(word: str) -> None:
    below = tuple(f"graphwright.{name}" for name in WORDS | INTERNAL | ERRORS)

    ours = {name for name in imports_of(PACKAGE / f"{word}.py") if name.startswith("graphwright")}

    assert {name for name in ours if not name.startswith(below)} == set()


def test_no_package_reaches_for_the_private_names_of_another() -> None:
    reached = []
    for path in PACKAGE.rglob("*.py"):
        package = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("graphwright."):
                continue
            parts = (node.module or "").split(".")[1:]
            private = [name for name in [*parts, *(alias.name for alias in node.names)] if name.startswith("_")]
            if parts[0] not in (package, "_internal") and private:
                reached.append(f"{path.relative_to(PACKAGE)} imports {private} from {node.module}")

    assert reached == []
