"""Whether the holder of a lease is known to be dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphwright.runlog.lease import is_dead, this_process

HAS_PROC = Path("/proc/self/stat").exists()


def test_a_process_that_lives_is_not_dead() -> None:
    assert is_dead(this_process()) is False


def test_a_process_of_another_machine_is_not_known_to_be_dead() -> None:
    _, pid, started = this_process().split("|")

    assert is_dead(f"another|{pid}|{started}") is False
    assert is_dead("another|999999999|1") is False


@pytest.mark.parametrize("holder", ["", "x", "a|b|c", "a|1", "a|1|2|3"])
def test_a_name_that_nobody_can_read_is_not_known_to_be_dead(holder: str) -> None:
    assert is_dead(holder) is False


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not looked up on Windows")
def test_a_process_that_was_killed_is_dead_at_once() -> None:
    machine = this_process().split("|")[0]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        name = f"{machine}|{child.pid}|"
        assert is_dead(name) is False
        child.kill()
        child.wait()

        assert is_dead(name) is True


@pytest.mark.skipif(not HAS_PROC, reason="this system has no /proc")
def test_a_number_that_another_process_has_now_is_a_dead_process() -> None:
    machine, pid, started = this_process().split("|")

    assert is_dead(f"{machine}|{pid}|{int(started) - 1}") is True
