"""The log in memory: bounded, cheap, and careful with what is paused."""

from __future__ import annotations

import gc
import logging
import tracemalloc

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import Interrupt
from graphwright.runlog import MemoryRunLog, Row, RunInfo, RunStatus


async def run(log: MemoryRunLog, number: int, status: RunStatus = "completed") -> None:
    writer = await log.begin(RunInfo(run_id=f"r{number}", thread_id=f"t{number}"))
    writer.put(Row("input", "", "", {"messages": [HumanMessage(f"question {number}")]}))
    await writer.close(status)


async def threads_of(log: MemoryRunLog) -> list[str]:
    return [info.thread_id for info in await log.threads()]


async def test_the_threads_written_longest_ago_are_dropped() -> None:
    log = MemoryRunLog(max_threads=3)
    for number in (1, 2, 3):
        await run(log, number)
    await (await log.reopen("r1")).close("completed")

    await run(log, 4)

    assert await threads_of(log) == ["t4", "t1", "t3"]
    assert await log.info("r2") is None
    assert await log.rows("r2") == []


async def test_a_paused_thread_is_dropped_last_and_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryRunLog(max_threads=2)
    await run(log, 1, "paused")
    await run(log, 2)
    await run(log, 3, "paused")
    assert await threads_of(log) == ["t3", "t1"]
    assert caplog.messages == []

    with caplog.at_level(logging.WARNING):
        await run(log, 4)

    assert await threads_of(log) == ["t4", "t3"]
    assert len(caplog.messages) == 1
    assert "'t1' is paused and was dropped" in caplog.messages[0]


async def test_a_thread_at_work_is_never_dropped() -> None:
    log = MemoryRunLog(max_threads=1)
    writers = [await log.begin(RunInfo(run_id=f"r{number}", thread_id=f"t{number}")) for number in (1, 2, 3)]

    assert len(await threads_of(log)) == 3

    for writer in writers:
        await writer.close("completed")
    await run(log, 4)
    assert "t4" in await threads_of(log)


async def test_a_run_that_is_read_can_be_changed_without_changing_the_log() -> None:
    log = MemoryRunLog()
    await run(log, 1)

    info = await log.info("r1")
    assert info is not None
    info.status = "failed"
    (await log.rows("r1")).clear()

    assert [found.status for found in await log.runs()] == ["completed"]
    assert len(await log.rows("r1")) == 1


async def test_a_paused_run_holds_little_memory() -> None:
    log = MemoryRunLog(max_threads=1000)
    await run(log, 0)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 201):
            writer = await log.begin(RunInfo(run_id=f"r{number}", thread_id=f"t{number}"))
            call = {"name": "pay", "args": {"to": f"account {number}"}, "id": f"call_{number}"}
            writer.put(Row("input", "", "", {"messages": [HumanMessage(f"pay {number}")]}))
            writer.put(Row("reply", "agent#1", "0", {"message": AIMessage("", tool_calls=[call])}))
            writer.put(Row("gate", "agent#1", f"0:call_{number}", {"args": dict(call["args"]), "digest": "0" * 16}))
            item = Interrupt(f"int_{number}", "approval", {"tool": "pay", "params": call["args"]}, "agent#1")
            writer.put(Row("interrupt", "agent#1", f"0:call_{number}", {"item": item}))
            await writer.close("paused")
        del writer
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / 200
    finally:
        tracemalloc.stop()

    assert each < 20_000


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_threads is 0"):
        MemoryRunLog(max_threads=0)


async def test_limits_that_would_delete_everything_by_mistake_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="keep_threads is -1"):
        await MemoryRunLog().prune(keep_threads=-1)
    with pytest.raises(ConfigurationError, match="older_than_seconds is -5"):
        await MemoryRunLog().prune(older_than_seconds=-5)
