"""What every run log has to do, as a test that a log of your own can run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from graphwright.exceptions import SessionAccessDenied, ThreadBusy
from graphwright.messages import AIMessage, HumanMessage, ToolMessage
from graphwright.runlog.base import Row, RunInfo, RunLog, RunWriter

__all__ = ["run_log_contract"]


async def run_log_contract(make_log: Callable[[], RunLog]) -> None:
    """Check a run log: rows and their order, leases, owners, lists, deletion and retention.

    `make_log` gives a fresh, empty log for each check.

    Raises:
        AssertionError: the log breaks a rule; the message says which.
    """
    for check in _CHECKS:
        log = make_log()
        try:
            await check(log)
        finally:
            await log.aclose()
            await log.aclose()


async def _keeps_rows_in_order(log: RunLog) -> None:
    asked = HumanMessage("What is the weather?", id="m1")
    reply = AIMessage("", tool_calls=[{"name": "weather", "args": {"in": "Oslo"}, "id": "call_1"}])
    result = ToolMessage("Rain.", tool_call_id="call_1", artifact={"mm": 3.5})
    writer = await log.begin(_run("r1", graph="g", graph_digest="d", title="weather", metadata={"k": [1, (2,)]}))
    given = [
        Row("input", "", "", {"messages": [asked]}),
        Row("reply", "ask#1", "0", {"message": reply}),
        Row("started", "ask#1", "0:call_1"),
        Row("outcome", "ask#1", "0:call_1", {"message": result, "nothing": None}),
    ]
    writer.put(given[0])
    writer.put(*given[1:3])
    await writer.flush()
    writer.put(given[3], soon=True)

    found = await log.rows("r1")

    seen = [(row.kind, row.frame, row.key, row.data) for row in found]
    _require(seen == [(row.kind, row.frame, row.key, row.data) for row in given], f"rows() gives {seen}")
    _require([row.seq for row in found] == [1, 2, 3, 4], "the rows are not numbered from 1")
    times = [row.at for row in found]
    _require(times == sorted(times) and times[0] > 0, "the rows do not have the time they were put")
    info = await log.info("r1")
    _require(info is not None, "info() does not know a run that began")
    assert info is not None
    named = (info.thread_id, info.graph, info.graph_digest, info.title, info.status, info.number, info.metadata)
    _require(named == ("t", "g", "d", "weather", "running", 1, {"k": [1, (2,)]}), f"info() gives {info}")
    await writer.close("completed")
    info = await log.info("r1")
    _require(info is not None and info.status == "completed", "close() does not write the status")
    _require(await log.rows("?") == [], "rows() of an unknown run is not empty")
    _require(await log.info("?") is None, "info() of an unknown run is not None")
    _require(await log.latest("?") is None, "latest() of an unknown thread is not None")


async def _writes_a_row_once(log: RunLog) -> None:
    writer = await log.begin(_run("r1"))
    writer.put(Row("gate", "a#1", "k", {"n": 1}), Row("gate", "a#1", "", {}), Row("gate", "a#2", "k", {}))
    await _raises(ValueError, _put(writer, Row("started", "a#1"), Row("gate", "a#1", "k", {"n": 2})), "a second row")
    await _raises(ValueError, _put(writer, Row("once", "b"), Row("once", "b")), "the same row twice in one put()")
    await writer.flush()
    seen = [(row.kind, row.frame, row.key, row.data) for row in await log.rows("r1")]
    _require(
        seen == [("gate", "a#1", "k", {"n": 1}), ("gate", "a#1", "", {}), ("gate", "a#2", "k", {})],
        f"a refused put() leaves rows behind: {seen}",
    )
    await writer.close("failed")


async def _has_one_writer_per_thread(log: RunLog) -> None:
    first = await log.begin(_run("r1"))
    await _raises(ThreadBusy, log.begin(_run("r2")), "begin() on a thread at work")
    await _raises(ThreadBusy, log.begin(_run("r2"), on_busy="wait", wait_seconds=0.02), "begin() that waits in vain")
    await _raises(ThreadBusy, log.reopen("r1"), "reopen() of a run at work")
    _require(await log.info("r2") is None, "a refused begin() leaves a run behind")
    other = await log.begin(_run("r3", "other"))
    waiting = asyncio.ensure_future(log.begin(_run("r2"), on_busy="wait", wait_seconds=30))
    await asyncio.sleep(0)
    first.put(Row("delta", "a#1"))
    await first.close("completed")
    await first.close("failed")
    second = await waiting
    info = await log.latest("t")
    _require(info is not None and (info.run_id, info.number) == ("r2", 2), "latest() is not the run that began last")
    info = await log.info("r1")
    _require(info is not None and info.status == "completed", "a second close() changes the status")
    await _raises(ThreadBusy, _put(first, Row("delta", "a#2")), "put() after close()")
    await second.close("completed")
    await other.close("completed")


async def _frees_the_thread_of_a_dropped_writer(log: RunLog) -> None:
    writer = await log.begin(_run("r1"))
    writer.put(Row("delta", "a#1"))
    del writer
    gc.collect()
    again = await log.reopen("r1", on_busy="wait", wait_seconds=5)
    again.put(Row("delta", "a#2"))
    await again.close("completed")
    seen = [row.frame for row in await log.rows("r1")]
    _require(seen == ["a#1", "a#2"], f"what a dropped writer had queued is not kept: {seen}")


async def _goes_on_with_a_run(log: RunLog) -> None:
    writer = await log.begin(_run("r1"))
    writer.put(Row("input"), Row("delta", "a#1"))
    await writer.close("paused")
    await _raises(KeyError, log.reopen("?"), "reopen() of an unknown run")
    again = await log.reopen("r1")
    _require((again.run_id, again.thread_id) == ("r1", "t"), "reopen() gives a writer with other ids")
    info = await log.info("r1")
    _require(info is not None and info.status == "running", "reopen() does not set the status to running")
    await _raises(ValueError, _put(again, Row("delta", "a#1")), "a row of an earlier leg, written again")
    again.put(Row("delta", "a#2"))
    await again.flush()
    seen = [(row.seq, row.frame) for row in await log.rows("r1")]
    _require(seen == [(1, ""), (2, "a#1"), (3, "a#2")], f"reopen() does not go on behind the last row: {seen}")
    await again.close("completed")


async def _keeps_owners_apart(log: RunLog) -> None:
    await _finished(log, _run("r1", "t1", owner="acme::ann"))
    await _finished(log, _run("r2", "t2", owner=None))
    await _finished(log, _run("r3", "t3", owner=""))
    for owner in ("acme::bob", None, ""):
        await _raises(SessionAccessDenied, log.begin(_run("r9", "t1", owner=owner)), f"begin() as {owner!r}")
    await _raises(SessionAccessDenied, log.begin(_run("r9", "t2", owner="")), "begin() on an anonymous thread")
    for owner, run_id in (("acme::ann", "r1"), (None, "r2"), ("", "r3")):
        runs = [info.run_id for info in await log.runs(owner=owner)]
        threads = [(info.thread_id, info.owner) for info in await log.threads(owner=owner)]
        _require(runs == [run_id], f"runs(owner={owner!r}) gives {runs}")
        _require(threads == [(f"t{run_id[1:]}", owner)], f"threads(owner={owner!r}) gives {threads}")
    _require(len(await log.runs()) == 3, "runs() does not give those of every owner")


async def _lists(log: RunLog) -> None:
    for number, thread in enumerate(("t1", "t2", "t1", "t3"), 1):
        await _finished(log, _run(f"r{number}", thread, title=f"title {number}"), rows=number)
    at_work = await log.reopen("r4")
    runs = [info.run_id for info in await log.runs()]
    _require(runs == ["r4", "r3", "r2", "r1"], f"runs() gives {runs}")
    some = [info.run_id for info in await log.runs(limit=2, offset=1)]
    _require(some == ["r3", "r2"], f"runs(limit=2, offset=1) gives {some}")
    of_thread = [info.run_id for info in await log.runs(thread_id="t1", status="completed")]
    _require(of_thread == ["r3", "r1"], f"runs(thread_id=..., status=...) gives {of_thread}")
    running = [info.run_id for info in await log.runs(status="running")]
    _require(running == ["r4"], f"runs(status='running') gives {running}")
    threads = [(info.thread_id, info.runs, info.title, info.status) for info in await log.threads()]
    wanted = [("t3", 1, "title 4", "running"), ("t1", 2, "title 1", "completed"), ("t2", 1, "title 2", "completed")]
    _require(threads == wanted, f"threads() gives {threads}")
    _require([info.thread_id for info in await log.threads(limit=1, offset=2)] == ["t2"], "threads() does not page")
    whole = [(info.run_id, len(rows)) for info, rows in await log.thread_rows("t1")]
    _require(whole == [("r1", 1), ("r3", 3)], f"thread_rows() gives {whole}")
    _require(await log.thread_rows("?") == [], "thread_rows() of an unknown thread is not empty")
    several = {run_id: len(rows) for run_id, rows in (await log.rows_of(["r2", "r3"])).items()}
    _require(several == {"r2": 2, "r3": 3}, f"rows_of() gives {several}")
    await at_work.close("completed")


async def _deletes(log: RunLog) -> None:
    await _finished(log, _run("r1", "t1"))
    await _finished(log, _run("r2", "t2"))
    at_work = await log.reopen("r1")
    await _raises(ThreadBusy, log.delete_thread("t1"), "delete_thread() of a thread at work")
    await at_work.close("paused")
    _require(await log.delete_thread("t1") is True, "delete_thread() does not say that there was one")
    _require(await log.delete_thread("t1") is False, "delete_thread() says that there was one twice")
    _require(await log.info("r1") is None and await log.rows("r1") == [], "a deleted thread leaves its run behind")
    _require([info.thread_id for info in await log.threads()] == ["t2"], "delete_thread() deletes another")
    await _raises(KeyError, log.reopen("r1"), "reopen() of a deleted run")
    await _finished(log, _run("r1", "t1", owner="somebody else"))
    _require(len(await log.rows("r1")) == 1, "a name that is used again has rows of what was deleted")


async def _prunes(log: RunLog) -> None:
    for number in range(1, 7):
        await _finished(log, _run(f"r{number}", f"t{number}"), status="paused" if number == 2 else "completed")
    _require(await log.prune() == 0, "prune() without a limit deletes")
    _require(await log.prune(older_than_seconds=3600) == 0, "prune() deletes what is new")
    at_work = await log.reopen("r1")
    await _finished(log, _run("r7", "t7"))
    _require(await log.prune(keep_threads=2) == 4, "prune(keep_threads=2) does not say how many it deleted")
    left = {info.thread_id for info in await log.threads()}
    _require(left == {"t1", "t2", "t7"}, f"prune() leaves {sorted(left)}; at work, paused and newest stay")
    await at_work.close("completed")
    _require(await log.prune(older_than_seconds=0.0) == 2, "prune(older_than_seconds=0) does not delete all it may")
    left = {info.thread_id for info in await log.threads()}
    _require(left == {"t2"}, f"prune() leaves {sorted(left)}; paused threads stay")


async def _takes_any_text(log: RunLog) -> None:
    odd = "a\ud83d \0 \x00b é \U0001f600 \udc80"
    writer = await log.begin(_run(odd, f"t{odd}", owner=odd, title=odd))
    writer.put(Row("delta", odd, "\0", {"x": odd, odd: 1}), Row("delta", odd, "", {}))
    await writer.close("completed")
    seen = [(row.frame, row.key, row.data) for row in await log.rows(odd)]
    _require(seen == [(odd, "\0", {"x": odd, odd: 1}), (odd, "", {})], f"odd texts come back as {seen}")
    info = await log.latest(f"t{odd}")
    _require(info is not None and (info.run_id, info.owner, info.title) == (odd, odd, odd), f"odd names: {info}")


async def _serves_many_at_once(log: RunLog) -> None:
    async def one(number: int) -> list[str]:
        writer = await log.begin(_run(f"r{number}", f"t{number}"))
        for step in range(5):
            writer.put(Row("started", f"a#{step}"), Row("gate", f"a#{step}"))
            await writer.flush()
            writer.put(Row("outcome", f"a#{step}"), soon=True)
            writer.put(Row("delta", f"a#{step}", "", {"n": number}))
        await writer.close("completed")
        return [f"{row.seq} {row.kind} {row.frame}" for row in await log.rows(f"r{number}")]

    kinds = ("started", "gate", "outcome", "delta")
    wanted = [f"{step * 4 + place} {kind} a#{step}" for step in range(5) for place, kind in enumerate(kinds, 1)]
    for number, seen in enumerate(await asyncio.gather(*(one(number) for number in range(20)))):
        _require(seen == wanted, f"of 20 runs at once, run {number} has {seen}")


_CHECKS: tuple[Callable[[RunLog], Awaitable[None]], ...] = (
    _keeps_rows_in_order,
    _writes_a_row_once,
    _has_one_writer_per_thread,
    _frees_the_thread_of_a_dropped_writer,
    _goes_on_with_a_run,
    _keeps_owners_apart,
    _lists,
    _deletes,
    _prunes,
    _takes_any_text,
    _serves_many_at_once,
)


def _run(run_id: str, thread_id: str = "t", **fields: Any) -> RunInfo:
    return RunInfo(run_id=run_id, thread_id=thread_id, **fields)


async def _finished(log: RunLog, info: RunInfo, *, rows: int = 1, status: Any = "completed") -> None:
    writer = await log.begin(info)
    writer.put(*(Row("delta", f"a#{number}") for number in range(rows)))
    await writer.close(status)


async def _put(writer: RunWriter, *rows: Row) -> None:
    writer.put(*rows)


async def _raises(error: type[Exception], doing: Awaitable[Any], what: str) -> None:
    with suppress(error):
        await doing
        raise AssertionError(f"{what} does not raise {error.__name__}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
