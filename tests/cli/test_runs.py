"""`graphwright runs`: list, show, resume, delete and prune, on a log that real runs have written."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

_OWN = """
from graphwright.testing import ScriptedModel, calls
from graphwright.orchestrator import OrchestratorBot

QUESTIONS = [
    {"id": "color", "text": "Which \\x1b[31m color?", "type": "single_choice",
     "options": [{"value": "red"}, {"value": "blue"}]},
    {"id": "count", "text": "How many?", "type": "number"},
]
WRITTEN = []

def answer(messages):
    results = [message.text for message in messages if message.type == "tool"]
    if not results:
        return calls("ask_user", questions=QUESTIONS)
    if len(results) == 1:
        return calls("write_note", text=results[0])
    return "at last: " + results[-1]

MODEL = ScriptedModel.answering(answer)

def write_note(text: str) -> str:
    "Write a note."
    WRITTEN.append(text)
    return "wrote it"

TOOLS = [write_note]

def bot(checkpointer):
    return OrchestratorBot(
        MODEL, tools=TOOLS, checkpointer=checkpointer, enable_user_questions=True, enable_planning=True
    )
"""

_HUMAN = """
from graphwright import PromptGraph, PromptNode
from graphwright.engine.nodes import HumanNode
from graphwright.testing import ScriptedModel

MODEL = ScriptedModel(["published"])

def graph():
    made = PromptGraph("gate")
    made.add_node(HumanNode("check", prompt_template="Is it good?", is_entry=True))
    made.add_node(PromptNode("publish", is_terminal=True))
    made.add_edge("check", "publish")
    return made
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(_OWN, encoding="utf-8")
    return path


@pytest.fixture
def runs(graphwright: Command, tmp_path: Path) -> Command:
    """Run a `runs` command on the log of the test."""
    return lambda *arguments: graphwright("runs", *arguments, "--log", tmp_path / "runs.db")


