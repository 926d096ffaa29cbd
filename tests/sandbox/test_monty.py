"""Sandboxes of monty: programs of Python in an interpreter that has nothing else."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import Any

import pytest

from graphwright.exceptions import SandboxUnavailableError, ToolError
from graphwright.sandbox import MontyBackend, SandboxConfig


def folders() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("graphwright-sandbox-")}


async def test_programs_run_and_files_stay_from_one_to_the_next(monty: Any) -> None:
    box = await monty()

    first = await box.run(["python3", "-"], stdin="print('out')\nopen('kept', 'w').write('hi')")
    second = await box.run(
        ["python3", "-c", "import sys\nprint(open('kept').read())\nprint('e', file=sys.stderr)\n1 / 0"]
    )
    third = await box.run("python3 -c 'print(kept)'")

    assert (first.exit_code, first.stdout, first.stderr) == (0, "out\n", "")
    assert (second.exit_code, second.stdout) == (1, "hi\n")
    assert second.stderr.startswith("e\n")
    assert second.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "NameError" in third.stderr, "a program starts with nothing of the one before"


@pytest.mark.parametrize("command", ["ls", ["bash", "-c", "python3 -c 1"], ["python3", "file.py"], [], "python3 -c '"])
async def test_everything_but_a_program_is_refused(monty: Any, command: Any) -> None:
    result = await (await monty()).run(command)

    assert (result.exit_code, result.stdout) == (127, "")
    assert "Python programs only" in result.stderr


@pytest.mark.parametrize(
    "program",
    [
        "print(open('/etc/passwd').read())",
        "print(open('../../../../etc/passwd').read())",
        "open('/workspace/../x', 'w').write('x')",
        "import os\nprint(os.environ)",
        "import os\nos.system('id')",
        "import os\nos.symlink('/etc/passwd', 'link')",
        "import subprocess",
        "import socket",
        "import ctypes",
        "import urllib.request",
        "__import__('os').system('id')",
        "().__class__.__bases__[0].__subclasses__()",
        "print.__self__.eval('1')",
        "(lambda: 0).__globals__",
        "def f():\n    f()\nf()",
    ],
)
async def test_a_way_out_ends_with_an_error(monty: Any, program: str) -> None:
    result = await (await monty()).run(["python3", "-c", program], timeout=5)

    assert (result.exit_code, result.stdout, result.stopped) == (1, "", "")
    assert result.stderr
    assert "root:" not in result.stderr


@pytest.mark.parametrize(
    "program", ["while True: pass", "import time\ntime.sleep(60)", "print('x', end='')\nwhile True: print('x' * 9999)"]
)
async def test_a_time_limit_stops_a_program(monty: Any, program: str) -> None:
    box = await monty(max_output=1000)

    with pytest.raises(TimeoutError, match=r"longer than 0\.4 s"):
        await box.run(["python3", "-c", program], timeout=0.4)

    assert (await box.run(["python3", "-c", "print(1)"])).stdout == "1\n"


async def test_memory_disk_and_output_are_limited(monty: Any) -> None:
    box = await monty(memory="32M", disk="1M", max_output=1000)

    memory = await box.run(["python3", "-c", "x = 'x' * (64 << 20)"])
    output = await box.run(["python3", "-c", "for _ in range(50): print('x' * 99)"])
    await box.write_file("half", "x" * 700_000)
    with pytest.raises(ToolError, match="'other' cannot be written"):
        await box.write_file("other", "x" * 700_000)

    assert "MemoryError" in memory.stderr
    assert (len(output.stdout), output.truncated) == (1000, True)


async def test_files_are_written_read_and_listed(monty: Any) -> None:
    box = await monty()

    await box.write_file("a/b c.txt", "hé\n")

    assert await box.read_file("a/b c.txt") == "hé\n"
    assert await box.list_files() == ["a/"]
    assert await box.list_files("/workspace/a") == ["b c.txt"]
    with pytest.raises(ToolError, match="'nope' cannot be read: FileNotFoundError"):
        await box.read_file("nope")
    with pytest.raises(ToolError, match="'/etc/passwd' cannot be read: PermissionError"):
        await box.read_file("/etc/passwd")
    with pytest.raises(ToolError, match="takes no packages"):
        await box.install_package("x")


async def test_clean_up_ends_a_program_and_removes_the_files(monty: Any, until: Any, processes_with: Any) -> None:
    before = folders()
    box = await monty()
    await box.write_file("x", "x")
    task = asyncio.create_task(box.run(["python3", "-c", "while True: pass"], timeout=60))
    await until(lambda: processes_with("/worker", ours=True))

    await box.cleanup()
    await box.cleanup()

    with pytest.raises(SandboxUnavailableError, match="cleaned up"):
        await task
    with pytest.raises(SandboxUnavailableError, match="cleaned up"):
        await box.run(["python3", "-c", "1"])
    assert not box.is_open
    assert folders() == before


async def test_a_cancelled_program_ends_and_the_session_stays(monty: Any, until: Any, processes_with: Any) -> None:
    box = await monty()
    task = asyncio.create_task(box.run(["python3", "-c", "while True: pass"], timeout=60))
    await until(lambda: processes_with("/worker", ours=True))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await box.run(["python3", "-c", "print(1)"])).stdout == "1\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"network": "full"}, "has no network"),
        ({"network": "restricted"}, "has no network"),
        ({"mounts": {"/data": "/srv"}}, "mounts cannot be given"),
        ({"env": {"A": "b"}}, "env cannot be given"),
        ({"cpu": 0.5}, "up to one core"),
    ],
)
async def test_what_monty_cannot_do_is_refused(needs_monty: None, options: dict[str, Any], problem: str) -> None:
    config = SandboxConfig(**options)

    assert problem in (await MontyBackend().check(config)).problem
    with pytest.raises(SandboxUnavailableError, match=problem):
        await MontyBackend().open(config)


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    monkeypatch.setattr("graphwright.sandbox.monty.is_installed", lambda _: False)

    with pytest.raises(SandboxUnavailableError, match="pip install 'graphwright"):
        await MontyBackend().open(SandboxConfig())


async def test_the_interpreter_itself_runs_inside_of_bubblewrap(
    needs_bwrap: None, monty: Any, until: Any, processes_with: Any
) -> None:
    box = await monty()
    task = asyncio.create_task(box.run(["python3", "-c", "while True: pass"], timeout=60))

    def workers() -> list[int]:
        return list(processes_with("/worker", ours=True, first=True))

    await until(workers)
    worker = workers()[0]
    theirs = {os.readlink(f"/proc/{worker}/ns/{kind}") for kind in ("net", "pid", "mnt", "user")}
    ours = {os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "mnt", "user")}
    await box.cleanup()

    assert theirs.isdisjoint(ours)
    with pytest.raises(SandboxUnavailableError):
        await task
    await until(lambda: not workers())


@pytest.mark.slow
async def test_twenty_sessions_work_at_once(monty: Any) -> None:
    boxes = await asyncio.gather(*(monty() for _ in range(20)))

    results = await asyncio.gather(
        *(
            box.run(["python3", "-c", f"open('f', 'w').write('{n}')\nprint(open('f').read())"])
            for n, box in enumerate(boxes)
        )
    )

    assert [result.stdout for result in results] == [f"{n}\n" for n in range(20)]
