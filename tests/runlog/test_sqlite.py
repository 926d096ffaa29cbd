"""The log in a file, in one process: grouping, fencing, failure, and what is left of what was deleted."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from graphwright.exceptions import ConfigurationError, StoreUnavailable, ThreadBusy, UnstorableError
from graphwright.runlog import Row, RunInfo, SQLiteRunLog, _sqlite_schema
from graphwright.runlog.base import RunWriter


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SQLiteRunLog]:
    made = SQLiteRunLog(tmp_path / "runs.db")
    yield made
    await made.aclose()


async def begin(log: SQLiteRunLog, run_id: str = "r", thread_id: str = "t") -> RunWriter:
    return await log.begin(RunInfo(run_id=run_id, thread_id=thread_id))


async def until(holds: Callable[[], bool]) -> None:
    """Return when something that another thread does has happened."""
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it has not happened in five seconds")


def frames(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [frame for (frame,) in connection.execute("SELECT frame FROM rows ORDER BY id")]


def steal(path: Path) -> None:
    """Do what another process does that takes the lease of every thread."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE threads SET token = token + 1, holder = 'another|1|1', expires_at = 1e12")


async def test_many_writers_share_few_commits(log: SQLiteRunLog) -> None:
    writers = [await begin(log, f"r{number}", f"t{number}") for number in range(100)]
    file = log._file
    assert file is not None
    before = file.commits

    for step in range(3):
        for writer in writers:
            writer.put(Row("started", f"a#{step}"))
        await asyncio.gather(*(writer.flush() for writer in writers))

    assert file.commits - before <= 12
    assert len(frames(log.path)) == 300