@pytest.fixture
def paused(graphwright: Command, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Begin a run on a thread that waits for answers, and return its id."""

    def begin(thread: str = "t1", goal: str = "write it") -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{goal}\n"))
        log = tmp_path / "runs.db"
        done = graphwright(
            "chat", "--model", f"{own}:MODEL", "--tools", own, "--log", log, "--thread", thread, "--mode", "ask"
        )
        assert done.code == 3
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        listed = graphwright("runs", "list", "--thread", thread, "--json", "--log", log)
        run_id = json.loads(listed.out.splitlines()[0])["run_id"]
        assert isinstance(run_id, str)
        return run_id

    return begin


def pending(runs: Command, run: str) -> list[dict[str, Any]]:
    found = json.loads(runs("show", run, "--json").out)["pending"]
    assert isinstance(found, list)
    return found


def test_a_list_shows_runs_with_thread_status_and_title(paused: Command, runs: Command) -> None:
    first, second = paused("t1", "write this"), paused("t2", "write that")

    done = runs("list")

    lines = [line.split(maxsplit=4) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    assert lines[0] == ["RUN", "THREAD", "STATUS", "AGE", "TITLE"]
    assert [(line[0], line[1], line[2], line[4]) for line in lines[1:]] == [
        (second, "t2", "paused", "write that"),
        (first, "t1", "paused", "write this"),
    ]
    assert runs("list", "--status", "completed").out == ""
    assert len(runs("list", "--limit", "1", "--json").events) == 1


def test_a_run_is_shown_with_what_it_waits_for(paused: Command, runs: Command) -> None:
    run = paused()
    waiting = pending(runs, run)

    done = runs("show", run[:20], "--trace")

    assert done.code == 0
    assert [item["kind"] for item in waiting] == ["question"]
    assert f"run     {run}\nthread  t1\nstatus  paused, " in done.out
    assert "\nuser    write it\n" in done.out
    assert f"  question {waiting[0]['id']}\n" in done.out
    assert "Which \\x1b[31m color?" in done.out, "nothing of it steers the terminal"
    assert "    1. red\n" in done.out
    assert "  waits    ask_user(" in done.out
    assert " interrupt ask_user#1 " in done.out.partition("\ntrace\n")[2]
    assert "\x1b" not in done.out


def test_answers_from_the_command_line_take_a_run_to_its_end(
    paused: Command, runs: Command, own: Path, tmp_path: Path
) -> None:
    run = paused()
    made = ("--model", f"{own}:MODEL", "--tools", own)

    asked = runs("resume", "t1", *made, "--answer", 'color="red"', "--answer", "count=3")
    waits = pending(runs, run)
    done = runs("resume", run, *made, "--approve", "--quiet")

    assert asked.code == 3, "the approval was not seen when the answers were given"
    assert [item["kind"] for item in waits] == ["approval"]
    assert waits[0]["id"] in asked.out
    assert waits[0]["value"]["params"] == {"text": 'User answers: {"color": "red", "count": 3}'}
    assert (done.code, done.out) == (0, "at last: wrote it\n")
    report = json.loads(runs("show", run, "--json").out)
    assert (report["status"], report["pending"]) == ("completed", [])
    assert [(call["name"], call["status"]) for call in report["tool_calls"]] == [
        ("ask_user", "ok"),
        ("write_note", "ok"),
    ]
    again = runs("resume", run, *made)
    assert (again.code, "completed" in again.err) == (1, True)


def test_a_denial_reaches_the_model_with_its_reason(paused: Command, runs: Command, own: Path) -> None:
    run = paused()
    item = pending(runs, run)[0]["id"]
    agent = ("--agent", f"{own}:bot")

    runs("resume", run, *agent, "--answer", f'{item}={{"color": "blue", "count": 1}}')
    done = runs("resume", run, *agent, "--deny", "not today", "--json")

    assert done.code == 0
    assert done.events[-1]["status"] == "completed"
    assert "not today" in done.events[-1]["text"]


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ((), 3, "question int_"),
        (("color",), 2, "is no ID=JSON"),
        (("color=red",), 2, "a text has to be in double quotes"),
        (("size=1",), 2, "the run does not wait for 'size'"),
        (('color="green"', "count=1"), 3, "'color' should be one of 'red', 'blue', not 'green'"),
        (('color="red"',), 3, "'count' has to be answered"),
    ],
)
def test_answers_that_do_not_fit_leave_the_run_as_it_was(
    paused: Command, runs: Command, own: Path, answers: tuple[str, ...], code: int, said: str
) -> None:
    run = paused()
    before = pending(runs, run)
    given = [part for answer in answers for part in ("--answer", answer)]

    done = runs("resume", run, "--agent", f"{own}:bot", *given)

    assert done.code == code
    assert said in done.out + done.err
    assert pending(runs, run) == before


def item_of(done: Any) -> str:
    """Return the id of what a run waits for, from its events."""
    found = next(event["pending"][0]["id"] for event in done.events if event["type"] == "run_paused")
    assert isinstance(found, str)
    return found


def test_an_agent_of_build_agent_goes_on_too(graphwright: Command, tmp_path: Path) -> None:
    own, log = tmp_path / "human.py", tmp_path / "runs.db"
    own.write_text(_HUMAN, encoding="utf-8")
    made = ("--model", f"{own}:MODEL", "--pattern", f"{own}:graph", "--log", log)

    first = graphwright("run", "go", *made, "--json")
    run = first.events[-1]["run_id"]
    odd = graphwright("runs", "resume", run, *made, "--answer", f"{item_of(first)}=1")
    done = graphwright("runs", "resume", run, *made, "--approve")

    assert (first.code, first.events[-1]["status"]) == (3, "paused")
    assert (odd.code, "1 is no decision" in odd.out) == (3, True)
    assert done.code == 0, done.err
    assert "published" in done.out


def test_a_thread_is_deleted_only_when_somebody_says_so(paused: Command, runs: Command) -> None:
    paused("t1")
    paused("t2")

    asked = runs("delete", "t1")
    done = runs("delete", "t1", "--yes")
    missing = runs("delete", "t1", "--yes")

    assert (asked.code, asked.out) == (2, "")
    assert "add --yes" in asked.err
    assert (done.code, done.out) == (0, "deleted thread t1\n")
    assert (missing.code, "there is no thread 't1'" in missing.err) == (2, True)
    assert [line["thread_id"] for line in runs("list", "--json").events] == ["t2"]


@pytest.mark.parametrize(("typed", "left"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_at_a_terminal_it_is_asked_first(
    paused: Command, runs: Command, monkeypatch: pytest.MonkeyPatch, typed: str, left: int
) -> None:
    paused("t1")
    terminal = io.StringIO(typed)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)

    done = runs("delete", "t1")

    assert "delete thread t1 (write it)? [y/N] " in done.out
    assert len(runs("list", "--json").events) == left


def test_old_threads_are_pruned_and_paused_ones_stay(paused: Command, runs: Command, own: Path) -> None:
    paused("waits")
    run = paused("ends")
    runs("resume", run, "--agent", f"{own}:bot", "--answer", 'color="red"', "--answer", "count=1")
    runs("resume", run, "--agent", f"{own}:bot", "--approve")

    assert runs("prune", "--older-than", "1h").out == "deleted 0 threads\n"
    assert runs("prune", "--older-than", "0s").out == "deleted 1 thread\n"
    assert [line["thread_id"] for line in runs("list", "--json").events] == ["waits"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prune",), "add --older-than AGE"),
        (("prune", "--older-than", "30"), "'30' is no age"),
        (("show", "nothing"), "there is no run or thread 'nothing'"),
        (("resume", "nothing"), "there is no run or thread 'nothing'"),
        (("list", "--status", "odd"), "invalid choice: 'odd'"),
    ],
)
def test_wrong_usage_says_what_is_right(paused: Command, runs: Command, arguments: tuple[str, ...], said: str) -> None:
    paused()

    done = runs(*arguments)

    assert done.code == 2
    assert said in done.err


def test_looking_at_a_log_that_is_not_there_does_not_make_it(
    graphwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHWRIGHT_HOME", str(tmp_path / "home"))

    named, default = graphwright("runs", "list", "--log", tmp_path / "no.db"), graphwright("runs", "list")

    assert (named.code, default.code) == (2, 2)
    assert f"there is no run log {str(tmp_path / 'no.db')!r}" in named.err
    assert str(tmp_path / "home") in default.err
    assert list(tmp_path.iterdir()) == []
