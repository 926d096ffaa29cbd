"""Write a run down while it goes on, and go on with one that is paused or was cut off."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from graphwright._internal.aio import settle
from graphwright._internal.ids import new_run_id
from graphwright.caller import get_current_caller
from graphwright.engine.journal import Given, Journal, digest_of
from graphwright.engine.result import RunResult
from graphwright.exceptions import (
    InterruptError,
    RunAbortedError,
    RunPausedError,
    RunTimeoutError,
    SessionAccessDenied,
)
from graphwright.interrupts import Interrupt
from graphwright.messages import text_of
from graphwright.run_events import RunPaused
from graphwright.runlog.base import Row, RunInfo, RunStatus
from graphwright.runtime._answers import NOTHING, Checker, checked_answers, standing_of
from graphwright.runtime.history import (
    conversation_of,
    ended_as,
    has_ended,
    is_expired,
    pending_of,
    settled,
    thread_conversation,
)

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph
    from graphwright.runlog.base import BusyPolicy, RunLog, RunWriter
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["NOTHING", "Durability", "Resume", "abandon_run", "durable_layer", "find_run"]

logger = logging.getLogger(__name__)

CANCELLED = "The run was given up before this call had a result; whether it took effect is not known."
_TITLE_CHARS = 80
_digests: WeakKeyDictionary[PromptGraph, tuple[object, str]] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True, slots=True)
class Durability:
    """How the runs of an agent are kept."""

    log: RunLog
    owns_log: bool = False
    """Whether the log was made for the agent and is closed with it."""
    on_busy: BusyPolicy = "refuse"
    """What a run does when another is at work on its thread."""
    wait_seconds: float = 60.0
    on_paused: Literal["refuse", "abandon"] = "refuse"
    """What a new run does when the thread has one that is paused or was cut off."""
    keeps_conversation: bool = False
    """Whether a run goes on with the conversation of the runs before it on the thread."""
    checkers: Mapping[str, Checker] = field(default_factory=dict)
    """What checks the answers, by kind of interrupt, beside approvals and decisions."""
    metadata: Callable[[RunRequest], dict[str, Any]] | None = None
    """What is kept of a request besides, for when its run goes on."""


@dataclass(slots=True)
class Resume:
    """A run to go on with: by its id, or the open one of a thread."""

    run_id: str | None = None
    thread_id: str | None = None
    answers: Any = NOTHING
    """`{interrupt id: answer}`, or the answer to the first thing that is asked."""
    by: str | None = None
    """Who answered; kept in the log."""
    allow_changed_graph: bool = False
    """Go on also when the graph is another than the one that the run began with."""
    on_taken: Callable[[], None] | None = None
    """Called once when the run has taken all of the answers, so that they hold."""


def durable_layer(options: Durability, graph: Callable[[], PromptGraph]) -> Layer:
    """Return the layer that gives a run its log, and brings back the one that a request resumes."""

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        if request.inside is not None and request.inside.journal is not None:
            return await call_next(request)  # its rows are in the log of the run that it is a part of
        if request.resume is None:
            return await _begin(options, graph(), request, call_next)
        return await _go_on(options, graph(), request, request.resume, call_next)

    return layer


async def _begin(options: Durability, graph: PromptGraph, request: RunRequest, call_next: Handler) -> Any:
    log = options.log
    run_id = request.run_id = request.run_id or new_run_id()
    thread_id = request.thread_id or request.session_id or run_id
    info = RunInfo(
        run_id=run_id,
        thread_id=thread_id,
        owner=_owner(),
        graph=graph.name,
        graph_digest=_graph_digest(graph),
        title=_title_of(request.input),
        created_at=time.time(),
        metadata=options.metadata(request) if options.metadata is not None else {},
    )
    if thread_id != run_id and (options.on_busy == "refuse" or options.on_paused == "abandon"):
        await _make_way(options, thread_id)
    writer = await log.begin(info, on_busy=options.on_busy, wait_seconds=options.wait_seconds)
    try:
        if thread_id != run_id:
            await _after_begin(options, info, request)
    except BaseException:
        await _closed(writer, "rejected")
        raise
    return await _run(request, call_next, writer, Journal(writer))


async def _after_begin(options: Durability, info: RunInfo, request: RunRequest) -> None:
    """Look at the runs before this one, now that nobody else can begin one."""
    if options.keeps_conversation:
        runs = [
            (each, rows) for each, rows in await options.log.thread_rows(info.thread_id) if each.run_id != info.run_id
        ]
        for each, rows in runs:
            if each.status in ("paused", "running") and not has_ended(rows):
                _refuse_open(each, rows)
        request.history = thread_conversation(runs)
        return
    for each in await _open_runs(options.log, info.thread_id):
        if each.run_id != info.run_id and not has_ended(rows := await options.log.rows(each.run_id)):
            _refuse_open(each, rows)


async def _make_way(options: Durability, thread_id: str) -> None:
    """Deal with a run of the thread that is paused or was cut off, before a new one begins."""
    open_run = await _open_run(options.log, thread_id)
    if open_run is None:
        return
    _check_owner(open_run)
    rows = await options.log.rows(open_run.run_id)
    if options.on_paused == "refuse" and not has_ended(rows) and open_run.status == "paused":
        _refuse_open(open_run, rows)
    # Whoever is at work on it has its lease, and then this waits for it, or raises.
    writer = await options.log.reopen(open_run.run_id, on_busy=options.on_busy, wait_seconds=options.wait_seconds)
    if options.on_paused == "refuse" and not has_ended(await options.log.rows(open_run.run_id)):
        await _closed(writer, "running")
        _refuse_open(open_run, rows)
    await _abandon(options.log, open_run, writer)


async def abandon_run(options: Durability, resume: Resume) -> None:
    """Give up the run that `resume` names.

    Raises:
        InterruptError: there is none, or it has ended.
    """
    info = await find_run(options.log, resume)
    _check_owner(info)
    if info.status not in ("paused", "running"):
        raise InterruptError(f"the run {info.run_id} has ended ({info.status}), so it cannot be given up")
    await _abandon(options.log, info, await options.log.reopen(info.run_id, on_busy="refuse"))


async def _abandon(log: RunLog, info: RunInfo, writer: RunWriter) -> None:
    """End a run that is paused or was cut off; calls that it owes are answered as cancelled."""
    runs = [(each, rows) for each, rows in await log.thread_rows(info.thread_id) if each.number <= info.number]
    rows = runs[-1][1] if runs else []
    if not has_ended(rows):
        owed = settled(_open_conversation(runs), CANCELLED)
        writer.put(Row("end", "", "", {"status": "abandoned", **({"m": owed} if owed else {})}))
    # One that was cut off after its end has only its status still to get.
    await _closed(writer, ended_as(rows) or "abandoned")


def _open_conversation(runs: Sequence[tuple[RunInfo, Sequence[Row]]]) -> list[Any]:
    messages: list[Any] = []
    for info, rows in runs:
        if info.status != "rejected":
            messages = conversation_of(rows, messages)
    return messages


def _refuse_open(info: RunInfo, rows: Sequence[Row]) -> None:
    pending = pending_of(rows)
    if pending:
        state = f"is paused and waits for {len(pending)} answer(s)"
        remedy = "answer it with resume()"
    else:
        state, remedy = "was cut off", "go on with it by resume()"
    raise RunPausedError(
        f"the run {info.run_id} of thread {info.thread_id!r} {state}; {remedy}, or give it up with "
        "abandon() or on_paused='abandon'",
        pending=pending,
        run_id=info.run_id,
        thread_id=info.thread_id,
    )


async def _go_on(
    options: Durability, graph: PromptGraph, request: RunRequest, resume: Resume, call_next: Handler
) -> Any:
    info = await find_run(options.log, resume)
    _check_owner(info)
    writer = await options.log.reopen(info.run_id, on_busy=options.on_busy, wait_seconds=options.wait_seconds)
    status: RunStatus = info.status
    try:
        runs = [(each, rows) for each, rows in await options.log.thread_rows(info.thread_id)]
        rows = next(rows for each, rows in runs if each.run_id == info.run_id)
        if has_ended(rows):
            status = ended_as(rows) or "abandoned"
            what = f"has ended ({status})" if rows else "was cut off before anything of it was written"
            raise InterruptError(f"the run {info.run_id} {what}; start a new one")
        if info.graph_digest != _graph_digest(graph) and not resume.allow_changed_graph:
            raise InterruptError(
                f"the run {info.run_id} began on another graph than {graph.name!r} is now; resume it with the agent "
                "it began with, or with allow_changed_graph=True"
            )
        pending = pending_of(rows)
        given = checked_answers(resume.answers, pending, rows, by=resume.by or _owner(), checkers=options.checkers)
        owed = [item for item in pending if item.id not in given and not is_expired(item)]
        before = [(each, earlier) for each, earlier in runs if each.number < info.number]
        request.run_id, request.thread_id = info.run_id, info.thread_id
        request.metadata = info.metadata
        if options.keeps_conversation:
            request.history = thread_conversation(before)
        if owed:
            status = "paused"
            result = await _still_paused(writer, rows, owed, given, request, info)
        else:
            result = None
    except BaseException:
        await _closed(writer, status)
        raise
    if result is not None:
        await writer.close("paused")
        if request.emit is not None:
            await request.emit(RunPaused(result.pending, run_id=info.run_id))
        return result
    return await _run(request, call_next, writer, Journal(writer, rows, given, on_taken=resume.on_taken))


async def _still_paused(
    writer: RunWriter,
    rows: Sequence[Row],
    owed: list[Interrupt],
    given: Mapping[str, Given],
    request: RunRequest,
    info: RunInfo,
) -> RunResult:
    """Keep the answers that are there; the others are still waited for, and nothing runs."""
    asked = {row.data["item"].id: row.data for row in rows if row.kind == "interrupt"}
    for item_id, answer in given.items():
        writer.put(Row("answer", "", item_id, answer.row(**standing_of(answer.value, asked[item_id]))))
    await writer.flush()
    messages = conversation_of(rows, request.history)
    return RunResult.waiting(messages, owed, run_id=info.run_id, thread_id=info.thread_id)


async def _run(
    request: RunRequest,
    call_next: Handler,
    writer: RunWriter,
    journal: Journal,
) -> Any:
    """Run with a log, and see to it that the log says how it ended."""
    states: list[Any] = []
    seen = request.on_state

    def on_state(state: Any) -> None:
        states.append(state)
        if seen is not None:
            seen(state)

    request.on_state = on_state
    request.journal = journal
    try:
        result = await call_next(request)
    except InterruptError:
        # An answer did not fit: nothing has run, and the run waits as before.
        await _closed(writer, "paused" if journal.resumed else "failed")
        raise
    except BaseException as error:
        await _shielded(_fail(writer, journal, states, error))
        raise
    if result.status == "paused":
        await writer.close("paused")
        if request.emit is not None:
            # Whoever is shown the pause may leave at once, or answer it: it holds already, and the thread is free.
            await request.emit(RunPaused(result.pending, run_id=result.run_id))
        return result
    writer.put(Row("end", "", "", {"status": "completed", **journal.tail(result["messages"])}))
    await writer.close("completed")
    return result


async def _fail(writer: RunWriter, journal: Journal, states: list[Any], error: BaseException) -> None:
    aborted = isinstance(error, (asyncio.CancelledError, RunAbortedError))
    status: RunStatus = "aborted" if aborted else "failed"
    data: dict[str, Any] = {"status": status, "error": f"{type(error).__name__}: {error}"}
    if states:
        messages = states[-1].messages
        owed = settled(messages)
        data |= journal.tail([*messages, *owed] if owed else messages)
    elif isinstance(error, RunTimeoutError):
        data["error"] = str(error)
    try:
        writer.put(Row("end", "", "", data))
    except Exception:  # what cannot be kept is left out; that the run has ended is kept
        logger.exception("the end of run %s was kept without its last messages", writer.run_id)
        try:
            writer.put(Row("end", "", "", {"status": status, "error": data["error"]}))
        except Exception:  # the lease is lost, or the log is gone: whoever has the thread now decides
            logger.exception("the end of run %s was not kept", writer.run_id)
    await _closed(writer, status)


async def _closed(writer: RunWriter, status: RunStatus) -> None:
    try:
        await writer.close(status)
    except Exception:  # the run has an error of its own to tell; the lease runs out by itself
        logger.exception("the log of run %s could not be closed", writer.run_id)


async def _shielded(work: Any) -> None:
    """Wait for `work` to its end also when this task is cancelled meanwhile."""
    await settle(asyncio.ensure_future(work))


async def find_run(log: RunLog, resume: Resume) -> RunInfo:
    """Return the run to go on with.

    Raises:
        InterruptError: there is none.
    """
    found = None
    if resume.run_id is not None:
        found = await log.info(resume.run_id)
        if found is None and resume.thread_id is None:
            # One name stands for both, where a thread was named after its session.
            found = await _open_run(log, resume.run_id)
        name = f"run {resume.run_id!r}"
    else:
        assert resume.thread_id is not None
        found = await _open_run(log, resume.thread_id)
        name = f"open run on thread {resume.thread_id!r}"
    if found is None:
        raise InterruptError(f"there is no {name} in the run log; nothing was run")
    return found


async def _open_run(log: RunLog, thread_id: str) -> RunInfo | None:
    found = await _open_runs(log, thread_id)
    return found[0] if found else None


async def _open_runs(log: RunLog, thread_id: str) -> list[RunInfo]:
    """Return the runs of a thread that are paused, at work or cut off: at most one that is not just beginning."""
    paused = await log.runs(thread_id=thread_id, status="paused", limit=2)
    return [*paused, *await log.runs(thread_id=thread_id, status="running", limit=2)]


def _check_owner(info: RunInfo) -> None:
    if info.owner != _owner():
        raise SessionAccessDenied(f"thread {info.thread_id!r} belongs to somebody else")


def _owner() -> str | None:
    caller = get_current_caller()
    return caller.isolation_key if caller is not None else None


def _graph_digest(graph: PromptGraph) -> str:
    version = graph._version
    known = _digests.get(graph)
    if known is not None and known[0] is version:
        return known[1]
    digest = _digest(graph)
    _digests[graph] = (version, digest)
    return digest


def _digest(graph: PromptGraph) -> str:
    nodes = sorted((name, str(getattr(node, "node_type", ""))) for name, node in graph.nodes.items())
    edges = sorted((edge.from_node, edge.to_node, edge.label) for edge in graph.edges)
    return digest_of([graph.name, graph.entry, nodes, edges])


def _title_of(input: Any) -> str:
    if isinstance(input, Mapping):
        input = input.get("messages")
    last = input[-1] if isinstance(input, Sequence) and not isinstance(input, str) and input else input
    if isinstance(last, Mapping):
        last = last.get("content")
    if isinstance(last, tuple) and last:
        last = last[-1]
    text = last if isinstance(last, str) else text_of(last) if hasattr(last, "content") else ""
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
