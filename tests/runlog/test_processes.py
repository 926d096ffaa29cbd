"""The log in a file, shared by processes that are killed, stopped, forked, or all come at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from graphwright.exceptions import ThreadBusy
from graphwright.runlog import Row, SQLiteRunLog

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals, nor fork")

SOURCE = str(Path(__file__).parents[2] / "src")
PRELUDE = """
import asyncio, os, sys, time
from graphwright.exceptions import StoreUnavailable, ThreadBusy
from graphwright.runlog import Row, RunInfo, SQLiteRunLog
PATH = sys.argv[1]
def say(word): print(word, flush=True)
def hear(): return sys.stdin.readline().strip()
"""


@contextmanager
def child(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run code in another process, with `PATH`, `say` and `hear` in it, and kill it at the end."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(path)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        assert process.stderr is not None
        raise AssertionError(f"the other process ended: {process.stderr.read()}")
    return line


def tell(process: subprocess.Popen[str], word: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


WRITES = """
async def main():
    log = SQLiteRunLog(PATH, lease_seconds=30)
    writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
    number = 0
    while True:
        writer.put(Row("started", f"a#{number}"))
        await writer.flush()
        say(number)
        writer.put(Row("delta", f"a#{number}", "", {"text": "x" * 500}))
        number += 1
