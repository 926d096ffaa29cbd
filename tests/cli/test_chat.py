"""`graphwright chat`, driven through pipes, signals, and a real terminal."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow

Command = Callable[..., Any]

SOURCE = str(Path(__file__).parents[2] / "src")

_OWN = """
from graphwright.testing import ScriptedModel, calls, says
from graphwright.orchestrator import OrchestratorBot

QUESTIONS = [
    {"id": "name", "text": "Which name?", "type": "text"},
    {"id": "color", "text": "Which color?", "type": "single_choice",
     "options": [{"value": "red", "label": "Bright red"}, {"value": "blue"}]},
    {"id": "sizes", "text": "Which sizes?", "type": "multi_choice",
     "options": [{"value": "s"}, {"value": "m"}, {"value": "l"}]},
    {"id": "gift", "text": "Is it a gift?", "type": "boolean"},
    {"id": "count", "text": "How many?", "type": "number", "required": False},
]

def seen(messages):
    return "read: " + messages[-1].text

ASKS = ScriptedModel([calls("ask_user", questions=QUESTIONS, reason="I need to know."), seen])
WRITES = ScriptedModel([calls("write_note", text="one"), seen])
TWICE = ScriptedModel([calls("write_note", text="one"), calls("write_note", text="two"), "both are written"])
PLANS = ScriptedModel([calls("set_plan", steps=["look", "tell"]), calls("update_step", step=1, status="done"), "told"])
BROKEN = ScriptedModel([RuntimeError("the provider is away"), "back again"])
BOTH = ScriptedModel(["first answer", "second answer"])

WRITTEN = []

def write_note(text: str) -> str:
    "Write a note."
    WRITTEN.append(text)
    return "wrote " + text

TOOLS = [write_note]

def bot(checkpointer):
    return OrchestratorBot(TWICE, tools=TOOLS, checkpointer=checkpointer)

BOT = OrchestratorBot(ScriptedModel(["hello"]))
"""

_SLOW = """
import asyncio
from pathlib import Path
from graphwright.testing import ScriptedModel, calls

HERE = Path(__file__).parent

async def wait_long() -> str:
    "Wait for ever."
    (HERE / "at_work").touch()
    try:
        await asyncio.Event().wait()
    finally:
        (HERE / "cleaning").touch()
        while (HERE / "hold").exists():
            await asyncio.sleep(0.01)
        (HERE / "cleaned_up").touch()

TOOLS = [wait_long]
MODEL = ScriptedModel([calls("wait_long"), "went on"])
"""


@pytest.fixture
def chat(graphwright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Chat in this process, with these lines typed into a pipe."""
    (tmp_path / "own.py").write_text(_OWN, encoding="utf-8")

    def talk(model: str, *lines: str, thread: str = "t1", options: tuple[str, ...] = ()) -> Any:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        made = ("--model", f"{tmp_path}/own.py:{model}", "--tools", tmp_path / "own.py")
        place = ("--log", tmp_path / "runs.db", *(("--thread", thread) if thread else ()))
        return graphwright("chat", *(made if model else ()), *place, *options)

    return talk


def test_a_goal_is_answered_and_the_next_goes_on_with_the_thread(chat: Command) -> None:
    done = chat("BOTH", "hello", "", "and again", "/quit", "not read")

    assert done.code == 0
    assert done.out.splitlines()[0] == "thread t1, mode ask; /help shows the commands"
    assert done.out.index("first answer") < done.out.index("second answer")
    assert "not read" not in done.out


def test_each_type_of_question_says_what_is_wrong_and_asks_again(chat: Command) -> None:
    typed = ["", "Ann", "green", "bright RED", "", "s,s", "3, s", "perhaps", "y", "many", "2.5"]

    done = chat("ASKS", "buy it", *typed)

    assert done.code == 0
    assert 'read: User answers: {"name": "Ann", "color": "red", "sizes": ["l", "s"], "gift": true, "count": 2.5}' in (
        done.out
    )
    for problem in (
        "an answer is needed: text",
        "'green' is no option; type a number from 1 to 2, or the name",
        "an answer is needed: any of these, separated by commas",
        "an option is named twice; name each once",
        "'perhaps' is neither; type yes or no",
        "'many' is no number; type one such as 3 or 2.5",
    ):
        assert done.out.count(f"{problem}\n") == 1
    assert "I need to know." in done.out
    assert "  1. Bright red (red)\n  2. blue\n" in done.out


