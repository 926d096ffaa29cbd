from __future__ import annotations

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from graphwright._internal import threads
from graphwright._internal.threads import ThreadPool, run_in_thread
from graphwright.tools import Tool, ToolRun, answer_calls, as_tools, running, tool
from graphwright.types import ToolCall, ToolResult, ToolSpec

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="unset")


async def answer(function: Any, count: int = 1, **run: Any) -> list[ToolResult]:
    tools = as_tools([function])
    calls = [ToolCall(f"c{number}", tools.names[0], {}) for number in range(count)]
    return await answer_calls(calls, tools, ToolRun(**run))


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "GRACE_SECONDS", 0.05)


@pytest.mark.parametrize("count", [1, 3])
async def test_cancelling_the_run_cancels_its_calls_and_waits_for_their_clean_up(count: int) -> None:
    log: list[str] = []
    started = asyncio.Semaphore(0)

    async def wait() -> None:
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            log.append("cleaned up")

    run = asyncio.create_task(answer(wait, count))
    for _ in range(count):
        await started.acquire()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert log == ["cleaned up"] * count


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_that_swallows_the_cancellation_does_not_keep_the_run_going(count: int) -> None:
    started = asyncio.Event()

    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "stopped"
        return "slept"

    run = asyncio.create_task(answer(stubborn, count))
    await started.wait()
    await asyncio.sleep(0)
    run.cancel()
    begin = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert time.perf_counter() - begin < 1
    assert run.cancelled()


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_that_ignores_its_cancellation_is_left_behind_when_the_run_is_cancelled(
    count: int, short_grace: None, caplog: pytest.LogCaptureFixture
) -> None:
    release, started = asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def deaf() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.append("at last")

    run = asyncio.create_task(answer(deaf, count))
    await started.wait()
    await asyncio.sleep(0)
    run.cancel()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert "tool 'deaf' did not stop within 0.05 s after it was cancelled; it is left behind" in caplog.text
    assert len(running._left_behind) == count
    release.set()
    await asyncio.wait(set(running._left_behind))
    assert ended == ["at last"] * count


def _cancelled_error() -> Callable[[], Awaitable[Any]]:
    async def fail() -> None:
        raise asyncio.CancelledError

    return fail


def _cancels_itself() -> Callable[[], Awaitable[Any]]:
    async def fail() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    return fail


def _awaits_cancelled() -> Callable[[], Awaitable[Any]]:
    async def fail() -> None:
        inner = asyncio.ensure_future(asyncio.sleep(10))
        await asyncio.sleep(0)
        inner.cancel()
        await inner

    return fail


def _anyio_deadline() -> Callable[[], Awaitable[Any]]:
    async def fail() -> None:
        with anyio.fail_after(0.01):
            await anyio.sleep(10)

    return fail


def _asyncio_deadline() -> Callable[[], Awaitable[Any]]:
    async def fail() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(10)

    return fail


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_cancelled_error, "CancelledError"),
        (_cancels_itself, "CancelledError"),
        (_awaits_cancelled, "CancelledError"),
        (_anyio_deadline, "TimeoutError"),
        (_asyncio_deadline, "TimeoutError"),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
async def test_a_cancellation_from_inside_a_tool_is_that_tools_error(make: Any, kind: str, count: int) -> None:
    results = await answer(make(), count)

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert [(result.success, result.raised) for result in results] == [(False, True)] * count
    assert all(str(result.message.content).startswith(kind) for result in results)


async def test_a_scope_that_moves_on_inside_a_tool_behaves() -> None:
    async def patient() -> str:
        with anyio.move_on_after(0.01):
            await anyio.sleep(10)
        await asyncio.sleep(0)
        return "moved on"

    assert (await answer(patient))[0].message.content == "moved on"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_deadline_around_the_run_still_is_a_timeout(count: int) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "swallowed"
        return "slept"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await answer(stubborn, count)
    with anyio.move_on_after(0.02) as scope:
        await answer(stubborn, count)

    assert scope.cancelled_caught


