"""The one place where tool calls are answered: each call gets exactly one result, whatever happens.

A batch goes through two phases. The gate (does the tool exist, do the arguments fit, does a hook object) has no side
effect and is passed by every call before any of them runs; then all run at once, up to a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from langchain_core.messages import ToolMessage

from graphwright._internal.jsonio import dumps
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ToolError
from graphwright.interrupts import Interrupt, Interrupted
from graphwright.run_events import ToolFinished, ToolStarted
from graphwright.run_scope import current_call
from graphwright.tools import running
from graphwright.tools.base import CallBatch, ToolRun
from graphwright.tools.callbacks import CallReport
from graphwright.tools.content import Content, cut_content, error_text, is_picture, render
from graphwright.tools.gate import CheckedCall, call_hook, check_call, pass_hook
from graphwright.tools.running import Raised, run_tool, start_task
from graphwright.tools.toolset import ToolSet
from graphwright.types import ToolCall, ToolResult, ToolStatus

__all__ = ["answer_calls"]

UNKNOWN = (
    "The run was cut off while {name} was at work, so it is unknown whether it took effect. It was not run again. "
    "Find out before you call it again."
)
EDITED = "A person changed the arguments of this call; it ran with {args}."

_PLAIN = frozenset({str, dict, list})
"""Types of results that become text at once."""


async def answer_calls(
    calls: Sequence[ToolCall],
    tools: ToolSet,
    run: ToolRun,
    *,
    finished: list[ToolResult] | None = None,
    first_index: int = 0,
) -> list[ToolResult]:
    """Answer the calls of one turn: one result a call, in the order asked.

    A call that cannot run, or that fails, is answered with an error that the model can act on. Cancelling this
    cancels the calls that run and waits for their clean-up. Each result is also put into `finished` as its call
    ends, for whoever has to know them when this raises. `first_index` is the place of the first call in its turn.

    Raises:
        BaseException: a tool raised something that is no `Exception`, such as `KeyboardInterrupt`; the other calls
            were cancelled.
    """
    batch = None
    if run.gate is None and run.log is None:
        before = run.hooks.before if run.hooks is not None else None
        checked = []
        for index, call in enumerate(calls, first_index):
            entry = check_call(call, index, tools, run)
            if before is not None and entry.refusal is None:
                await pass_hook(entry, before, validate=run.validate)
            checked.append(entry)
    else:
        from graphwright.tools.gating import check_batch

        batch = run.log.batch() if run.log is not None else None
        checked = await check_batch(calls, tools, run, batch, first_index)
    if len(checked) == 1:
        return [await _answer(checked[0], run, finished, batch)]
    return await _Batch(checked, run, finished, batch).answer() if checked else []


async def _answer(
    entry: CheckedCall, run: ToolRun, finished: list[ToolResult] | None, batch: CallBatch | None
) -> ToolResult:
    started = perf_counter()
    if batch is not None:
        known = batch.outcome(entry.call)
        if known is not None:
            if finished is not None:
                finished.append(known)
            return known
        if entry.refusal is None:
            await _begin(entry, batch)
    if run.emit is not None:
        await run.emit(ToolStarted(run.node, entry.call, entry.index, run_id=run.run_id, path=run.path))
    inside = current_call.set((entry, run, batch))
    try:
        result = await _answered(entry, run, started)
    finally:
        current_call.reset(inside)
    if batch is not None:
        result = batch.ended(result, entry.index)
    if finished is not None:
        finished.append(result)
    if run.trace is not None:
        run.trace(result)
    if run.emit is not None:
        await run.emit(ToolFinished(run.node, entry.call, result, entry.index, run_id=run.run_id, path=run.path))
    return result


async def _answered(entry: CheckedCall, run: ToolRun, started: float) -> ToolResult:
    if run.config and run.config.get("callbacks") and (entry.refusal is not None or not entry.tool.reports_itself):
        return await _answer_reported(entry, run, run.config, started)
    if entry.refusal is None:
        timeout = entry.tool.timeout or run.timeout
        outcome = await run_tool(entry.tool, entry.args, entry.call, run.config, timeout)
        if (
            type(outcome) in _PLAIN
            and run.hooks is None
            and run.max_result_chars is None
            and run.gate is None
            and run.wrap is None
        ):
            duration_ms = (perf_counter() - started) * 1000
            message = _message(entry.call, render(outcome), None, success=True)
            return ToolResult(entry.call, message, entry.args, True, duration_ms)
        return await _result(entry, run, outcome, started)
    return await _result(entry, run, Raised(ToolError(entry.refusal)), started)


async def _begin(entry: CheckedCall, batch: CallBatch) -> None:
    """Note that a call is about to run; one that was cut off runs again only where that is safe."""
    if not batch.was_cut_off(entry.call):
        await batch.begin(entry.call)
    elif not (entry.tool.idempotent or entry.tool.reenterable or (entry.tool.asks and batch.waited(entry.call))):
        entry.refuse(UNKNOWN.format(name=entry.call.name))
        entry.verdict = "unknown"


async def _answer_reported(entry: CheckedCall, run: ToolRun, config: dict[str, Any], started: float) -> ToolResult:
    """Answer a call and tell the caller's LangChain handlers of it."""
    report = await CallReport.start(config, entry.tool, entry.call, entry.args)
    outcome: Any = Raised(ToolError(entry.refusal))
    try:
        if entry.refusal is None:
            timeout = entry.tool.timeout or run.timeout
            with report.inside() as context:
                outcome = await run_tool(entry.tool, entry.args, entry.call, config, timeout, context)
        result = await _result(entry, run, outcome, started)
    except BaseException as error:
        await report.fail(error, entry.call)
        raise
    if result.success:
        await report.end(result.message)
    else:
        # What a hook took out of the text is not handed over with the exception.
        shown = type(outcome) is Raised and (run.hooks is None or run.hooks.after is None)
        await report.fail(outcome.error if shown else ToolError(str(result.message.content)), entry.call)
    return result


