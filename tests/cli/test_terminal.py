from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")

Start = Callable[..., Any]

COLOUR = re.compile(r"\x1b\[[\d;]*3[1-7]m")
EVIL = r"\x1b]0;owned\x07\x9b31m\u202etxt [red]not markup[/red] :smile:"

TOOLS = f"""
def evil() -> str:
    "Return something evil."
    print("a tool prints")
    return "{EVIL}"
"""


def at_terminal(start: Start, *arguments: str | Path, **env: str) -> tuple[int, str]:
    """Run a command at a terminal and return its exit code and what came out."""
    import pty

    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm-256color", "COLUMNS": "200", "NO_COLOR": "", **env}
    running = start(*arguments, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    return running.wait(timeout=20), b"".join(pieces).decode()


@pytest.mark.slow
def test_a_terminal_shows_calls_and_the_answer_in_colour(process: Start, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("The only file\n", encoding="utf-8")

    code, out = at_terminal(process, "demo", "--short", "--root", tmp_path)

    assert code == 0
    assert COLOUR.search(out)
    assert "→ count_lines(path='only.txt')" in out
    assert re.search(r"✓ count_lines, \d+ ms: ", out)
    assert "It begins with: The only file\r\n" in out
    assert re.search(r"✓ done: 4 model calls, 4 tool calls, [\d.]+ s", out)
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h"), "the cursor is shown again"


@pytest.mark.slow
def test_no_color_takes_the_colours_away(process: Start, tmp_path: Path) -> None:
    code, out = at_terminal(process, "demo", "--short", "--root", tmp_path, NO_COLOR="1")

    assert code == 0
    assert "✓ done: " in out
    assert not COLOUR.search(out)


def test_what_a_model_or_a_tool_says_cannot_steer_the_terminal(process: Start, tmp_path: Path, model_file: Any) -> None:
    (tmp_path / "evil_tools.py").write_text(TOOLS, encoding="utf-8")
    model = model_file(f"calls('evil'), '{EVIL}'")

    code, out = at_terminal(process, "run", "x", "--model", model, "--tools", tmp_path / "evil_tools.py")

    assert code == 0
    assert "\x1b]" not in out
    assert set(out) & set("\x07\x9b\u202e") == set()
    assert out.count(r"\x1b]0;owned\x07\x9b31m\u202etxt [red]not markup[/red] :smile:") == 2
    assert "a tool prints\r\n" in out


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"PYTHONPATH": "without rich"}], ids=["dumb", "no rich"])
@pytest.mark.slow
def test_a_simple_terminal_and_one_without_rich_get_plain_lines(
    process: Start, tmp_path: Path, env: dict[str, str]
) -> None:
    if "PYTHONPATH" in env:
        (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['rich'] = None\n", encoding="utf-8")
        source = Path(__file__).parents[2] / "src"
        env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"}

    code, out = at_terminal(process, "demo", "--short", "--root", tmp_path, **env)

    assert code == 0
    assert "\x1b" not in out
    assert "call     list_files(by_size=true, limit=30)\r\n" in out


def test_texts_that_are_written_at_the_same_time_do_not_mix(process: Start, side_by_side: Path) -> None:
    code, out = at_terminal(
        process, "run", "x", "--model", f"{side_by_side}:MODEL", "--pattern", f"{side_by_side}:make"
    )

    assert code == 0
    assert "a1 a2\r\na3\r\n" in out
    assert "b1 b2\r\nb3\r\n" in out
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h")


def test_an_error_at_a_terminal_leaves_it_in_order(process: Start, model_file: Any) -> None:
    code, out = at_terminal(process, "run", "x", "--model", model_file("raises(ValueError('no \\x1b[2J more'))"))

    assert code == 1
    assert "✗ failed: 1 model call, 0 tool calls, " in out
    assert r"graphwright: error: " in out
    assert r"no \x1b[2J more" in out
    assert "\x1b[2J" not in out
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h")
