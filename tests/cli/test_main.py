from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphwright as package

Command = Callable[..., Any]

_LIGHT = """
import sys
from graphwright.cli.main import main
code = main([{argument!r}])
heavy = {{"langchain_core", "pydantic", "rich", "asyncio"}} & set(sys.modules)
assert (code, heavy) == (0, set()), (code, heavy)
"""

_BAD_GRAPH = """
from graphwright import PromptGraph, PromptNode

GRAPH = PromptGraph("bad", nodes=[PromptNode("a", is_entry=True)])
for number in range(20):
    GRAPH.add_edge("a", f"missing{number}")
"""


def test_the_version_is_that_of_the_package(graphwright: Command) -> None:
    done = graphwright("--version")

    assert (done.code, done.out, done.err) == (0, f"graphwright {package.__version__}\n", "")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_that_takes_time(argument: str) -> None:
    source = str(Path(package.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {source!r})\n" + _LIGHT.format(argument=argument)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_help_names_every_command_and_the_exit_codes(graphwright: Command) -> None:
    done = graphwright("--help")

    assert done.code == 0
    assert all(f"    {name} " in done.out for name in ("demo", "run", "chat", "runs", "graph", "models"))
    assert "Exit codes: 0 an answer" in done.out


def test_no_command_at_all_shows_the_help_as_wrong_usage(graphwright: Command) -> None:
    done = graphwright()

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: graphwright")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frob"], "invalid choice: 'frob'"),
        (["run"], "the following arguments are required: GOAL"),
        (["run", "x", "--frob"], "unrecognized arguments: --frob"),
        (["run", "x", "--max-iterations", "0"], "'0' is no whole number of at least 1"),
        (["run", "x", "--max-iterations", "two"], "'two' is no whole number of at least 1"),
        (["run", "x", "--timeout", "nan"], "'nan' is no number of seconds above 0"),
        (["run", "x", "--json", "--quiet"], "not allowed with argument"),
        (["graph", "react", "--format", "png"], "invalid choice: 'png'"),
        (["models"], "are required: list|check"),
        (["run", "x", "\x1b[31m"], r"unrecognized arguments: \x1b[31m"),
    ],
)
def test_wrong_usage_is_two_lines_and_code_2(graphwright: Command, arguments: list[str], said: str) -> None:
    done = graphwright(*arguments)

    first, second = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert said in first
    assert second.startswith("see: graphwright")
    assert second.endswith("--help")


def test_an_unexpected_error_is_short_and_debug_shows_where(
    graphwright: Command, model_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose_it(**_: Any) -> None:
        raise RuntimeError("lost the \x1b[31mkey")

    monkeypatch.setattr("graphwright.agent.build_agent", lose_it)
    model = model_file("")
    short = graphwright("run", "x", "--model", model)
    monkeypatch.setenv("GRAPHWRIGHT_DEBUG", "1")
    long = graphwright("run", "x", "--model", model)

    assert short.code == long.code == 1
    assert short.err.splitlines() == [
        r"graphwright: error: unexpected RuntimeError: lost the \x1b[31mkey",
        "this should not happen; GRAPHWRIGHT_DEBUG=1 shows where it did",
    ]
    assert "Traceback (most recent call last)" in long.err
    assert "in lose_it" in long.err
    assert long.err.endswith(short.err)


def test_an_error_of_many_lines_is_cut_to_six(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    (tmp_path / "g.py").write_text(_BAD_GRAPH, encoding="utf-8")

    done = graphwright("run", "x", "--model", model_file(""), "--pattern", f"{tmp_path / 'g.py'}:GRAPH")

    lines = [line for line in done.err.splitlines() if "is no node yet" not in line]
    assert done.code == 2
    assert len(lines) == 6
    assert lines[0] == "graphwright: error: graph 'bad' cannot run:"
    assert lines[-1].startswith("... and ")
    assert lines[-1].endswith("more lines; GRAPHWRIGHT_DEBUG=1 shows them")


def test_a_long_line_of_an_error_keeps_its_beginning_and_its_remedy(graphwright: Command) -> None:
    done = graphwright("graph", "x" * 2000)

    (line,) = done.err.splitlines()
    assert len(line) < 450
    assert line.startswith("graphwright: error: no agent pattern named 'xxx")
    assert line.endswith(", or FILE.py:NAME for a graph of your own")
