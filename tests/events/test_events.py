from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphwright import CallerContext, build_agent
from graphwright._internal import clock
from graphwright._internal.posting import signature_of
from graphwright.events import AgentEvent, CallbackSink, EventBusSink, EventNotifier, EventSink, LogSink, WebhookSink
from graphwright.exceptions import ConfigurationError, GraphExecutionError, RunTimeoutError
from graphwright.testing import ScriptedModel, calls, says


class Kept:
    """A notifier whose events are kept."""

    def __init__(self, **options: Any) -> None:
        self.events: list[AgentEvent] = []
        self.notifier = EventNotifier([CallbackSink(self.events.append)], **options)

    @property
    def types(self) -> list[str]:
        return [event.event_type for event in self.events]

    def one(self, event_type: str) -> AgentEvent:
        (found,) = [event for event in self.events if event.event_type == event_type]
        return found


async def test_a_run_is_told_of_with_its_caller_and_session() -> None:
    kept = Kept()
    agent = await build_agent(model=ScriptedModel([says("hi")]), events=kept.notifier, observer_agent_id="helper")

    result = await agent.ainvoke("go", caller=CallerContext("ann", "acme"), session_id="s1")
    await agent.shutdown()

    assert kept.types == ["invocation.start", "invocation.complete"]
    done = kept.events[1]
    assert (done.agent_id, done.user_id, done.session_id) == ("helper", "acme::ann", "s1")
    assert done.metadata == {"run_id": result.run_id}
    assert done.data["duration_ms"] > 0


async def test_failing_and_slow_tools_are_told_of_without_credentials() -> None:
    def bad(api_key: str) -> str:
        """Fail."""
        raise ValueError("no")

    async def slow() -> str:
        """Take a little time."""
        await asyncio.sleep(0.02)
        return "ok"

    kept = Kept(slow_tool_threshold=0.01)
    model = ScriptedModel([calls("bad", api_key="k"), calls("slow"), says("done")])
    agent = await build_agent(model=model, extra_tools=[bad, slow], events=kept.notifier)
    await agent.ainvoke("go")
    await agent.shutdown()

    assert kept.types == ["invocation.start", "tool.error", "tool.slow", "invocation.complete"]
    assert kept.one("tool.error").data["tool"] == "bad"
    assert kept.one("tool.slow").data["tool"] == "slow"
    assert kept.one("tool.slow").data["duration_ms"] >= 10


async def test_the_end_of_a_run_says_why() -> None:
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    failed = Kept()
    agent = await build_agent(
        model=ScriptedModel([RuntimeError("down password=hunter2hunter2")]), events=failed.notifier
    )
    with pytest.raises(GraphExecutionError):
        await agent.ainvoke("go")
    await agent.shutdown()
    assert failed.types == ["invocation.start", "invocation.error"]
    assert "hunter2" not in failed.events[1].data["error"]
    assert failed.events[1].severity == "error"

    late = Kept()
    agent = await build_agent(
        model=ScriptedModel([calls("wait")]), extra_tools=[wait], events=late.notifier, max_invocation_time=0.05
    )
    with pytest.raises(RunTimeoutError):
        await agent.ainvoke("go")
    await agent.shutdown()
    assert late.types == ["invocation.start", "invocation.timeout"]


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_is_told_of_when_it_is_asked_for_and_when_it_is_given(tmp_path: Any, approved: bool) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    kept = Kept()
    model = ScriptedModel([calls("pay"), says("done")])
    agent = await build_agent(
        model=model, extra_tools=[pay], approval=["pay"], runlog=tmp_path / "r.db", events=kept.notifier
    )
    paused = await agent.ainvoke("go", session_id="s")
    await agent.resume("s", {paused.pending[0].id: approved}, by="eve")
    await agent.shutdown()

    assert kept.types == [
        "invocation.start",
        "approval.requested",
        "invocation.paused",
        "invocation.start",
        "approval.granted" if approved else "approval.denied",
        "invocation.complete",
    ]


