from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphwright as package

Command = Callable[..., Any]

_SCRIPTED = "No model is asked here: a script takes the place of the model."


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the server out: to start it takes a second, and one test compares both ways."""
    monkeypatch.setattr("graphwright.cli.demo._has_mcp", lambda: False)


def answer_of(done: Any) -> str:
    text = done.events[-1]["text"]
    assert isinstance(text, str)
    return text


def test_the_answer_is_computed_from_the_files_that_are_there(graphwright: Command, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "engine.py").write_text('"""Turns fuel into motion."""\n' + "x = 1\n" * 41, encoding="utf-8")
    (tmp_path / "wheel.py").write_text("import engine\n" + "y = 'something long enough'\n" * 20, encoding="utf-8")
    (tmp_path / "docs" / "guide.md").write_text("# Guide\nThe engine, and once more the engine.\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.*"))

    done = graphwright("demo", "--root", tmp_path, "--json")

    assert done.code == 0
    assert answer_of(done) == (
        f"The folder holds 3 files with {size:,} bytes in all.\n"
        "Of the 3 largest text files, engine.py is the longest, with 42 lines.\n"
        "It begins with: Turns fuel into motion.\n"
        "'engine' is on 2 lines of 2 files; beside itself these are wheel.py, docs/guide.md."
    )


@pytest.mark.parametrize(("name", "lines"), [("alpha.txt", 7), ("beta.txt", 12)])
def test_other_files_give_another_answer(graphwright: Command, tmp_path: Path, name: str, lines: int) -> None:
    (tmp_path / name).write_text("The list of words\n" * lines, encoding="utf-8")

    done = graphwright("demo", "--root", tmp_path, "--json")

    assert answer_of(done) == (
        f"The folder holds 1 files with {18 * lines} bytes in all.\n"
        f"The text file that I looked at is {name}, with {lines} lines.\n"
        "It begins with: The list of words\n"
        f"{name.removesuffix('.txt')!r} is on 0 lines of 0 files; no other file mentions it."
    )


def test_binary_files_are_tried_and_passed_over(graphwright: Command, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"picture{number}.bin").write_bytes(b"\0" * (1000 + number))
    (tmp_path / "notes.txt").write_text("Notes on pictures\n", encoding="utf-8")

    done = graphwright("demo", "--root", tmp_path, "--json")

    failed = [event["args"]["path"] for event in done.events if event.get("success") is False]
    assert sorted(failed) == [f"picture{number}.bin" for number in range(6)]
    assert "The text file that I looked at is notes.txt, with 1 lines." in answer_of(done)


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({}, "There are no files to look at in this folder."),
        ({"x.bin": b"\0\0"}, "None of the 1 largest is a text file, so there is nothing to read."),
        ({"x.txt": b"123\n"}, "How it begins does not say what it is for."),
        ({"__init__.py": b"# The package\n"}, "It begins with: The package"),
    ],
)
def test_unusual_folders_have_an_answer_too(
    graphwright: Command, tmp_path: Path, files: dict[str, bytes], answer: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    done = graphwright("demo", "--root", tmp_path, "--json")

    assert done.code == 0
    assert answer in answer_of(done)


def test_the_events_hold_the_real_results_of_the_tools(graphwright: Command, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("The only file\n", encoding="utf-8")

    done = graphwright("demo", "--root", tmp_path, "--json")

    types = [event["type"] for event in done.events]
    finished = {event["name"]: event for event in done.events if event["type"] == "tool_finished"}
    assert [event["seq"] for event in done.events] == list(range(1, len(done.events) + 1))
    assert all({"type", "seq", "at", "run_id", "path"} <= set(event) for event in done.events)
    assert len({event["run_id"] for event in done.events}) == 1
    assert (types[0], types[-2], types[-1]) == ("run_started", "run_finished", "result")
    assert finished["read_file"]["content"] == "The only file\n[the end, at line 1]"
    assert finished["count_lines"]["content"] == '{"path": "only.txt", "lines": 1, "bytes": 14}'
    assert done.events[-1]["status"] == "completed"
    assert (done.events[-1]["model_calls"], done.events[-1]["tool_calls"]) == (4, 4)
    assert _SCRIPTED in done.err


def test_lines_show_what_the_agent_does_and_who_drives_it(graphwright: Command, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("The only file\n", encoding="utf-8")

    done = graphwright("demo", "--root", tmp_path, "--short")

    assert (done.code, done.err) == (0, "")
    assert "killed" not in done.out
    lines = done.out.splitlines()
    assert lines[0] == f"Folder: {tmp_path}"
    assert _SCRIPTED in done.out
    assert "First I look at what is here, largest first." in lines
    assert "call     list_files(by_size=true, limit=30)" in lines
    assert any(line.startswith("result   count_lines, ") for line in lines)
    assert "It begins with: The only file" in lines
    assert any(line.startswith("done     4 model calls, 4 tool calls, ") for line in lines)
    assert "token" not in done.out, "a script uses no tokens"
    assert "  graphwright demo --model openai:gpt-5-mini" in done.out
    assert "  graphwright demo --model local" in done.out


def test_a_run_asks_is_killed_and_goes_on_in_another_process(graphwright: Command, tmp_path: Path) -> None:
    done = graphwright("demo", "--root", tmp_path)

    assert (done.code, done.err) == (0, "")
    scene, _, trace = done.out.partition("Now a run that asks")[2].partition("\nThe trace of the run")
    lines = scene.splitlines()
    modules = len(list(Path(package.__file__).parent.rglob("*.py")))
    asked, approved = (lines.index(f"you        {typed}") for typed in ('{"budget": 2, "form": "short"}', "true"))
    killed = lines.index("           killed, while the model was writing its answer")
    assert asked < approved < lines.index("process 1  calls write_report") < killed
    assert any(line.startswith("process 1  question int_") for line in lines[:asked])
    assert any(line.startswith("process 1  approval int_") for line in lines[asked:approved])
    assert lines[killed + 1 :] == [
        "process 2  asked the model once and called a tool 0 times",
        f"process 2  The report is written. It says: {modules} modules (short, 2 min)",
        f"           report.txt was written 1 time: {modules} modules (short, 2 min)",
    ]
    kinds = [line.split()[2] for line in trace.splitlines() if line[:4].strip().isdecimal()]
    assert (kinds[0], kinds[-1]) == ("input", "end")
    assert [kinds.count(kind) for kind in ("interrupt", "answer", "started", "outcome", "reply")] == [2, 2, 2, 2, 4]


def test_a_child_that_fails_is_told_of(graphwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphwright.cli._demo_crash.sys.executable", "/bin/false")

    done = graphwright("demo", "--root", tmp_path)

    assert done.code == 1
    assert "the demo's first process ended early" in done.err


def test_without_the_extra_the_tools_are_functions_and_it_says_which_extra_adds_the_server(
    graphwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.txt").write_text("one\n", encoding="utf-8")
    done = graphwright("demo", "--root", tmp_path, "--short")
    monkeypatch.setattr("graphwright.cli.demo._has_mcp", lambda: True)
    with_server = graphwright("demo", "--root", tmp_path, "--short")

    assert "an MCP server, which is a process of its own" in with_server.out
    assert "pip install 'graphwright[mcp]'" in done.out
    assert done.code == with_server.code == 0
    answer = done.out.partition("The folder holds")[2].partition("done ")[0]
    assert answer
    assert answer in with_server.out


def test_quiet_prints_the_answer_alone(graphwright: Command, tmp_path: Path) -> None:
    done = graphwright("demo", "--root", tmp_path, "--quiet")

    assert (done.code, done.out) == (0, "There are no files to look at in this folder.\n")
    assert _SCRIPTED in done.err


def test_a_named_model_takes_the_place_of_the_script(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    (tmp_path / "x.txt").write_text("one\n", encoding="utf-8")
    model = model_file("calls('count_lines', path='x.txt'), lambda messages: 'I read: ' + messages[-1].content")

    done = graphwright("demo", "--root", tmp_path, "--model", model)

    assert done.code == 0
    assert 'I read: {"path": "x.txt", "lines": 1, "bytes": 4}' in done.out
    assert _SCRIPTED not in done.out + done.err


@pytest.mark.parametrize("name", ["nothing", "file.txt"])
def test_a_root_that_is_no_folder_is_wrong_usage(graphwright: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").touch()

    done = graphwright("demo", "--root", tmp_path / name)

    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert f"{str(tmp_path / name)!r}" in done.err


@pytest.mark.slow
def test_the_real_thing_takes_less_than_ten_seconds_and_needs_no_key(process: Command, tmp_path: Path) -> None:
    started = time.monotonic()
    running = process("demo", cwd=tmp_path)
    out, err = running.communicate(timeout=30)

    folder = Path(package.__file__).parent
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert (running.returncode, err) == (0, "")
    assert time.monotonic() - started < 10
    assert out.startswith(f"Folder: {folder}\n")
    assert f"The folder holds {len(files)} files with " in out
    assert "\x1b" not in out, "a pipe gets plain lines"
    assert os.listdir(tmp_path) == []