async def test_a_call_that_takes_too_long_is_stopped_and_reported() -> None:
    log: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            log.append("cleaned up")

    result = (await answer(slow, timeout=0.02))[0]

    assert (result.message.content, result.message.status, result.raised) == (
        "'slow' timed out after 0.02 s",
        "error",
        True,
    )
    assert log == ["cleaned up"]
    assert 20 <= result.duration_ms < 1000


async def test_the_timeout_of_the_tool_comes_before_that_of_the_run() -> None:
    @tool(timeout=5)
    async def quick() -> str:
        await asyncio.sleep(0.05)
        return "in time"

    @tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "never"

    assert (await answer(quick, timeout=0.01))[0].message.content == "in time"
    assert (await answer(slow, timeout=5))[0].message.content == "'slow' timed out after 0.01 s"


async def test_a_result_that_comes_during_the_clean_up_of_a_timeout_is_not_taken() -> None:
    async def late() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "too late"
        return "slept"

    assert (await answer(late, timeout=0.01))[0].message.content == "'late' timed out after 0.01 s"


async def test_a_call_that_ignores_its_timeout_is_left_behind_and_said_so(
    short_grace: None, caplog: pytest.LogCaptureFixture
) -> None:
    release = asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    result = (await answer(deaf, timeout=0.01))[0]
    release.set()

    assert result.message.content == "'deaf' timed out after 0.01 s and did not stop; it may still be at work"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_a_blocking_tool_that_hangs_is_reported_and_frees_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool = ThreadPool(1)
    monkeypatch.setattr(threads, "_pool", pool)
    release = threading.Event()

    def hang() -> None:
        release.wait(10)

    result = (await answer(hang, timeout=0.02))[0]
    after = (await answer(lambda_named("quick", lambda: "quick")))[0]
    release.set()

    assert result.message.content == (
        "'hang' timed out after 0.02 s; what it does in its thread cannot be stopped and may still be at work"
    )
    assert after.message.content == "quick"
    assert pool.taken == 1
    assert "its thread is left to itself" in caplog.text


def lambda_named(name: str, function: Callable[[], Any]) -> Tool:
    return tool(function, name=name)


async def test_a_cancelled_run_does_not_wait_for_a_blocking_tool() -> None:
    started, release = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        release.wait(10)

    run = asyncio.create_task(answer(hang))
    await run_in_thread(started.wait, 5)
    begin = time.perf_counter()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert time.perf_counter() - begin < 1
    release.set()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, type("Signal", (BaseException,), {})])
@pytest.mark.parametrize("blocking", [False, True])
async def test_what_is_no_exception_ends_the_batch_after_the_others_were_stopped(
    kind: type[BaseException], blocking: bool
) -> None:
    log: list[str] = []
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("cleaned up")

    async def leave() -> None:
        await started.wait()
        raise kind("now")

    def leave_blocking() -> None:
        asyncio.run_coroutine_threadsafe(started.wait(), loop).result(5)
        raise kind("now")

    tools = as_tools([wait, tool(leave_blocking if blocking else leave, name="leave")])
    calls = [ToolCall("c1", "wait", {}), ToolCall("c2", "wait", {}), ToolCall("c3", "leave", {})]
    with pytest.raises(kind, match="now"):
        await answer_calls(calls, tools, ToolRun())
    assert log == ["cleaned up"] * 2
    with pytest.raises(kind, match="now"):
        await answer_calls([calls[2]], tools, ToolRun())


async def test_a_panic_of_native_code_is_the_tools_error() -> None:
    panic = type("PanicException", (BaseException,), {})

    async def broken() -> None:
        raise panic("index out of bounds")

    assert (await answer(broken))[0].message.content == "PanicException: index out of bounds"