async def test_guards_and_the_cache_are_told_of() -> None:
    class NoSecrets:
        name = "no secrets"

        async def check_input(self, text: str) -> Any:
            return None if "bad" in text else text

    kept = Kept()
    model = ScriptedModel([says("hi"), says("again")])
    agent = await build_agent(model=model, events=kept.notifier, cache=True)
    for _ in range(2):
        await agent.ainvoke("hello", caller=CallerContext("ann"))
    await agent.shutdown()
    assert kept.types == [
        "invocation.start", "cache.miss", "invocation.complete",
        "invocation.start", "cache.hit", "invocation.complete",
    ]  # fmt: skip


async def test_a_sink_that_hangs_or_fails_keeps_neither_the_others_nor_the_run_waiting() -> None:
    class Hangs(EventSink):
        name = "hangs"

        async def deliver(self, event: AgentEvent) -> None:
            await asyncio.Event().wait()

    class Fails(EventSink):
        name = "fails"

        async def deliver(self, event: AgentEvent) -> None:
            raise TimeoutError("no")

        async def close(self) -> None:
            raise ValueError("no")

    seen: list[str] = []
    good = CallbackSink(lambda event: seen.append(event.event_type))
    notifier = EventNotifier([Hangs(), Fails(), good], shutdown_timeout=0.05)
    agent = await build_agent(model=ScriptedModel([says("hi")]), events=notifier)
    assert (await agent.ainvoke("go")).text == "hi"

    delivery = await notifier.stop()

    assert seen == ["invocation.start", "invocation.complete"]
    assert {name: len(events) for name, events in delivery.undelivered.items()} == {"hangs": 2, "fails": 2}
    assert not delivery.complete
    assert not await notifier.emit(AgentEvent(event_type="late"))


async def test_a_full_queue_refuses_what_is_new_and_the_account_says_so() -> None:
    kept = Kept(max_queue_size=2)
    taken = [kept.notifier.emit_sync(AgentEvent(event_type=f"e{number}")) for number in range(5)]
    assert taken == [True, True, False, False, False]

    delivery = await kept.notifier.stop()

    assert kept.types == ["e0", "e1"]
    assert delivery.undelivered == {}
    assert delivery.refused == {"callback": 3}


def test_events_of_loops_that_are_gone_are_delivered_later() -> None:
    kept = Kept()

    async def tell(event_type: str) -> None:
        kept.notifier.emit_sync(AgentEvent(event_type=event_type))

    asyncio.run(tell("first"))
    kept.notifier.emit_sync(AgentEvent(event_type="from no loop"))
    asyncio.run(_stop(kept.notifier))
    assert kept.types == ["first", "from no loop"]


async def _stop(notifier: EventNotifier) -> None:
    assert (await notifier.stop()).complete


async def test_events_from_other_threads_are_delivered_in_the_loop_of_the_worker() -> None:
    kept = Kept()
    kept.notifier.emit_sync(AgentEvent(event_type="here"))
    await kept.notifier.flush()
    thread = threading.Thread(target=lambda: kept.notifier.emit_sync(AgentEvent(event_type="there")))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert await kept.notifier.flush(5.0)
    assert kept.types == ["here", "there"]


async def test_a_log_and_a_bus_get_the_events_they_want(caplog: Any) -> None:
    class Bus:
        def __init__(self) -> None:
            self.got: list[tuple[str, Any]] = []

        async def publish(self, topic: str, event: Any) -> None:
            self.got.append((topic, event["data"]))

    bus = Bus()
    notifier = EventNotifier([LogSink(events=["tool.*"]), EventBusSink(bus, prefix="agents.")])
    with caplog.at_level(logging.INFO, logger="graphwright.events"):
        await notifier.emit(AgentEvent(event_type="tool.error", severity="error", data={"tool": "x\ny"}))
        await notifier.emit(AgentEvent(event_type="cache.hit"))
        await notifier.flush()

    (line,) = [record for record in caplog.records if record.name == "graphwright.events"]
    assert (line.levelno, line.getMessage()) == (logging.ERROR, "event=tool.error agent= user=None tool='x\\ny'")
    assert bus.got == [("agents.tool.error", {"tool": "x\ny"}), ("agents.cache.hit", {})]


