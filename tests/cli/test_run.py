from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def names_called(done: Any) -> list[str]:
    return [event["name"] for event in done.events if event["type"] == "tool_started"]


def python_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


ECHO = "from graphwright.testing import EchoToolsModel\nMODEL = EchoToolsModel()\n"

PLAIN = '''
from functools import reduce
from os.path import join
from graphwright import tool

def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

async def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()

def undocumented(a: int) -> int:
    return a

def _private(a: int) -> int:
    """Not offered."""
    return a

class Thing:
    """Not a tool."""

renamed = tool(_private, name="renamed")
'''


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (PLAIN, ["add", "shout", "renamed"]),
        (PLAIN + "\n__all__ = ['undocumented', 'Thing', 'shout']\n", ["undocumented", "shout"]),
        (PLAIN + "\n__all__ = ['add']\nTOOLS = [undocumented, tool(shout, name='yell')]\n", ["undocumented", "yell"]),
        (
            "from langchain_core.tools import tool\n\n"
            "@tool\ndef lc(x: int) -> int:\n    'A LangChain tool.'\n    return x\n",
            ["lc"],
        ),
    ],
    ids=["docstrings", "__all__", "TOOLS", "langchain"],
)
def test_a_file_offers_its_tools(graphwright: Command, tmp_path: Path, text: str, names: list[str]) -> None:
    model = python_file(tmp_path, "m.py", ECHO)
    tools = python_file(tmp_path, "my_tools.py", text)

    done = graphwright("run", "use them", "--model", f"{model}:MODEL", "--tools", tools, "--json")

    assert done.code == 0
    assert names_called(done) == names
    assert [event["success"] for event in done.events if event["type"] == "tool_finished"] == [True] * len(names)