async def test_no_more_calls_than_allowed_run_at_once() -> None:
    at_work, most = 0, 0
    enough = asyncio.Event()

    async def work() -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if at_work == 4:
            enough.set()
        await enough.wait()
        await asyncio.sleep(0)
        at_work -= 1
        return "done"

    results = await answer(work, 13, parallel=4)

    assert len(results) == 13
    assert all(result.success for result in results)
    assert most == 4


async def test_forty_blocking_calls_run_thirty_two_at_a_time() -> None:
    lock = threading.Lock()
    full = threading.Event()
    at_work, most = 0, 0

    def work() -> str:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
            if at_work == 32:
                full.set()
        full.wait(5)
        with lock:
            at_work -= 1
        return "done"

    results = await answer(work, 40)

    assert [result.message.content for result in results] == ["done"] * 40
    assert most == 32


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_sees_the_callers_context_variables_and_its_changes_stay_inside(
    blocking: bool, count: int
) -> None:
    def read_and_change() -> str:
        seen = word.get()
        word.set("changed")
        return f"{seen} {threading.current_thread() is threading.main_thread()}"

    async def on_loop() -> str:
        return read_and_change()

    token = word.set("caller")
    try:
        results = await answer(tool(read_and_change if blocking else on_loop, name="look"), count)
        assert [result.message.content for result in results] == [f"caller {not blocking}"] * count
        assert word.get() == "caller"
    finally:
        word.reset(token)


async def test_a_blocking_tool_does_not_block_the_loop() -> None:
    release = threading.Event()
    ticks = 0

    def wait() -> str:
        return "released" if release.wait(5) else "gave up"

    run = asyncio.create_task(answer(wait))
    while ticks < 20:
        await asyncio.sleep(0)
        ticks += 1
    release.set()

    assert (await run)[0].message.content == "released"


async def test_without_a_timeout_no_timer_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    real = loop.call_later

    def call_later(delay: float, *args: Any, **kwargs: Any) -> Any:
        timers.append(delay)
        return real(delay, *args, **kwargs)

    monkeypatch.setattr(loop, "call_later", call_later)
    event = asyncio.Event()

    async def wait() -> str:
        await event.wait()
        return "done"

    run = asyncio.create_task(answer(wait))
    await asyncio.sleep(0)
    event.set()

    assert (await run)[0].success
    assert timers == []
    await answer(wait, timeout=3)
    assert timers in ([], [3])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks cannot start eagerly here")
@pytest.mark.may_skip("an older Python has no eager tasks")
async def test_a_call_that_never_waits_is_answered_without_a_turn_of_the_loop() -> None:
    turns: list[int] = []

    async def quick() -> str:
        return "quick"

    asyncio.get_running_loop().call_soon(turns.append, 1)

    assert (await answer(quick))[0].message.content == "quick"
    assert turns == []


async def test_the_default_pool_of_asyncio_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("the default pool was used")

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", refuse)

    def work() -> str:
        return "done"

    assert (await answer(work))[0].message.content == "done"


async def test_a_tool_of_a_class_of_its_own_runs() -> None:
    class Echo(Tool):
        spec = ToolSpec(name="echo")

        def validate(self, args: dict[str, Any]) -> dict[str, Any]:
            return args

        async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
            return {"id": call.id, "config": config}

    result = (await answer(Echo(), config={"tags": ["t"]}))[0]

    assert result.message.content == '{"id": "c0", "config": {"tags": ["t"]}}'


def test_a_hung_blocking_tool_does_not_keep_the_interpreter_from_ending() -> None:
    code = """
import asyncio, threading
from graphwright.tools import ToolRun, answer_calls, as_tools
from graphwright.types import ToolCall

def hang() -> None:
    threading.Event().wait()

async def main():
    results = await answer_calls([ToolCall("c1", "hang", {})], as_tools([hang]), ToolRun(timeout=0.1))
    print(results[0].message.status)

asyncio.run(main())
"""
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": src}, capture_output=True, text=True, timeout=15
    )

    assert (done.stdout, done.returncode) == ("error\n", 0)
