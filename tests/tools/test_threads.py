from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphwright._internal.threads import ThreadPool, run_in_thread

_SRC = str(Path(__file__).parents[2] / "src")


async def test_a_call_runs_in_a_daemon_thread_that_is_not_the_loops_and_its_value_comes_back() -> None:
    thread, total = await run_in_thread(lambda a, b: (threading.current_thread(), a + b), 2, 3)

    assert thread is not threading.current_thread()
    assert thread.daemon
    assert total == 5


async def test_what_the_call_raises_reaches_the_caller_even_where_a_future_could_not_hold_it() -> None:
    def stop() -> None:
        raise StopIteration("at the end")

    def leave() -> None:
        raise SystemExit(3)

    caught: list[BaseException] = []
    for function in (stop, leave):
        try:
            await run_in_thread(function)
        except RuntimeError as error:  # what Python makes of a StopIteration that leaves a coroutine
            caught.append(error.__cause__ or error)
        except SystemExit as error:
            caught.append(error)

    assert [type(error) for error in caught] == [StopIteration, SystemExit]


async def test_the_thread_sees_the_callers_context_variables_and_keeps_its_own_changes() -> None:
    word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="unset")
    word.set("caller")

    def read_and_change() -> str:
        seen = word.get()
        word.set("thread")
        return seen

    assert await run_in_thread(read_and_change) == "caller"
    assert word.get() == "caller"


async def test_calls_one_after_another_share_one_thread() -> None:
    pool = ThreadPool(4)

    names = {await pool.run(threading.get_ident) for _ in range(20)}

    assert len(names) == 1
    assert pool.taken == 1


async def test_an_idle_thread_ends_after_a_while() -> None:
    pool = ThreadPool(4, idle_seconds=0.01)
    thread = await pool.run(threading.current_thread)

    await run_in_thread(thread.join, 5)

    assert not thread.is_alive()
    assert pool.taken == 0


async def test_no_more_threads_than_the_limit_work_at_once_and_every_call_gets_its_turn() -> None:
    pool = ThreadPool(3)
    lock = threading.Lock()
    gate = threading.Event()
    at_work, most = 0, 0

    def work(number: int) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
            if at_work == 3:
                gate.set()
        gate.wait(5)
        with lock:
            at_work -= 1
        return number

    results = await asyncio.gather(*(pool.run(work, number) for number in range(12)))

    assert results == list(range(12))
    assert most == 3


async def test_an_abandoned_thread_frees_its_place_at_once() -> None:
    pool = ThreadPool(1)
    hung, release = threading.Event(), threading.Event()

    def hang() -> None:
        hung.set()
        release.wait(10)

    stuck = asyncio.create_task(pool.run(hang))
    await run_in_thread(hung.wait, 5)
    waiting = asyncio.create_task(pool.run(threading.get_ident))
    await asyncio.sleep(0)
    assert not waiting.done()

    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck

    assert await asyncio.wait_for(waiting, 5)
    assert pool.taken == 1
    release.set()


async def test_a_call_that_is_cancelled_before_it_got_a_thread_never_runs() -> None:
    pool = ThreadPool(1)
    hung, release = threading.Event(), threading.Event()
    ran: list[str] = []
    first = asyncio.create_task(pool.run(lambda: (hung.set(), release.wait(10))))
    await run_in_thread(hung.wait, 5)
    second = asyncio.create_task(pool.run(ran.append, "second"))
    third = asyncio.create_task(pool.run(ran.append, "third"))
    await asyncio.sleep(0)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    await asyncio.gather(first, third)

    assert ran == ["third"]


async def test_calls_from_inside_a_worker_never_wait_for_the_place_that_waits_for_them() -> None:
    pool = ThreadPool(1)

    def outer() -> str:
        return asyncio.run(inner())

    async def inner() -> str:
        return await pool.run(lambda: "inner")

    assert await asyncio.wait_for(pool.run(outer), 5) == "inner"
    assert pool.taken == 1


def test_a_result_for_a_closed_loop_is_dropped_and_the_thread_goes_on() -> None:
    pool = ThreadPool(1)
    started, release = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def slow() -> None:
        threads.append(threading.current_thread())
        started.set()
        release.wait(10)

    async def leave_it() -> None:
        task = asyncio.ensure_future(pool.run(slow))
        await run_in_thread(started.wait, 5)
        assert not task.done()

    asyncio.run(leave_it())
    release.set()
    threads[0].join(5)

    assert not threads[0].is_alive()
    assert asyncio.run(pool.run(lambda: "still works")) == "still works"


def test_a_hung_thread_does_not_keep_the_interpreter_from_ending() -> None:
    code = """
import asyncio, threading
from graphwright._internal.threads import run_in_thread

async def main():
    try:
        await asyncio.wait_for(run_in_thread(threading.Event().wait), 0.05)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": _SRC}, capture_output=True, text=True, timeout=15
    )

    assert (done.stdout, done.stderr, done.returncode) == ("given up\n", "", 0)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork here")
@pytest.mark.may_skip("there is no fork on this platform")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    code = """
import asyncio, os, warnings
from graphwright._internal.threads import run_in_thread
warnings.simplefilter("ignore", DeprecationWarning)
asyncio.run(run_in_thread(len, "abc"))
child = os.fork()
if child == 0:
    os._exit(asyncio.run(run_in_thread(len, "abcd")))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": _SRC}, capture_output=True, text=True, timeout=15
    )

    assert (done.stdout, done.stderr) == ("4\n", "")