def test_a_question_that_need_not_be_answered_can_be_left_empty(chat: Command) -> None:
    done = chat("ASKS", "buy it", "Ann", "2", "1", "no", "")

    assert 'read: User answers: {"name": "Ann", "color": "blue", "sizes": ["s"], "gift": false}' in done.out


def written(tmp_path: Path) -> Any:
    return next(
        module.WRITTEN
        for name, module in sys.modules.items()
        if name.startswith("own_") and Path(str(module.__file__)).parent == tmp_path
    )


@pytest.mark.parametrize(
    ("typed", "told", "effect"),
    [
        (["y"], "read: wrote one", ["one"]),
        (["what", "Yes"], "read: wrote one", ["one"]),
        (["n", "not today"], "not today", []),
        (["e", "[1]", '{"text": "edited"}'], "wrote edited", ["edited"]),
    ],
)
def test_a_call_is_approved_denied_or_edited(
    chat: Command, tmp_path: Path, typed: list[str], told: str, effect: list[str]
) -> None:
    done = chat("WRITES", "write", *typed)

    assert done.code == 0
    assert '  text = "one"\n' in done.out
    assert told in done.out.partition("read: ")[2] or told in done.out
    assert written(tmp_path) == effect
    if typed[0] == "what":
        assert "'what' is no decision; type y, n, e or a" in done.out


def test_all_calls_of_a_tool_can_be_approved_at_once(chat: Command, tmp_path: Path) -> None:
    done = chat("TWICE", "write", "a")

    assert written(tmp_path) == ["one", "two"]
    assert done.out.count("run it?") == 1
    assert "both are written" in done.out


def test_in_auto_mode_nobody_is_asked(chat: Command, tmp_path: Path) -> None:
    done = chat("TWICE", "write", options=("--mode", "auto"))

    assert written(tmp_path) == ["one", "two"]
    assert "run it?" not in done.out


def test_the_plan_is_shown_when_it_changes(chat: Command) -> None:
    done = chat("PLANS", "go", "/plan")

    plans = [line for line in done.out.splitlines() if line.startswith("plan ")]
    assert plans == ["plan     [ ] 1. look", "plan     [ ] 2. tell", "plan     [x] 1. look", "plan     [ ] 2. tell"]
    assert "\n[x] 1. look\n[ ] 2. tell\n" in done.out, "on request, too"


def test_the_end_of_the_input_leaves_the_run_paused_and_another_chat_goes_on(chat: Command, tmp_path: Path) -> None:
    first = chat("TWICE", "write", "y")
    second = chat("TWICE", "y", thread="", options=("--resume",))

    assert first.code == 3
    assert f"go on with: graphwright chat --thread t1 --log {tmp_path / 'runs.db'}" in first.out
    assert second.code == 0
    assert "this thread began with: write (paused)" in second.out
    assert "both are written" in second.out
    assert written(tmp_path) == ["one", "two"], "each call ran once"


def test_giving_up_where_nothing_waits_is_an_error_and_the_talk_goes_on(chat: Command) -> None:
    done = chat("BOTH", "/abandon", "hello")

    assert done.code == 0
    assert "graphwright: error: " in done.err
    assert "first answer" in done.out


def test_an_error_is_shown_and_the_talk_goes_on(chat: Command) -> None:
    done = chat("BROKEN", "go", "go on", "/nonsense", "/mode plan", "/mode sideways", "/new")

    assert done.code == 0
    assert "the provider is away" in done.out + done.err
    assert "back again" in done.out
    assert "/nonsense is no command" in done.out
    assert "mode plan\n" in done.out
    assert "/mode is no command, or lacks something" in done.out


@pytest.mark.parametrize("name", ["own.py:bot", "own:bot"])
def test_a_bot_of_the_users_own_is_given_the_log(
    chat: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)

    done = chat("", "write", "a", options=(name,))

    monkeypatch.delitem(sys.modules, "own", raising=False)
    assert done.code == 0
    assert "both are written" in done.out
    assert (tmp_path / "runs.db").exists()


def test_a_bot_without_a_log_says_that_its_threads_end(chat: Command, tmp_path: Path) -> None:
    done = chat("", "hi", options=(f"{tmp_path}/own.py:BOT",))

    assert done.code == 0
    assert "keeps its threads in memory" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no model was given"),
        (("nothing",), "names nothing"),
        (("no_such_module:x",), "cannot be imported"),
        (("own.py:WRITTEN",), "name an OrchestratorBot"),
        (("own.py:missing",), "there is no 'missing'"),
    ],
)
def test_what_is_no_agent_is_wrong_usage(
    chat: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)

    done = chat("", "hi", options=options)

    assert done.code == 2
    assert said in done.err


