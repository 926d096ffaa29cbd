"""Handlers inside the process: functions, the queue, the terminal."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest

from graphwright.approval import (
    ApprovalDecision,
    ApprovalRequest,
    CallbackApprovalHandler,
    ConsoleApprovalHandler,
    QueueApprovalHandler,
)
from graphwright.exceptions import ConfigurationError, GraphwrightError, InterruptError


def request(name: str = "rm", **arguments: Any) -> ApprovalRequest:
    return ApprovalRequest(tool_name=name, arguments=arguments)


async def test_a_plain_function_may_block_and_an_async_one_runs_on_the_loop() -> None:
    here = threading.get_ident()
    seen: list[bool] = []

    def blocking(asked: ApprovalRequest) -> bool:
        seen.append(threading.get_ident() == here)
        return asked.tool_name == "rm"

    async def on_loop(asked: ApprovalRequest) -> bool:
        seen.append(threading.get_ident() == here)
        return False

    class Called:
        async def __call__(self, asked: ApprovalRequest) -> bool:
            seen.append(threading.get_ident() == here)
            return True

    answers = [
        await CallbackApprovalHandler(each).request_approval(request()) for each in (blocking, on_loop, Called())
    ]

    assert answers == [True, False, True]
    assert seen == [False, True, True]


async def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later() -> bool:
        return True

    assert await CallbackApprovalHandler(lambda asked: later()).request_approval(request()) is True


async def test_the_queue_hands_requests_out_in_order_and_takes_decisions_from_any_thread() -> None:
    queue = QueueApprovalHandler()
    reading = asyncio.create_task(queue.next_request())
    await asyncio.sleep(0)
    first, second = request("a"), request("b")
    waiting = [asyncio.create_task(queue.request_approval(each)) for each in (first, second)]

    assert await reading is first
    assert await queue.next_request() is second
    assert queue.pending == [first, second]

    thread = threading.Thread(target=queue.submit_decision, args=(second.request_id, False))
    thread.start()
    thread.join()
    queue.submit_decision(first.request_id, ApprovalDecision(True, reviewer_id="ann"))

    assert await asyncio.gather(*waiting) == [ApprovalDecision(True, reviewer_id="ann"), ApprovalDecision(False)]
    assert queue.pending == []


async def test_a_decision_that_nobody_waits_for_is_refused() -> None:
    queue = QueueApprovalHandler()
    asked = request()
    waiting = asyncio.create_task(queue.request_approval(asked))
    await queue.next_request()

    with pytest.raises(InterruptError, match="no decision on a tool call"):
        queue.submit_decision(asked.request_id, "yes")  # type: ignore[arg-type]
    queue.submit_decision(asked.request_id, True)
    with pytest.raises(InterruptError, match="no request"):
        queue.submit_decision(asked.request_id, False)

    assert (await waiting).approved is True


async def test_a_request_that_ran_out_of_time_leaves_the_queue() -> None:
    queue = QueueApprovalHandler(maxsize=1)
    waiting = asyncio.create_task(queue.request_approval(request("old")))
    await asyncio.sleep(0)
    with pytest.raises(GraphwrightError, match="1 requests wait"):
        await queue.request_approval(request("too many"))

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    fresh = request("new")
    again = asyncio.create_task(queue.request_approval(fresh))

    assert await queue.next_request() is fresh
    queue.submit_decision(fresh.request_id, True)
    await again


async def test_a_reader_that_gives_up_takes_no_request_with_it() -> None:
    queue = QueueApprovalHandler()
    gone = asyncio.create_task(queue.next_request())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    asked = request()
    waiting = asyncio.create_task(queue.request_approval(asked))

    assert await queue.next_request() is asked
    queue.submit_decision(asked.request_id, True)
    await waiting


@pytest.mark.parametrize("maxsize", [0, True, "9"])
def test_a_queue_has_a_size(maxsize: Any) -> None:
    with pytest.raises(ConfigurationError, match="maxsize"):
        QueueApprovalHandler(maxsize)


@pytest.mark.parametrize(
    ("typed", "approved", "reason"),
    [
        ("y\n", True, None),
        (" YES \n", True, None),
        ("\n", False, None),
        ("n\n", False, None),
        ("yess\n", False, "yess"),
        ("use another\n", False, "use another"),
    ],
)
async def test_the_terminal_approves_on_a_clear_yes_only(typed: str, approved: bool, reason: str | None) -> None:
    shown = io.StringIO()

    decision = await ConsoleApprovalHandler(input=io.StringIO(typed), output=shown).request_approval(
        request(path="\x1b[2J\u202egnp.exe")
    )

    assert (decision.approved, decision.reason) == (approved, reason)
    assert "'rm' wants to run with" in shown.getvalue()
    assert "\x1b" not in shown.getvalue()
    assert shown.getvalue().isascii()


async def test_a_terminal_that_has_ended_approves_nothing() -> None:
    with pytest.raises(GraphwrightError, match="the input has ended"):
        await ConsoleApprovalHandler(input=io.StringIO(""), output=io.StringIO()).request_approval(request())


class Typing(io.StringIO):
    """A terminal at which somebody types when the test says so."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = list(lines)
        self.reading = threading.Event()
        self.typed = threading.Event()

    def readline(self, size: int = -1, /) -> str:
        self.reading.set()
        assert self.typed.wait(10)
        return self.lines.pop(0)


async def test_a_late_yes_does_not_answer_the_next_question() -> None:
    source, shown = Typing("y\n", "n\n"), io.StringIO()
    handler = ConsoleApprovalHandler(input=source, output=shown)
    first = asyncio.create_task(handler.request_approval(request("first")))
    await asyncio.to_thread(source.reading.wait, 10)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(handler.request_approval(request("second")))
    await asyncio.sleep(0)
    source.typed.set()

    decision = await second

    assert decision.approved is False
    assert "your answer counts for nothing" in shown.getvalue()


async def test_a_question_that_ran_out_of_time_before_its_turn_is_never_asked() -> None:
    source, shown = Typing("n\n", "y\n"), io.StringIO()
    handler = ConsoleApprovalHandler(input=source, output=shown)
    first = asyncio.create_task(handler.request_approval(request("first")))
    await asyncio.to_thread(source.reading.wait, 10)
    second = asyncio.create_task(handler.request_approval(request("second")))
    await asyncio.sleep(0.02)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(handler.request_approval(request("third")))
    await asyncio.sleep(0.02)
    source.typed.set()

    assert [(await first).approved, (await third).approved] == [False, True]
    assert "'second'" not in shown.getvalue()