def test_tools_of_several_files_and_of_a_folder_come_together(graphwright: Command, tmp_path: Path) -> None:
    model = python_file(tmp_path, "m.py", ECHO)
    first = python_file(
        tmp_path, "one.py", "from two import base\ndef one() -> int:\n    'One.'\n    return base() - 1\n"
    )
    second = python_file(tmp_path, "two.py", "def base() -> int:\n    'Two.'\n    return 2\n")

    done = graphwright(
        "run", "go", "--model", f"{model}:MODEL", "--tools", first, "--tools", second, "--root", tmp_path, "--json"
    )

    assert done.code == 0
    assert names_called(done) == ["one", "base", "list_files", "read_file", "search_text", "count_lines"]
    contents = {event["name"]: event["content"] for event in done.events if event["type"] == "tool_finished"}
    assert (contents["one"], contents["base"]) == ("1", "2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "cannot be imported: SyntaxError"),
        ("x = 1\n\nraise ValueError('not \\x1b[2J today')\n", r"ValueError: not \x1b[2J today (line 3)"),
        ("import sys\nsys.exit(3)\n", "cannot be imported: SystemExit: 3 (line 2)"),
        ("x = 1\n", "there is no tool in it; define functions with type hints and a docstring"),
        ("TOOLS = 'add'\n", "TOOLS is 'add'; make it a list of tools"),
        ("TOOLS = []\n", "there is no tool in it"),
        ("__all__ = ['gone']\n", "__all__ names 'gone', which is not there"),
        ("TOOLS = [3]\n", "3 of type int is no tool"),
        ("def read_file(path: str) -> str:\n    'Mine.'\n    return path\n", "two tools have the name 'read_file'"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_in_a_few_lines(
    graphwright: Command, tmp_path: Path, model_file: Any, text: str, said: str
) -> None:
    tools = python_file(tmp_path, "bad_tools.py", text)

    done = graphwright("run", "x", "--model", model_file("'hi'"), "--tools", tools, "--root", tmp_path)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("graphwright: error: ")
    assert said in done.err
    assert len(done.err.splitlines()) <= 6


def test_a_file_that_is_not_there_is_named(graphwright: Command, model_file: Any) -> None:
    done = graphwright("run", "x", "--model", model_file("'hi'"), "--tools", "gone.py")

    assert done.code == 2
    assert done.err == "graphwright: error: tools: there is no file 'gone.py'; give the path of a Python file\n"


MODELS = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from graphwright.testing import ScriptedModel

OBJECT = ScriptedModel(["hello"])
LANGCHAIN = FakeListChatModel(responses=["hello"])

def factory():
    return ScriptedModel(["hello"])

async def slow_factory():
    return ScriptedModel(["hello"])

class Own(ScriptedModel):
    def __init__(self):
        super().__init__(["hello"])

class box:
    MODEL = OBJECT

def needs(key): ...
def fails(): raise OSError("no disk")
NUMBER = 3
"""


@pytest.mark.parametrize("name", ["OBJECT", "LANGCHAIN", "factory", "slow_factory", "Own", "box.MODEL"])
def test_a_model_can_be_an_object_or_something_that_makes_one(graphwright: Command, tmp_path: Path, name: str) -> None:
    models = python_file(tmp_path, "my_models.py", MODELS)

    done = graphwright("run", "greet me", "--model", f"{models}:{name}", "-q")

    assert (done.code, done.out, done.err) == (0, "hello\n", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("needs", "calling it failed: TypeError"),
        ("fails", "calling it failed: OSError: no disk"),
        ("NUMBER", "3 is no model"),
        ("gone", "there is no 'gone' in"),
    ],
)
def test_what_makes_no_model_is_said(graphwright: Command, tmp_path: Path, name: str, said: str) -> None:
    models = python_file(tmp_path, "my_models.py", MODELS)

    done = graphwright("run", "greet me", "--model", f"{models}:{name}")

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_without_a_model_the_error_says_which_there_are(graphwright: Command) -> None:
    done = graphwright("run", "greet me")

    lines = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert lines[0] == "graphwright: error: no model was given; add one of"
    assert len(lines) <= 6
    assert all(way in done.err for way in ("--model openai:NAME", "--model local", "--model FILE.py:NAME"))


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "nonsense:x", "gpt-5-mini"])
def test_a_model_that_cannot_be_used_is_wrong_configuration(graphwright: Command, model: str) -> None:
    done = graphwright("run", "greet me", "--model", model)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"graphwright: error: model {model!r}")


def test_the_goal_can_come_from_standard_input(
    graphwright: Command, tmp_path: Path, model_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("count\nthe stars\n"))

    done = graphwright("run", "-", "--model", model_file("lambda messages: repr(messages[-1].content)"), "-q")

    assert (done.code, done.out) == (0, "'count\\nthe stars'\n")


def test_an_empty_goal_is_refused(graphwright: Command, model_file: Any) -> None:
    done = graphwright("run", "  ", "--model", model_file("'hi'"))

    assert (done.code, done.err) == (2, "graphwright: error: the goal is empty; say what the agent is to do\n")


def test_the_instructions_and_the_pattern_reach_the_run(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    text = "from graphwright import PromptGraph, PromptNode\nfrom graphwright.testing import ScriptedModel\n"
    text += "def make():\n    return PromptGraph('mine', nodes=[PromptNode('only', is_entry=True, is_terminal=True)])\n"
    text += "MODEL = ScriptedModel(['yes'])\n"
    own = python_file(tmp_path, "own.py", text)
    model = model_file("lambda messages: messages[0].content")

    plain = graphwright("run", "hi", "--model", model, "--instructions", "Speak like a pirate.", "-q")
    done = graphwright("run", "hi", "--model", f"{own}:MODEL", "--pattern", f"{own}:make", "--json")

    assert plain.out == "Speak like a pirate.\n"
    assert (done.code, done.events[-1]["text"]) == (0, "yes")
    assert (done.events[0]["graph"], done.events[1]["node"]) == ("mine", "only")


def test_hidden_files_need_a_folder(graphwright: Command, model_file: Any) -> None:
    done = graphwright("run", "x", "--model", model_file("'hi'"), "--hidden")

    assert done.code == 2
    assert "--hidden is about the files of --root DIR, which is missing" in done.err


@pytest.mark.parametrize(
    ("steps", "options", "said", "hint"),
    [
        ("raises(RuntimeError('the provider is down'))", [], "the provider is down", ""),
        (
            "calls('list_files'), calls('list_files', limit=1), 'x'",
            ["--max-iterations", "2"],
            "limit",
            "--max-iterations",
        ),
        ("lambda messages: __import__('asyncio').sleep(60)", ["--timeout", "0.2"], "0.2", "--timeout"),
    ],
)
def test_a_run_without_an_answer_has_code_1_and_says_why(
    graphwright: Command, tmp_path: Path, model_file: Any, steps: str, options: list[str], said: str, hint: str
) -> None:
    arguments = ["run", "x", "--model", model_file(steps), "--root", str(tmp_path), *options, "--json"]

    done = graphwright(*arguments)

    lines = done.err.splitlines()
    result = done.events[-1]
    assert done.code == 1
    assert said in done.err
    assert len(lines) <= 6
    assert not hint or lines[-1].startswith(f"try: {hint} with ")
    assert (result["type"], result["status"], result["exit_code"], result["text"]) == ("result", "failed", 1, "")
    assert said in result["error"]


def test_plain_lines_end_with_what_a_failed_run_has_used(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    model = model_file("calls('read_file', path='gone.txt'), raises(ValueError('no more'))")

    done = graphwright("run", "x", "--model", model, "--root", tmp_path)

    lines = done.out.splitlines()
    assert done.code == 1
    assert lines[:2] == ["node     reason", "call     read_file(path='gone.txt')"]
    assert lines[2].startswith("failed   read_file, ")
    assert lines[3].startswith("failed   node reason: ")
    assert lines[-1].startswith("failed   2 model calls, 1 tool call (1 failed), ")
    assert lines[-1].endswith("10 tokens in, 5 out")


def test_what_tools_print_stays_out_of_the_output(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    tools = python_file(
        tmp_path,
        "noisy.py",
        "print('loading')\ndef work() -> str:\n    'Work.'\n    print('at work')\n    return 'ok'\n",
    )
    arguments = ["run", "x", "--model", model_file("calls('work'), 'done'"), "--tools", str(tools), "--json"]

    done = graphwright(*arguments)

    assert done.code == 0
    assert done.events[-1]["text"] == "done"
    assert done.err.splitlines() == ["loading", "at work"]


def test_every_line_is_json_whatever_the_values_are(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    tools = python_file(
        tmp_path,
        "odd.py",
        "def odd(value: float, text: str) -> object:\n"
        "    'Return odd things.'\n"
        "    return {'nan': float('nan'), 'bytes': b'x', 'text': text}\n",
    )
    model = model_file(
        r"""malformed('odd', '{"value": NaN, "text": "\\ud800 \\u001b[31m"}'), 'It is \u2028 \x1b[0m.'"""
    )

    done = graphwright("run", "x", "--model", model, "--tools", tools, "--json")

    assert done.code == 0
    assert done.out.isascii()
    for line in done.out.splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert done.events[-1]["text"] == "It is \u2028 \x1b[0m."


EVIL = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxt.exe\r[red]not markup[/red]"


def test_nothing_that_is_printed_can_steer_a_terminal(graphwright: Command, tmp_path: Path, model_file: Any) -> None:
    tools = python_file(
        tmp_path,
        "evil.py",
        f"from graphwright import ToolError\nEVIL = '{EVIL}'\n"
        "def show(text: str) -> str:\n    'Return it.'\n    return EVIL\n"
        "def fail() -> str:\n    'Fail.'\n    raise ToolError(EVIL)\n",
    )
    model = model_file(f"calls_many(call('show', text='{EVIL}'), call('fail')), '{EVIL}', ")

    done = graphwright("run", "x", "--model", model, "--tools", tools)
    failed = graphwright("run", "x", "--model", model_with_error(tmp_path), "--quiet")

    shown = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxt.exe"
    assert (done.code, failed.code) == (0, 1)
    assert set(done.out + done.err + failed.err) & set("\x1b\x07\x9b\u202e\r") == set()
    assert done.out.count(shown) == 4, "in the call, in both results and in the answer"
    assert "[red]not markup[/red]" in done.out
    assert shown in failed.err


def model_with_error(folder: Path) -> str:
    text = f"from graphwright.testing import ScriptedModel, raises\nM = ScriptedModel([raises(ValueError('{EVIL}'))])\n"
    return f"{python_file(folder, 'failing_model.py', text)}:M"


def test_texts_that_are_written_at_the_same_time_are_told_one_after_the_other(
    graphwright: Command, side_by_side: Path
) -> None:
    done = graphwright("run", "x", "--model", f"{side_by_side}:MODEL", "--pattern", f"{side_by_side}:make")

    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[:8] == [
        "node     fan",
        "node     fan/left",
        "a1 a2",
        "a3",
        "node     fan/right",
        "b1 b2",
        "b3",
        "a1 a2",
    ]
    assert lines[-1].startswith("done     2 model calls, 0 tool calls, ")


def test_text_comes_line_by_line_and_a_restart_is_told(graphwright: Command, model_file: Any) -> None:
    model = model_file(
        "raises_midstream('one\\nhal', ConnectionError('lost')), says(chunks=['o', 'ne\\ntw', 'o\\n', 'three'])"
    )

    done = graphwright("run", "count", "--model", model)

    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[:2] == ["node     reason", "one"]
    assert lines[2].startswith("retry    in ")
    assert "lost" in lines[2]
    assert lines[3:7] == ["again    the model starts its text again", "one", "two", "three"]
    assert lines[7].startswith("done     1 model call, 0 tool calls, ")
    assert len(lines) == 8
