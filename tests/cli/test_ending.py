"""How a run ends from outside: interrupted, or without a reader."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]

WAITING = """
import asyncio
from pathlib import Path

HERE = Path(__file__).parent

async def wait_long() -> str:
    "Wait until the run is ended, or until there is a file."
    try:
        while not (HERE / "go").exists():
            await asyncio.sleep(0.01)
        return "went on"
    finally:
        await asyncio.sleep(0.05)
        (HERE / "cleaned_up").touch()
"""

BLOCKING = """
import time

def block() -> str:
    "Block a thread."
    time.sleep(60)
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]


def started(start: Start, folder: Path, model: str, tools: str, *options: str) -> Any:
    """Start a run and return when its tool is at work."""
    (folder / "slow_tools.py").write_text(tools, encoding="utf-8")
    running = start("run", "x", "--model", model, "--tools", folder / "slow_tools.py", "--json", *options)
    for line in running.stdout:
        if json.loads(line)["type"] == "tool_started":
            return running
    raise AssertionError(running.stderr.read())


def test_an_interrupt_ends_the_run_cleanly_with_code_130(process: Start, tmp_path: Path, model_file: Any) -> None:
    running = started(process, tmp_path, model_file("calls('wait_long'), 'never'"), WAITING)

    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)

    last = json.loads(out.splitlines()[-1])
    assert (running.returncode, err) == (130, "graphwright: interrupted\n")
    assert (last["type"], last["status"], last["exit_code"]) == ("result", "aborted", 130)
    assert (tmp_path / "cleaned_up").exists()


def test_an_interrupt_does_not_wait_for_a_tool_that_blocks(process: Start, tmp_path: Path, model_file: Any) -> None:
    running = started(process, tmp_path, model_file("calls('block'), 'never'"), BLOCKING)

    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)

    assert (running.returncode, err) == (130, "graphwright: interrupted\n")


def test_a_reader_that_leaves_ends_the_run_quietly(process: Start, tmp_path: Path, model_file: Any) -> None:
    model = model_file("calls('wait_long'), calls('wait_long'), 'never'")
    running = started(process, tmp_path, model, WAITING)

    running.stdout.close()
    (tmp_path / "go").touch()
    running.wait(timeout=20)

    assert (running.returncode, running.stderr.read()) == (141, "")
    running.stderr.close()


def test_a_warning_of_the_library_is_one_line(process: Start, tmp_path: Path, model_file: Any) -> None:
    (tmp_path / "slow_tools.py").write_text(
        "import time\nfrom graphwright import tool\n\n"
        "@tool(timeout=0.05)\ndef nap() -> str:\n    'Nap.'\n    time.sleep(2)\n",
        encoding="utf-8",
    )
    model = model_file("calls('nap'), 'I could not wait.'")

    running = process("run", "x", "--model", model, "--tools", tmp_path / "slow_tools.py", "-q")
    out, err = running.communicate(timeout=20)

    assert (running.returncode, out) == (0, "I could not wait.\n")
    assert err.startswith("graphwright: warning: tool 'nap' timed out after 0.05 s")
    assert len(err.splitlines()) == 1


def test_an_output_that_knows_few_letters_is_no_failure(process: Start, model_file: Any) -> None:
    model = model_file("'caf\\u00e9 \\u2713'")

    running = process("run", "x", "--model", model, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    out, err = running.communicate(timeout=20)

    assert (running.returncode, err) == (0, "")
    assert out.splitlines()[1] == r"caf\xe9 \u2713"


def test_python_m_and_the_installed_command_are_the_same(process: Start) -> None:
    running = process("--version", stderr=subprocess.STDOUT)

    assert running.communicate(timeout=20)[0].startswith("graphwright ")
    assert running.returncode == 0


def test_sigterm_ends_the_run_cleanly_with_code_143(process: Start, tmp_path: Path, model_file: Any) -> None:
    running = started(process, tmp_path, model_file("calls('wait_long'), 'never'"), WAITING)

    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=20)

    result = json.loads(out.splitlines()[-1])
    assert (running.returncode, err) == (143, "graphwright: terminated\n")
    assert (result["status"], result["exit_code"], result["error"]) == ("aborted", 143, "terminated")
    assert (tmp_path / "cleaned_up").exists()


def test_sigterm_ends_a_run_that_ignores_interrupts(process: Start, tmp_path: Path, model_file: Any) -> None:
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    (tmp_path / "slow_tools.py").write_text(WAITING, encoding="utf-8")
    model = model_file("calls('wait_long'), 'never'")
    running = process("run", "x", "--model", model, "--tools", tmp_path / "slow_tools.py", "--json", **ignoring)
    for line in running.stdout:
        if json.loads(line)["type"] == "tool_started":
            break

    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=20)

    assert (running.returncode, "Traceback" in err) == (143, False)
    assert (tmp_path / "cleaned_up").exists()