def test_resuming_without_any_thread_is_wrong_usage(chat: Command) -> None:
    done = chat("BOTH", thread="", options=("--resume",))

    assert done.code == 2
    assert "there is no thread to go on with" in done.err


def read_until(stream: Any, wanted: str) -> str:
    """Read lines until one holds `wanted`."""
    taken: str = ""
    for line in stream:
        taken += str(line)
        if wanted in line:
            return taken
    raise AssertionError(taken)


def slow_chat(process: Command, folder: Path) -> subprocess.Popen[str]:
    """Start a chat in a process, and return when its tool is at work."""
    (folder / "slow.py").write_text(_SLOW, encoding="utf-8")
    own = folder / "slow.py"
    running: subprocess.Popen[str] = process(
        "chat", "--model", f"{own}:MODEL", "--tools", own, "--mode", "auto", "--log", folder / "runs.db",
        "--thread", "t", stdin=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdin is not None
    running.stdin.write("wait\n")
    running.stdin.flush()
    appears(folder / "at_work", running)
    return running


def appears(path: Path, running: subprocess.Popen[str]) -> None:
    """Wait until a process has made a file."""
    until = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < until, f"there is no {path.name}"
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)


pytest_posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")


@pytest_posix
def test_an_interrupt_ends_the_run_and_the_talk_goes_on(process: Command, tmp_path: Path) -> None:
    running = slow_chat(process, tmp_path)

    running.send_signal(signal.SIGINT)
    read_until(running.stdout, "aborted")
    out, err = running.communicate("and now\n", timeout=20)

    assert (tmp_path / "cleaned_up").exists()
    assert "went on" in out, "the thread takes the next goal"
    assert (running.returncode, err) == (0, "")


