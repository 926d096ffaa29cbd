"""Every Python example of the README and the documentation is a file that runs here, exactly as it is printed."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

from graphwright.compat import promptise, sonika
from graphwright.testing import ScriptedModel, calls, says

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "docs_src"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'--8<-- "docs_src/([\w.-]+)"')

# These ask a provider by name, so a test gives them the answers.
REAL = {
    "real_model.py": [calls("price_of", fruit="mango"), says("A mango costs 1.90 euros.")],
    "git_agent.py": [calls("git_log", repo_path=".", max_count=3), says("Three commits, all about tools.")],
}


def fences(page: Path, language: str) -> list[str]:
    return [
        code
        for indent, spoken, body in FENCE.findall(page.read_text(encoding="utf-8"))
        if spoken == language
        for code in [re.sub(f"^{indent}", "", body, flags=re.MULTILINE)]
    ]


def source_name(code: str) -> str | None:
    """Return the file that a block of a page shows, or `None` when it shows none."""
    include = INCLUDE.fullmatch(code.strip())
    if include:
        return include[1] if (SOURCES / include[1]).exists() else None
    return next((path.name for path in SOURCES.glob("*.py") if path.read_text(encoding="utf-8") == code), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_of_a_page_is_a_file_that_runs(page: Path) -> None:
    strangers = [code for code in fences(page, "python") if source_name(code) is None]

    assert strangers == [], "move it to docs_src and include it"


def test_the_readme_shows_its_examples_in_full() -> None:
    readme = ROOT / "README.md"

    shown = ["first.py", "git_agent.py", "bot.py", "pausing.py"]
    assert [source_name(code) for code in fences(readme, "python")] == shown
    printed = [(SOURCES / name).with_suffix(".txt").read_text(encoding="utf-8") for name in shown if name not in REAL]
    assert fences(readme, "text") == printed
    assert "--8<--" not in readme.read_text(encoding="utf-8")


def test_every_example_is_shown_on_a_page_and_says_what_it_prints() -> None:
    shown = {source_name(code) for page in PAGES for code in fences(page, "python")}
    shown |= {name for page in PAGES for name in INCLUDE.findall(page.read_text(encoding="utf-8"))}
    here = {path.name for path in SOURCES.iterdir() if path.suffix in (".py", ".txt")}

    assert here - shown - {f"{Path(name).stem}.txt" for name in REAL} == set()
    assert {path.stem for path in SOURCES.glob("*.py")} == {path.stem for path in SOURCES.glob("*.txt")}


@pytest.mark.parametrize("name", sorted(path.name for path in SOURCES.glob("*.py")))
def test_an_example_prints_what_the_page_says(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(REAL[name]) if name in REAL else None
    if model is not None:
        monkeypatch.setattr("graphwright.models.registry._build", lambda parsed, *_: model)
    promptise.install()
    sonika.install()
    try:
        runpy.run_path(str(SOURCES / name), run_name="__main__")
    finally:
        promptise.uninstall()
        sonika.uninstall()

    assert capsys.readouterr().out == (SOURCES / name).with_suffix(".txt").read_text(encoding="utf-8")
    if model is not None:
        model.assert_done()


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_no_longer_than_a_page(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert len(path.read_text(encoding="utf-8").splitlines()) <= 45
    assert all(not isinstance(node, ast.ImportFrom) or "._" not in (node.module or "") for node in ast.walk(tree))