asyncio.run(main())
"""


@needs_signals
async def test_what_was_flushed_outlives_a_kill_and_the_thread_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with child(WRITES, path) as process:
        for _ in range(50):
            said = int(heard(process))
        log = SQLiteRunLog(path)
        with pytest.raises(ThreadBusy):
            await log.reopen("r")
        process.send_signal(signal.SIGKILL)
        process.wait()

    began = time.monotonic()
    writer = await log.reopen("r")
    took = time.monotonic() - began
    rows = await log.rows("r")
    writer.put(Row("end"))
    await writer.close("completed")
    end = (await log.rows("r"))[-1]
    await log.aclose()

    assert took < 5
    frames = [row.frame for row in rows if row.kind == "started"]
    assert frames == [f"a#{number}" for number in range(len(frames))]
    assert len(frames) > said
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert (end.kind, end.seq) == ("end", len(rows) + 1)


@pytest.mark.slow
@needs_signals
async def test_a_log_is_whole_wherever_its_process_is_killed(tmp_path: Path) -> None:
    for place in range(8):
        path = tmp_path / f"{place}.db"
        with child(WRITES, path) as process:
            for _ in range(1 + place * 7):
                said = int(heard(process))
            process.kill()
            process.wait()
        log = SQLiteRunLog(path)
        rows = await log.rows("r")
        await log.aclose()

        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert sum(row.kind == "started" for row in rows) > said


@pytest.mark.slow
async def test_twenty_processes_can_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    code = """
    async def main():
        log = SQLiteRunLog(PATH)
        say("ready")
        name = hear()
        writer = await log.begin(RunInfo(run_id=name, thread_id=name))
        for number in range(5):
            writer.put(Row("delta", f"a#{number}"))
            await writer.flush()
        await writer.close("completed")
        await log.aclose()
        say("done")
    asyncio.run(main())
    """
    path = tmp_path / "new" / "runs.db"
    with ExitStack() as stack:
        processes = [stack.enter_context(child(code, path)) for _ in range(20)]
        assert [heard(process) for process in processes] == ["ready"] * 20
        for number, process in enumerate(processes):
            tell(process, f"p{number}")
        assert [heard(process) for process in processes] == ["done"] * 20

    log = SQLiteRunLog(path)
    runs = await log.runs()
    counts = {info.run_id: len(await log.rows(info.run_id)) for info in runs}
    await log.aclose()
    assert counts == {f"p{number}": 5 for number in range(20)}
    assert {info.status for info in runs} == {"completed"}


@pytest.mark.slow
@needs_signals
async def test_a_process_that_slept_through_its_lease_writes_nothing_when_it_wakes(tmp_path: Path) -> None:
    code = """
    async def main():
        log = SQLiteRunLog(PATH, lease_seconds=0.5)
        writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
        writer.put(Row("started", "a#1"))
        await writer.flush()
        say("held")
        hear()
        try:
            writer.put(Row("outcome", "a#1"))
            await writer.flush()
            say("wrote")
        except ThreadBusy:
            say("refused")
    asyncio.run(main())
    """
    path = tmp_path / "runs.db"
    log = SQLiteRunLog(path)
    with child(code, path) as process:
        assert heard(process) == "held"
        process.send_signal(signal.SIGSTOP)
        writer = await log.reopen("r", on_busy="wait", wait_seconds=20)
        writer.put(Row("outcome", "a#1", "", {"by": "the second"}))
        await writer.flush()
        process.send_signal(signal.SIGCONT)
        tell(process)
        said = heard(process)

    assert said == "refused"
    assert [(row.kind, row.data) for row in await log.rows("r")] == [
        ("started", {}),
        ("outcome", {"by": "the second"}),
    ]
    await writer.close("completed")
    await log.aclose()


@pytest.mark.slow
async def test_an_event_loop_that_is_blocked_for_longer_than_the_lease_does_not_lose_it(tmp_path: Path) -> None:
    code = """
    async def main():
        log = SQLiteRunLog(PATH, lease_seconds=0.4)
        writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
        say("held")
        hear()  # blocks the loop
        writer.put(Row("delta", "a#1"))
        await writer.close("completed")
        say("wrote")
    asyncio.run(main())
    """
    path = tmp_path / "runs.db"
    log = SQLiteRunLog(path)
    with child(code, path) as process:
        assert heard(process) == "held"
        with pytest.raises(ThreadBusy):
            await log.reopen("r", on_busy="wait", wait_seconds=1.5)
        tell(process)
        assert heard(process) == "wrote"

    assert [row.frame for row in await log.rows("r")] == ["a#1"]
    await log.aclose()


async def test_what_is_queued_is_written_when_the_interpreter_ends(tmp_path: Path) -> None:
    code = """
    log = SQLiteRunLog(PATH)
    async def main():
        writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
        writer.put(Row("delta", "a#1"))
        return writer
    writer = asyncio.run(main())
    writer.put(Row("delta", "a#2"))
    say("end")
    """
    path = tmp_path / "runs.db"
    with child(code, path) as process:
        assert heard(process) == "end"
        assert process.wait(timeout=20) == 0

    log = SQLiteRunLog(path)
    assert [row.frame for row in await log.rows("r")] == ["a#1", "a#2"]
    writer = await log.reopen("r")
    await writer.close("completed")
    await log.aclose()


@needs_signals
async def test_a_forked_child_leaves_its_parents_runs_alone_and_can_begin_its_own(tmp_path: Path) -> None:
    code = """
    import warnings
    warnings.simplefilter("ignore")
    log = SQLiteRunLog(PATH)
    writer = asyncio.run(log.begin(RunInfo(run_id="parent", thread_id="t")))
    writer.put(Row("delta", "a#1"))
    async def in_child():
        try:
            writer.put(Row("delta", "stray"))
            say("wrote")
        except ThreadBusy:
            say("refused")
        await writer.close("failed")
        try:
            await log.reopen("parent")
            say("took")
        except ThreadBusy:
            say("busy")
        mine = await log.begin(RunInfo(run_id="child", thread_id="u"))
        for number in range(40):
            mine.put(Row("delta", f"b#{number}"))
            await mine.flush()
        await mine.close("completed")
        await log.aclose()
    pid = os.fork()
    if pid == 0:
        asyncio.run(in_child())
        os._exit(0)
    async def in_parent():
        for number in range(2, 42):
            writer.put(Row("delta", f"a#{number}"))
            await writer.flush()
        return os.waitpid(pid, 0)[1]
    status = asyncio.run(in_parent())
    asyncio.run(writer.close("completed"))
    say(f"status {status}")
    """
    path = tmp_path / "runs.db"
    with child(code, path) as process:
        said = [heard(process) for _ in range(3)]
        assert process.wait(timeout=20) == 0

    log = SQLiteRunLog(path)
    assert said == ["refused", "busy", "status 0"]
    assert [row.frame for row in await log.rows("parent")] == [f"a#{number}" for number in range(1, 42)]
    assert [row.frame for row in await log.rows("child")] == [f"b#{number}" for number in range(40)]
    assert {info.run_id: info.status for info in await log.runs()} == {"parent": "completed", "child": "completed"}
    await log.aclose()


@needs_signals
async def test_a_file_that_may_not_grow_is_said_to_be_the_cause_and_nothing_half_is_written(tmp_path: Path) -> None:
    code = """
    import resource
    async def main():
        log = SQLiteRunLog(PATH)
        writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
        writer.put(Row("delta", "a#1"))
        await writer.flush()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(PATH + "-wal") + 20_000, hard))
        writer.put(Row("started", "a#2"), Row("delta", "a#2", "", {"text": "x" * 400_000}))
        try:
            await writer.flush()
            say("wrote")
        except StoreUnavailable as error:
            say(error)
        rows = await SQLiteRunLog(PATH).rows("r")
        say([row.frame for row in rows])
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await writer.close("completed")
        say([row.frame for row in await log.rows("r")])
    asyncio.run(main())
    """
    with child(code, tmp_path / "runs.db") as process:
        said = [heard(process) for _ in range(3)]

    assert "no limit on the size of files is met" in said[0]
    assert said[1:] == ["['a#1']", "['a#1', 'a#2', 'a#2']"]


@pytest.mark.slow
async def test_processes_that_want_one_thread_take_turns(tmp_path: Path) -> None:
    code = """
    async def main():
        log = SQLiteRunLog(PATH)
        name = hear()
        for number in range(5):
            info = RunInfo(run_id=f"{name}{number}", thread_id="t")
            writer = await log.begin(info, on_busy="wait", wait_seconds=60)
            writer.put(Row("started", name))
            await writer.flush()
            writer.put(Row("delta", name))
            await writer.close("completed")
        await log.aclose()
        say("done")
    asyncio.run(main())
    """
    path = tmp_path / "runs.db"
    with child(code, path) as one, child(code, path) as two, child(code, path) as three:
        for name, process in (("x", one), ("y", two), ("z", three)):
            tell(process, name)
        assert [heard(process) for process in (one, two, three)] == ["done"] * 3

    log = SQLiteRunLog(path)
    runs = await log.thread_rows("t")
    await log.aclose()
    assert [info.number for info, _ in runs] == list(range(1, 16))
    assert all([row.kind for row in rows] == ["started", "delta"] for _, rows in runs)
    # Nobody wrote between the first and the last row of a run.
    spans = [(rows[0].at, rows[-1].at) for _, rows in runs]
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
