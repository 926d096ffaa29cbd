"""The console of `examples/`, driven as a person would: in a process of its own, line by line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphwright

ROOT = Path(__file__).parents[2]
QUESTIONS = "Where to?", "How many nights?", "What would be nice?", "Does a dog come along?", "Anything else?"


def console(folder: Path, lines: list[str], *arguments: str) -> tuple[int, str]:
    """Run the console with what is typed, and return its exit code and everything it printed."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "ask_user_console.py"), *arguments],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(graphwright.__file__).parents[1])},
    )
    return done.returncode, done.stdout + done.stderr


def test_every_kind_of_question_is_shown_and_answered_with_a_value_of_its_type(tmp_path: Path) -> None:
    code, shown = console(tmp_path, ["1", "3", "1,2", "no", "quiet please", "yes"], "Plan a trip.")

    assert code == 0, shown
    places = [shown.index(question) for question in QUESTIONS]
    assert places == sorted(places)
    assert "May book run with {'place': 'oslo', 'nights': 3}?" in shown
    assert "[book: success] a hut in oslo for 3 nights" in shown
    answers = '{"place": "oslo", "nights": 3, "wishes": ["sauna", "boat"], "dog": false, "note": "quiet please"}'
    assert shown.splitlines()[-2:] == ["The booking: a hut in oslo for 3 nights", f"You told me: {answers}"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_answer_is_asked_for_again_and_what_need_not_be_answered_may_be_left_out(tmp_path: Path) -> None:
    typed = ["5", "2", "many", "2", "1,9", "", "perhaps", "y", "", "maybe", "n"]

    code, shown = console(tmp_path, typed)

    assert code == 0, shown
    problems = [line.rpartition("! ")[2] for line in shown.splitlines() if "! " in line]
    assert problems == [
        "'5' is none of the numbers 1 to 2",
        "'many' is no number",
        "'9' is none of the numbers 1 to 2",
        "'perhaps' is neither yes nor no",
        "'maybe' is neither yes nor no",
    ]
    assert "[book: skipped]" in shown
    assert shown.splitlines()[-1] == 'You told me: {"place": "bergen", "nights": 2, "dog": true}'


@pytest.mark.slow
def test_a_run_that_is_left_at_a_question_goes_on_in_another_process(tmp_path: Path) -> None:
    kept = ("--log", "runs.db", "--thread", "trip")

    left, first = console(tmp_path, ["1", "2"], *kept, "Plan a trip.")
    ended, second = console(tmp_path, ["2", "4", "", "no", "", "yes"], *kept)
    nothing, third = console(tmp_path, [], *kept)

    assert (left, ended, nothing) == (3, 0, 1)
    assert first.splitlines()[-1] == "The run is paused on the thread 'trip'."
    assert "[book: success] a hut in bergen for 4 nights" in second
    assert "no open run on thread 'trip'" in third