async def test_a_row_that_may_wait_is_written_soon_without_being_asked_for(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    writer.put(Row("delta", "a#1"))

    await until(lambda: frames(log.path) == ["a#1"])


async def test_a_row_that_is_wanted_soon_takes_those_before_it_along(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    writer.put(Row("delta", "a#1"))
    writer.put(Row("outcome", "a#2"), soon=True)
    await writer.flush()

    assert frames(log.path) == ["a#1", "a#2"]


async def test_a_flush_with_nothing_to_write_writes_nothing(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    file = log._file
    assert file is not None
    before = file.commits

    for _ in range(10):
        await writer.flush()

    assert file.commits == before


async def test_a_writer_whose_lease_was_taken_writes_nothing_more(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    writer.put(Row("delta", "a#1"))
    await writer.flush()
    steal(log.path)

    writer.put(Row("delta", "a#2"))
    with pytest.raises(ThreadBusy, match="'r' was taken over by another writer"):
        await writer.flush()
    with pytest.raises(ThreadBusy):
        writer.put(Row("delta", "a#3"))
    with pytest.raises(ThreadBusy):
        await writer.close("completed")

    assert frames(log.path) == ["a#1"]
    assert [info.status for info in await log.runs()] == ["running"]


async def test_one_lost_lease_does_not_disturb_another_run(log: SQLiteRunLog) -> None:
    lost = await begin(log, "r1", "t1")
    steal(log.path)
    good = await begin(log, "r2", "t2")
    lost.put(Row("delta", "lost"))
    good.put(Row("delta", "good"))

    results = await asyncio.gather(lost.flush(), good.flush(), return_exceptions=True)

    assert [type(result) for result in results] == [ThreadBusy, type(None)]
    assert frames(log.path) == ["good"]


async def test_a_lost_lease_is_noticed_when_it_is_renewed(tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db", lease_seconds=0.1)
    writer = await begin(log)
    steal(log.path)

    async with asyncio.timeout(5):
        with pytest.raises(ThreadBusy):
            while True:
                writer.put()
                await asyncio.sleep(0.01)
    await log.aclose()


async def test_a_lease_that_ran_out_can_be_taken_and_one_that_did_not_cannot(log: SQLiteRunLog) -> None:
    await (await begin(log)).close("paused")
    with closing(sqlite3.connect(log.path)) as connection, connection:
        connection.execute("UPDATE threads SET holder = 'another|1|1', expires_at = ?", (time.time() + 60,))
    with pytest.raises(ThreadBusy):
        await log.reopen("r")
    with closing(sqlite3.connect(log.path)) as connection, connection:
        connection.execute("UPDATE threads SET expires_at = ?", (time.time() - 1,))

    writer = await log.reopen("r")

    await writer.close("completed")


async def test_a_value_that_cannot_be_kept_is_refused_when_it_is_put_and_nothing_is_queued(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    bad = Row("delta", "ask#1", "", {"context": {"client": object()}})

    with pytest.raises(UnstorableError, match=r"^the 'delta' row of 'ask#1' cannot be kept: data\[\"context\"\]"):
        writer.put(Row("gate", "ask#1"), bad)
    bad.data = {"context": {}}
    writer.put(Row("gate", "ask#1"), bad)
    await writer.flush()

    assert [(row.kind, row.seq) for row in await log.rows("r")] == [("gate", 1), ("delta", 2)]


async def test_a_cancelled_begin_keeps_no_lease(log: SQLiteRunLog) -> None:
    for number in range(20):
        task = asyncio.ensure_future(begin(log, f"r{number}"))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            await task.result().close("aborted")
        writer = await log.begin(RunInfo(run_id=f"s{number}", thread_id="t"), on_busy="wait", wait_seconds=5)
        await writer.close("completed")


async def test_a_cancelled_close_still_gives_the_lease_back(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    task = asyncio.ensure_future(writer.close("completed"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    again = await log.reopen("r", on_busy="wait", wait_seconds=5)

    await again.close("completed")


async def test_a_thread_is_handed_on_within_one_transaction(log: SQLiteRunLog) -> None:
    first = await begin(log, "r1")
    first.put(Row("delta", "a#1"))

    _, second = await asyncio.gather(first.close("completed"), begin(log, "r2"))
    second.put(Row("delta", "b#1"))
    await second.close("completed")

    assert frames(log.path) == ["a#1", "b#1"]
    with pytest.raises(ThreadBusy, match="'r1' was closed here"):
        first.put(Row("delta", "a#2"))


async def test_a_shorter_lease_of_a_second_log_is_renewed_in_time(log: SQLiteRunLog) -> None:
    long = await begin(log, "r1", "t1")
    other = SQLiteRunLog(log.path, lease_seconds=0.3)
    short = await begin(other, "r2", "t2")

    def expires_at() -> float:
        with closing(sqlite3.connect(log.path)) as connection:
            found = connection.execute("SELECT expires_at FROM threads WHERE thread_id = 't2'").fetchone()
        return float(found[0])

    first = expires_at()
    await until(lambda: expires_at() > first)

    await short.close("completed")
    await long.close("completed")
    await other.aclose()


async def test_two_logs_on_one_file_share_its_leases(log: SQLiteRunLog, tmp_path: Path) -> None:
    other = SQLiteRunLog(str(tmp_path / "x" / ".." / "runs.db"))
    (tmp_path / "x").mkdir()
    writer = await begin(log)

    with pytest.raises(ThreadBusy):
        await begin(other, "r2")
    await other.aclose()
    writer.put(Row("delta", "a#1"))
    await writer.close("completed")

    assert frames(log.path) == ["a#1"]


async def test_closing_a_log_writes_what_is_queued_and_frees_its_threads(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    writer.put(Row("delta", "a#1"))
    await log.aclose()

    with pytest.raises(ThreadBusy):
        writer.put(Row("delta", "a#2"))
    assert frames(log.path) == ["a#1"]
    assert not log.path.with_name("runs.db-wal").exists()
    assert [info.status for info in await log.runs()] == ["running"]
    await (await log.reopen("r")).close("completed")


async def test_the_thread_of_a_file_ends_with_its_last_log(tmp_path: Path) -> None:
    def running() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "graphwright-runlog"}

    before = running()
    closed, dropped = SQLiteRunLog(tmp_path / "a.db"), SQLiteRunLog(tmp_path / "b.db")
    await closed.runs()
    of_closed = running() - before
    await dropped.runs()
    of_dropped = running() - before - of_closed
    assert (len(of_closed), len(of_dropped)) == (1, 1)

    await closed.aclose()
    assert running() & of_closed == set()
    assert running() & of_dropped == of_dropped
    del dropped
    gc.collect()
    await until(lambda: not running() & of_dropped)


def test_a_log_and_its_writer_go_on_in_another_event_loop(tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db")
    writer = asyncio.run(begin(log))

    async def step(number: int) -> list[str]:
        writer.put(Row("started", f"a#{number}"))
        await writer.flush()
        writer.put(Row("delta", f"a#{number}"))
        return [f"{row.kind} {row.frame}" for row in await log.rows("r")]

    seen = [asyncio.run(step(number)) for number in range(3)]
    asyncio.run(writer.close("completed"))
    asyncio.run(log.aclose())

    assert seen[2] == [f"{kind} a#{number}" for number in range(3) for kind in ("started", "delta")]


async def test_another_program_that_writes_is_waited_for(log: SQLiteRunLog) -> None:
    writer = await begin(log)
    with closing(sqlite3.connect(log.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer.put(Row("delta", "a#1"))
        flushing = asyncio.ensure_future(writer.flush())
        await asyncio.sleep(0.05)
        assert not flushing.done()
        other.execute("COMMIT")
        await flushing

    assert frames(log.path) == ["a#1"]


async def test_rows_that_could_not_be_written_are_kept_in_order_for_the_next_try(tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db", busy_seconds=0.02)
    writer = await begin(log)
    with closing(sqlite3.connect(log.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer.put(Row("started", "a#1"))
        with pytest.raises(StoreUnavailable, match="another program has held it for too long"):
            await writer.flush()
        with pytest.raises(StoreUnavailable):
            await begin(log, "r2", "t2")
        writer.put(Row("delta", "a#2"))
        other.execute("COMMIT")

    await writer.flush()
    await writer.close("completed")
    await log.aclose()

    assert frames(log.path) == ["a#1", "a#2"]


async def test_a_full_disk_is_said_to_be_full_and_what_was_queued_is_written_when_there_is_space(
    log: SQLiteRunLog,
) -> None:
    writer = await begin(log)
    file = log._file
    assert file is not None
    await file.call(lambda connection: connection.execute("PRAGMA max_page_count=12").fetchone())
    writer.put(Row("started", "a#1"), Row("delta", "a#1", "", {"text": "x" * 400_000}))

    with pytest.raises(StoreUnavailable, match=r"is full; free some space on its disk"):
        await writer.flush()
    assert frames(log.path) == []

    # The limit went with the connection that it was set for.
    await writer.close("completed")
    assert frames(log.path) == ["a#1", "a#1"]


async def test_what_was_deleted_is_in_no_file_any_more(log: SQLiteRunLog) -> None:
    secret = "the secret word is xyzzy-4711"
    for number in range(3):
        writer = await begin(log, f"r{number}", f"t{number}")
        writer.put(*(Row("delta", f"a#{step}", "", {"text": secret * 50}) for step in range(20)))
        await writer.close("completed")
    held = [path.name for path in log.path.parent.iterdir() if secret.encode() in path.read_bytes()]
    assert held != []

    assert await log.delete_thread("t1") is True
    assert await log.prune(keep_threads=0) == 2

    assert [path.name for path in log.path.parent.iterdir() if secret.encode() in path.read_bytes()] == []


async def test_bytes_grow_with_the_rows_and_not_faster(tmp_path: Path) -> None:
    sizes = []
    for rounds in (100, 400):
        log = SQLiteRunLog(tmp_path / f"{rounds}.db")
        writer = await begin(log)
        for number in range(rounds):
            writer.put(*(Row(kind, f"a#{number}", "k", {"text": "x" * 200}) for kind in ("reply", "outcome", "delta")))
            await writer.flush()
        await writer.close("completed")
        await log.aclose()
        sizes.append(log.path.stat().st_size)

    assert sizes[1] < 4.2 * sizes[0]
    assert sizes[1] / 400 < 1000


async def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("PRAGMA user_version=99")

    with pytest.raises(StoreUnavailable, match="has version 99, and this version of Graphwright knows up to 1"):
        await begin(SQLiteRunLog(tmp_path / "runs.db"))


async def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("CREATE TABLE customers (name TEXT)")

    with pytest.raises(StoreUnavailable, match="is a database of something else"):
        await SQLiteRunLog(tmp_path / "runs.db").runs()

    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("customers",)]


async def test_an_older_file_is_brought_up_to_date_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SQLiteRunLog(tmp_path / "runs.db")
    writer = await begin(old)
    writer.put(Row("delta", "a#1"))
    await writer.close("completed")
    await old.aclose()
    ran = []

    def add_notes(connection: sqlite3.Connection) -> None:
        ran.append(connection)
        connection.execute("ALTER TABLE threads ADD COLUMN notes TEXT")

    monkeypatch.setattr(_sqlite_schema, "MIGRATIONS", [*_sqlite_schema.MIGRATIONS, add_notes])
    for _ in range(2):
        new = SQLiteRunLog(tmp_path / "runs.db")
        assert [row.frame for row in await new.rows("r")] == ["a#1"]
        await new.aclose()

    assert len(ran) == 1
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


async def test_a_step_that_fails_leaves_the_older_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SQLiteRunLog(tmp_path / "runs.db")
    await (await begin(old)).close("completed")
    await old.aclose()

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE threads ADD COLUMN notes TEXT")
        connection.execute("SELECT * FROM elsewhere")

    with monkeypatch.context() as patched:
        patched.setattr(_sqlite_schema, "MIGRATIONS", [*_sqlite_schema.MIGRATIONS, fails])
        with pytest.raises(StoreUnavailable, match="no such table: elsewhere"):
            await SQLiteRunLog(tmp_path / "runs.db").runs()

    again = SQLiteRunLog(tmp_path / "runs.db")
    assert [info.run_id for info in await again.runs()] == ["r"]
    await again.aclose()


async def test_a_file_that_is_no_database_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"this is no database at all" * 100)

    with pytest.raises(StoreUnavailable, match="move it away or restore it from a copy"):
        await begin(SQLiteRunLog(path))

    assert path.read_bytes() == b"this is no database at all" * 100


@pytest.mark.parametrize("name", ["folder", "file/runs.db"])
async def test_a_path_that_cannot_be_a_file_is_refused_with_the_remedy(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreUnavailable, match="see that its folder exists and this user may write there"):
        await begin(SQLiteRunLog(tmp_path / name))


async def test_a_log_works_again_once_its_file_does(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    log = SQLiteRunLog(tmp_path / "file" / "runs.db")
    with pytest.raises(StoreUnavailable):
        await begin(log)
    (tmp_path / "file").unlink()

    writer = await begin(log)

    await writer.close("completed")
    await log.aclose()


async def test_a_run_id_is_used_once(log: SQLiteRunLog) -> None:
    await (await begin(log)).close("completed")

    with pytest.raises(ConfigurationError, match="there is a run 'r' already"):
        await begin(log, "r", "t2")

    assert [info.thread_id for info in await log.threads()] == ["t"]


async def test_a_durability_above_normal_reaches_the_file(tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db", synchronous="FULL")
    other = SQLiteRunLog(tmp_path / "runs.db")
    await other.runs()
    writer = await begin(log)
    file = log._file
    assert file is not None

    level = await file.call(lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0])

    assert level == 2
    await writer.close("completed")
    await log.aclose()
    await other.aclose()