@pytest_posix
def test_an_interrupt_at_a_form_leaves_the_run_paused_until_it_is_answered_or_given_up(
    process: Command, tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text(_OWN, encoding="utf-8")
    running = process(
        "chat", "--model", f"{own}:WRITES", "--tools", own, "--log", tmp_path / "runs.db", stdin=subprocess.PIPE
    )
    try:
        running.stdin.write("write\n")
        running.stdin.flush()
        read_until(running.stdout, "run it?")
        running.send_signal(signal.SIGINT)
        read_until(running.stdout, "the run stays paused: /resume answers it, /abandon gives it up")
        out, err = running.communicate("something else\n/abandon\nsomething else\n", timeout=20)
    finally:
        running.kill()

    assert running.returncode == 0
    assert "graphwright: error: " in err, "the first goal was refused"
    assert "/resume answers it, /abandon gives it up" in out
    assert "the run was given up; the thread takes a new goal" in out
    assert "read: something else" in out.partition("the run was given up")[2]


@pytest_posix
def test_a_second_interrupt_leaves_after_the_tools_have_cleaned_up(process: Command, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    running = slow_chat(process, tmp_path)

    running.send_signal(signal.SIGINT)
    appears(tmp_path / "cleaning", running)
    running.send_signal(signal.SIGINT)
    (tmp_path / "hold").unlink()
    out, err = running.communicate(timeout=20)

    assert (running.returncode, err) == (130, "")
    assert (tmp_path / "cleaned_up").exists()
    assert "ending the run; Ctrl-C again leaves" in out


@pytest_posix
@pytest.mark.slow
def test_a_third_interrupt_waits_for_nothing(process: Command, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    running = slow_chat(process, tmp_path)

    running.send_signal(signal.SIGINT)
    appears(tmp_path / "cleaning", running)
    until = time.monotonic() + 20
    while running.poll() is None:
        assert time.monotonic() < until
        running.send_signal(signal.SIGINT)
        time.sleep(0.05)
    running.communicate()

    assert running.returncode == 130
    assert not (tmp_path / "cleaned_up").exists()


@pytest_posix
@pytest.mark.slow
def test_runs_resume_asks_at_a_terminal(process: Command, at_terminal: Command, tmp_path: Path) -> None:
    own, log = tmp_path / "own.py", tmp_path / "runs.db"
    own.write_text(_OWN, encoding="utf-8")
    made = ("--model", f"{own}:WRITES", "--tools", own, "--log", log)
    begun = process("chat", *made, "--thread", "t", stdin=subprocess.PIPE)
    begun.communicate("write\n", timeout=20)

    terminal = at_terminal("runs", "resume", "t", *made)
    terminal.until("run it?")
    terminal.type("a\r")  # the script begins anew in its new process, with a call of the same tool
    terminal.until("read: wrote one")

    assert begun.returncode == 3
    assert terminal.close() == 0


@pytest_posix
def test_sigterm_ends_the_run_cleanly(process: Command, tmp_path: Path) -> None:
    running = slow_chat(process, tmp_path)

    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=20)

    assert running.returncode == 143
    assert (tmp_path / "cleaned_up").exists()
    assert "terminated" in out
    assert "Traceback" not in err


class Terminal:
    """A chat at a terminal of its own."""

    def __init__(self, process: Command, *arguments: Any, path: str = SOURCE) -> None:
        import fcntl
        import pty
        import termios

        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        self.child = process(
            *arguments, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={"TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONPATH": path},
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, wanted: str) -> str:
        """Return what came until `wanted` was shown."""
        ends = time.monotonic() + 20
        while wanted not in self.seen:
            assert time.monotonic() < ends, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(self.seen) from None
        before, _, self.seen = self.seen.partition(wanted)
        return before

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> int:
        """Wait for the end, reading what still comes, and return the exit code."""
        ends = time.monotonic() + 20
        while self.child.poll() is None and time.monotonic() < ends:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        code: int = self.child.wait(timeout=20)
        os.close(self.master)
        return code


@pytest.fixture
def at_terminal(process: Command) -> Iterator[Callable[..., Terminal]]:
    """Start commands at terminals of their own, and end them after the test."""
    started: list[Terminal] = []

    def start(*arguments: Any, path: str = SOURCE) -> Terminal:
        started.append(Terminal(process, *arguments, path=path))
        return started[-1]

    yield start
    for terminal in started:
        terminal.child.kill()
        terminal.child.wait()


@pytest_posix
@pytest.mark.slow
def test_at_a_terminal_there_are_forms_and_a_panel(at_terminal: Command, tmp_path: Path) -> None:
    pytest.importorskip("prompt_toolkit", reason="needs: pip install prompt-toolkit")
    pytest.importorskip("rich", reason="needs: pip install rich")
    (tmp_path / "own.py").write_text(
        _OWN + "\nMIX = ScriptedModel([calls('set_plan', steps=['look']), calls('write_note', text='one'), seen])\n",
        encoding="utf-8",
    )
    own = tmp_path / "own.py"
    terminal = at_terminal(
        "chat", "--model", f"{own}:MIX", "--tools", own, "--log", tmp_path / "runs.db", "--thread", "t"
    )
    terminal.until("you>")
    terminal.type("do it\r")
    terminal.until("plan")
    terminal.until("1. look")
    terminal.until("run it?")
    terminal.type("x\r")
    terminal.until("is no decision")
    terminal.type("\x7fe\r")
    terminal.until("arguments as JSON:")
    terminal.until("one")
    terminal.type('\x05\x7f\x7f!"}\r')
    terminal.until("wrote one!")
    terminal.until("done:")
    terminal.until("you>")
    terminal.type("\x03")
    terminal.until("Ctrl-C again leaves")
    terminal.until("you>")
    terminal.type("\x03")

    assert terminal.close() == 130
    assert "Traceback" not in terminal.seen


@pytest_posix
@pytest.mark.slow
def test_at_a_terminal_without_the_extra_there_are_plain_lines(at_terminal: Command, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(_OWN, encoding="utf-8")
    hidden = "import sys\nsys.modules['rich'] = sys.modules['prompt_toolkit'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    path = f"{tmp_path}{os.pathsep}{SOURCE}"

    terminal = at_terminal("chat", "--model", f"{own}:WRITES", "--tools", own, "--log", tmp_path / "r.db", path=path)
    terminal.until("you>")
    terminal.type("write\n")
    terminal.until("run it?")
    terminal.type("y\n")
    terminal.until("read: wrote one")
    terminal.until("you>")
    terminal.type("\x03")
    terminal.until("Ctrl-C again leaves")
    terminal.type("\x03")

    assert terminal.close() == 130
    assert "\x1b" not in terminal.seen


def test_the_answers_are_in_the_log_with_who_gave_them(chat: Command, graphwright: Command, tmp_path: Path) -> None:
    chat("WRITES", "write", "y")

    shown = graphwright("runs", "show", "t1", "--json", "--log", tmp_path / "runs.db")

    report = json.loads(shown.out)
    assert (report["status"], report["title"]) == ("completed", "write")
    assert [call["status"] for call in report["tool_calls"]] == ["ok"]
    assert report["pending"] == []