async def _result(entry: CheckedCall, run: ToolRun, outcome: Any, started: float) -> ToolResult:
    """Make the result of a call from what its tool returned or raised."""
    call = entry.call
    kind = type(outcome)
    duration_ms = (perf_counter() - started) * 1000
    success = True
    raised = False
    content: Content
    if kind is dict or kind is str or kind is list:
        content = render(outcome)
    elif kind is Raised:
        if _ends_run(outcome.error):
            raise outcome.error
        content, success, raised = error_text(outcome.error), False, entry.refusal is None or entry.raised
        if outcome.goes_on:
            entry.verdict = "unknown"
    elif isinstance(outcome, ToolMessage):
        content, success = outcome.content, outcome.status != "error"
    else:
        content = await run_in_thread(render, outcome) if is_picture(outcome) else render(outcome)
    if run.hooks is not None and run.hooks.after is not None and entry.refusal is None:
        try:
            changed = await call_hook(run.hooks.after, call.name, content, entry.args)
            content = content if changed is None else render(changed)
        except Exception as error:  # it may be there to take something out, so nothing is shown
            content, success = f"the result was withheld, because a check of it failed: {type(error).__name__}", False
    if run.max_result_chars is not None and success:
        content = cut_content(content, run.max_result_chars)
    if run.wrap is not None and entry.refusal is None:
        content = run.wrap(call, content)
    if entry.edited:
        content = _with_note(EDITED.format(args=dumps(entry.args)), content)
    message = _message(call, content, outcome if isinstance(outcome, ToolMessage) else None, success=success)
    return ToolResult(call, message, entry.args, success, duration_ms, raised, verdict=entry.verdict, notes=entry.notes)


def _with_note(note: str, content: Content) -> Content:
    if isinstance(content, str):
        return f"{note}\n{content}"
    return [{"type": "text", "text": note}, *content]


def _message(call: ToolCall, content: Content, made: ToolMessage | None, *, success: bool) -> ToolMessage:
    if made is None and success:
        return ToolMessage(content=content, tool_call_id=call.id, name=call.name)
    status: ToolStatus = "success" if success else "error"
    if made is None:
        return ToolMessage(content=content, tool_call_id=call.id, name=call.name, status=status)
    update = {"content": content, "tool_call_id": call.id, "name": call.name, "status": status}
    return made.model_copy(update=update)


def _ends_run(error: BaseException) -> bool:
    """Whether an error is no matter of the tool: an order to the process, or a signal of the engine."""
    if isinstance(error, (Exception, asyncio.CancelledError)):
        return False
    if isinstance(error, BaseExceptionGroup):
        return any(_ends_run(inner) for inner in error.exceptions)
    # What a tool written in Rust raises when it breaks is no Exception either.
    return type(error).__name__ != "PanicException"


class _Batch:
    """Several calls at work at once. As many workers as may run at a time take the calls in order."""

    __slots__ = (
        "_ending",
        "_entries",
        "_failure",
        "_finished",
        "_log",
        "_paused",
        "_queue",
        "_results",
        "_run",
        "_tasks",
    )

    def __init__(
        self,
        entries: Sequence[CheckedCall],
        run: ToolRun,
        finished: list[ToolResult] | None,
        log: CallBatch | None,
    ) -> None:
        self._log = log
        self._paused: list[Interrupt] = []
        self._entries = entries
        self._queue = iter(entries)
        self._results: dict[int, ToolResult] = {}
        self._run = run
        self._finished = finished
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._ending = False

    async def answer(self) -> list[ToolResult]:
        """Run all calls and return their results in the order asked."""
        loop = asyncio.get_running_loop()
        for _ in range(min(len(self._entries), max(1, self._run.parallel))):
            if self._failure is None and len(self._results) < len(self._entries):
                self._tasks.append(start_task(self._work(), loop))
        try:
            await self._all_done()
        except asyncio.CancelledError:
            await self._end()
            raise
        if self._failure is not None:
            raise self._failure
        if self._paused:
            raise Interrupted(self._paused)
        return [self._results[entry.index] for entry in self._entries]

    async def _all_done(self) -> None:
        pending = [task for task in self._tasks if not task.done()]
        if pending:
            await asyncio.wait(pending)

    async def _work(self) -> None:
        try:
            for entry in self._queue:
                try:
                    self._results[entry.index] = await _answer(entry, self._run, self._finished, self._log)
                except Interrupted as pause:  # the other calls run to their end first
                    self._paused.extend(pause.pending)
        except BaseException as error:  # a task must not raise it into the loop; `answer` raises it
            if not self._ending:
                self._failure = error
                self._cancel_others()

    def _cancel_others(self) -> None:
        self._ending = True
        own = asyncio.current_task()
        for task in self._tasks:
            if task is not own:
                task.cancel()

    async def _end(self) -> None:
        """Cancel the calls and wait for their clean-up, which is bounded by the grace time."""
        self._cancel_others()
        end = perf_counter() + 2 * running.GRACE_SECONDS
        while perf_counter() < end:
            try:
                return await self._all_done()
            except asyncio.CancelledError:
                continue  # asked already; what is left is short