@pytest.fixture
def receiver() -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))  # type: ignore[attr-defined]
            self.send_response(server.answers.pop(0) if server.answers else 204)  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.answers = [], []  # type: ignore[attr-defined]
    server.url = f"http://127.0.0.1:{server.server_address[1]}/hook"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_webhook_is_signed_and_tried_again_under_one_id(receiver: Any, monkeypatch: Any) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(clock, "sleep", sleep)
    receiver.answers = [503, 429]
    sink = WebhookSink(receiver.url, secret="s3cret", allow_private_networks=True)
    notifier = EventNotifier([sink])
    event = AgentEvent(event_type="tool.error", data={"tool": "x"})
    await notifier.emit(event)
    assert (await notifier.stop()).complete

    assert waits == [0.5, 1.0]
    assert len(receiver.got) == 3
    for headers, body in receiver.got:
        message_id, timestamp = headers["X-Webhook-Id"], headers["X-Webhook-Timestamp"]
        assert message_id == event.event_id
        expected = signature_of("s3cret", message_id=message_id, timestamp=timestamp, body=body)
        assert headers["X-Webhook-Signature"] == expected
        assert json.loads(body) == event.to_dict()


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (302, 1), (500, 2)])
async def test_what_a_webhook_does_not_take_is_reported(
    receiver: Any, monkeypatch: Any, status: int, tries: int
) -> None:
    async def sleep(seconds: float) -> None:
        return None

    monkeypatch.setattr(clock, "sleep", sleep)
    receiver.answers = [status] * 10
    notifier = EventNotifier([WebhookSink(receiver.url, attempts=2, allow_private_networks=True)])
    await notifier.emit(AgentEvent(event_type="x"))
    delivery = await notifier.stop()
    assert [event.event_type for event in delivery.undelivered["webhook"]] == ["x"]
    assert len(receiver.got) == tries


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]"])
async def test_a_private_address_is_refused_without_being_asked(host: str) -> None:
    notifier = EventNotifier([WebhookSink(f"http://{host}:9/", attempts=3)])
    await notifier.emit(AgentEvent(event_type="x"))
    assert len((await notifier.stop()).undelivered["webhook"]) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EventNotifier(["x"]), "sink is 'x'"),
        (lambda: EventNotifier(max_queue_size=0), "max_queue_size is 0"),
        (lambda: EventNotifier(slow_tool_threshold=-1), "slow_tool_threshold is -1"),
        (lambda: AgentEvent(event_type=""), "event_type is ''"),
        (lambda: AgentEvent(event_type="x", severity="bad"), "severity is 'bad'"),
        (lambda: WebhookSink("ftp://x"), "url is 'ftp://x'"),
        (lambda: WebhookSink("http://a:b@x"), "user name or password"),
        (lambda: WebhookSink("http://x", secret=""), "secret is empty"),
        (lambda: CallbackSink("x"), "callback is 'x'"),
        (lambda: EventBusSink(object()), "bus is"),
        (lambda: LogSink(events="tool.*"), "give a list of patterns"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


async def test_a_sink_that_flushes_its_own_notifier_does_not_wait_for_itself() -> None:
    answers: list[bool] = []

    async def flush(event: AgentEvent) -> None:
        answers.append(await notifier.flush())

    notifier = EventNotifier([CallbackSink(flush)])
    await notifier.emit(AgentEvent(event_type="x"))
    assert await notifier.flush(5.0)
    assert answers == [False]


async def test_a_sink_does_not_run_as_the_caller_whose_event_came_first() -> None:
    from graphwright.caller import get_current_caller

    callers: list[Any] = []

    async def look_up() -> str:
        """Report from inside the run."""
        notifier.emit_sync(AgentEvent(event_type="own"))
        return "ok"

    notifier = EventNotifier([CallbackSink(lambda event: callers.append(get_current_caller()), events=["own"])])
    agent = await build_agent(model=ScriptedModel([calls("look_up"), says("done")]), extra_tools=[look_up])
    await agent.ainvoke("go", caller=CallerContext("ann"))
    await notifier.stop()
    assert callers == [None]
