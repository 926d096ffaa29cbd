"""How the bot runs tools: in parallel, in time, past errors, and with calls that no provider should have sent."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool as langchain_tool
from tests.models.conftest import provider as provider
from tests.models.test_agents_on_real_clients import ending, model_for
from tests.orchestrator._bots import (
    bot_of,
    events_of,
    no_waiting,
    rate_limited,
    read,
    results_in,
    shown_text,
    state_of,
    updates_of,
)

from graphwright import OrchestratorBot
from graphwright.messages import text_of
from graphwright.models.adapters import LangChainModel
from graphwright.testing import ScriptedModel, call, calls, calls_many, malformed, raises, says, truncated
from graphwright.usage import Usage


def named(name: str, body: Any) -> Any:
    body.__name__ = body.__qualname__ = name
    body.__doc__ = f"Do {name}."
    return body


def bare(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["tool_name"], record["status"], record["output"]


async def test_results_come_back_in_the_order_asked_whatever_ends_first() -> None:
    inputs = set()
    for _ in range(20):
        spans = {}
        gates = {name: asyncio.Event() for name in "abc"}

        def make(name: str, spans: Any = spans, gates: Any = gates) -> Any:
            async def work() -> str:
                spans[name] = len(spans)
                if len(spans) == 3:
                    gates["b"].set()
                await gates[name].wait()
                after = {"b": "c", "c": "a", "a": "a"}[name]
                gates[after].set()
                return name.upper()

            return named(name, work)

        model = ScriptedModel(
            [calls_many(call("a").with_id("c1"), call("b").with_id("c2"), call("c").with_id("c3")), "ok"]
        )
        bot = bot_of(model, [make("a"), make("b"), make("c")])

        result = await bot.arun("go")

        assert [record["output"] for record in result.tools_executed] == ["A", "B", "C"]
        inputs.add(repr(model.inputs[1]))
        assert [entry[0] for entry in results_in(model.inputs[1])] == ["c1", "c2", "c3"]
    assert len(inputs) == 1


async def test_one_failing_call_of_three_leaves_the_others_alone() -> None:
    async def a() -> str:
        """A."""
        return "A"

    async def b() -> str:
        """B."""
        raise ValueError("bad id")

    async def c() -> str:
        """C."""
        return "C"

    model = ScriptedModel([calls_many(*(call(name).with_id(name) for name in "abc")), says("fine")])
    items = await read(bot_of(model, [a, b, c]).astream_events("go", mode="auto"))

    (first, second, third) = results_in(model.inputs[1])
    assert (first, third) == (("a", "A", "success"), ("c", "C", "success"))
    assert second[2] == "error"
    assert "bad id" in second[1]
    assert __file__ not in second[1]
    assert "Traceback" not in second[1]
    records = updates_of(items, "tools")[0]["tools_executed"]
    assert [(record["tool_name"], record["status"]) for record in records] == [
        ("a", "success"),
        ("b", "error"),
        ("c", "success"),
    ]
    assert updates_of(items, "agent")[-1]["final_report"] == "fine"


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (2, 2), (8, 4)])
async def test_no_more_calls_run_at_once_than_allowed(parallel: int, most: int) -> None:
    at_work, seen = 0, []

    async def work() -> str:
        """Work."""
        nonlocal at_work
        at_work += 1
        seen.append(at_work)
        for _ in range(3):
            await asyncio.sleep(0)
        at_work -= 1
        return "done"

    bot = bot_of([calls_many(*(call("work") for _ in range(4))), says("x")], [work], max_parallel_tools=parallel)
    await bot.arun("go")

    assert max(seen) == most


async def test_a_hung_sync_tool_ends_in_time_and_its_late_result_is_unknown_not_a_failure_to_retry() -> None:
    """2.4, 2.5: the effect may still land, so the model is told that the outcome is unknown."""
    let_go, landed = threading.Event(), threading.Event()

    def hang() -> str:
        """Hang."""
        let_go.wait(10)
        landed.set()
        return "late"

    model = ScriptedModel([calls("hang"), says("moving on")])
    bot = bot_of(model, [hang], tool_timeout_s=0.05)

    result = await bot.arun("go", thread_id="t")

    try:
        assert result.content == "moving on"
        record = result.tools_executed[0]
        assert record["status"] == "unknown"
        told = results_in(model.inputs[1])[0]
        assert told[2] == "error"
        assert "0.05 s" in told[1]
        assert "may still be at work" in told[1]
    finally:
        let_go.set()
        landed.wait(10)
    assert "late" not in str(state_of(bot, "t"))


async def test_hung_sync_tools_of_one_run_do_not_hold_up_another() -> None:
    """2.6, 2.7: hung threads occupy nothing that other runs need."""
    let_go = threading.Event()

    def hang() -> str:
        """Hang."""
        let_go.wait(10)
        return ""

    def quick() -> str:
        """Be quick."""
        return "quick"

    bot = bot_of(
        [calls_many(*(call("hang") for _ in range(12))), says("a")], [hang], tool_timeout_s=0.05, max_parallel_tools=12
    )
    other = bot_of([calls("quick"), says("b")], [quick])
    try:
        await bot.arun("go")
        began = time.perf_counter()
        result = await other.arun("go")
        assert result.tools_executed[0]["output"] == "quick"
        assert time.perf_counter() - began < 2
    finally:
        let_go.set()


def test_run_returns_while_a_hung_tool_hangs() -> None:
    """2.8."""
    let_go = threading.Event()

    def hang() -> str:
        """Hang."""
        let_go.wait(20)
        return ""

    began = time.perf_counter()
    try:
        assert bot_of([calls("hang"), says("on")], [hang], tool_timeout_s=0.05).run("go").content == "on"
        assert time.perf_counter() - began < 5
    finally:
        let_go.set()


async def test_an_async_tool_that_swallows_its_cancellation_is_no_success() -> None:
    """2.9."""

    async def stubborn() -> str:
        """Be stubborn."""
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "I did it anyway"
        return ""

    result = await bot_of([calls("stubborn"), says("x")], [stubborn], tool_timeout_s=0.02).arun("go")

    assert result.tools_executed[0]["status"] in ("error", "unknown")
    assert "I did it anyway" not in str(result)


async def test_the_text_of_an_error_is_told_and_not_its_secrets() -> None:
    """2.11."""

    async def leak() -> str:
        """Leak."""
        raise RuntimeError("login failed: password=hunter2-hunter2")

    model = ScriptedModel([calls("leak"), says("x")])
    result = await bot_of(model, [leak]).arun("go")

    assert result.tools_executed[0]["status"] == "error"
    assert "login failed" in result.tools_executed[0]["output"]
    assert "hunter2" not in str(result)
    assert results_in(model.inputs[1])[0][2] == "error"


async def test_a_tool_that_is_cancelled_from_inside_ends_only_its_call() -> None:
    async def gone() -> str:
        """Be gone."""
        raise asyncio.CancelledError

    result = await bot_of([calls("gone"), says("still here")], [gone]).arun("go")

    assert (result.content, result.tools_executed[0]["status"]) == ("still here", "error")


async def test_a_tool_that_ends_the_process_leaves_a_thread_that_goes_on() -> None:
    """2.12: an order to the process is obeyed; the calls it cut off are answered, and the bot works on."""

    async def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    bot = bot_of([calls_many(call("leave"), call("leave")), says("back")], [leave])

    with pytest.raises(SystemExit):
        await bot.arun("go", thread_id="t")

    state_of(bot, "t")
    assert (await bot.arun("again", thread_id="t")).content == "back"


async def test_arguments_that_do_not_fit_are_explained_and_nothing_runs() -> None:
    """2.13: also an argument that the tool does not have is told to the model."""
    ran = []

    async def add(a: int) -> str:
        """Add."""
        ran.append(a)
        return "x"

    model = ScriptedModel([calls_many(call("add"), call("add", a="one"), call("add", a=1, b=2)), says("x")])
    result = await bot_of(model, [add]).arun("go")

    assert [record["status"] for record in result.tools_executed] == ["error", "error", "error"]
    assert ran == []
    assert all("pydantic" not in text for _, text, _ in results_in(model.inputs[1]))


async def test_an_unknown_tool_is_answered_and_recorded() -> None:
    """2.14."""
    model = ScriptedModel([calls("nope"), says("x")])
    result = await bot_of(model, []).arun("go")

    assert [bare(record)[:2] for record in result.tools_executed] == [("nope", "error")]
    assert "nope" in results_in(model.inputs[1])[0][1]


async def test_calls_without_an_id_and_with_the_same_id_each_get_one_result() -> None:
    """2.15, 2.16: ids are made unique, so that a provider accepts the conversation."""
    ran = []

    async def add(a: int) -> str:
        """Add."""
        ran.append(a)
        return str(a)

    model = ScriptedModel(
        [
            calls_many(
                call("add", a=1).with_id("same"), call("add", a=2).with_id("same"), call("add", a=3).with_id(None)
            ),
            says("x"),
        ]
    )
    bot = bot_of(model, [add])
    await bot.arun("go", thread_id="t")

    ids = [entry[0] for entry in results_in(model.inputs[1])]
    assert sorted(ran) == [1, 2, 3]
    assert len(set(ids)) == 3
    assert all(ids)
    state_of(bot, "t")


@pytest.mark.parametrize("how", ["arun", "stream"])
@pytest.mark.parametrize("step", [truncated("note", '{"title": "sho'), malformed("note", '{"title": "sho')])
async def test_a_call_that_was_cut_off_is_never_run_with_what_is_left(how: str, step: Any) -> None:
    """2.17."""
    saved = []

    async def note(title: str = "default", body: str = "") -> str:
        """Save a note."""
        saved.append((title, body))
        return "saved"

    model = ScriptedModel([step, says("sorry")])
    bot = bot_of(model, [note])

    if how == "arun":
        records = (await bot.arun("go")).tools_executed
    else:
        records = updates_of(await read(bot.astream_events("go", mode="auto")), "tools")[0]["tools_executed"]

    assert saved == []
    assert [record["status"] for record in records] == ["error"]
    assert results_in(model.inputs[1])[0][2] == "error"


@pytest.mark.parametrize("transcript", ["openai_chat_truncated_tool_args", "anthropic_max_tokens_partial_tool"])
async def test_a_recorded_stream_that_is_cut_off_inside_a_call_runs_nothing(provider: Any, transcript: str) -> None:
    saved = []

    async def save_note(title: str, body: str = "") -> str:
        """Save a note."""
        saved.append((title, body))
        return "saved"

    provider.stream(transcript).stream(ending(transcript))
    bot = bot_of(model_for(transcript, provider.url), [save_note])
    items = await read(bot.astream_events("go", mode="auto"))

    assert saved == []
    assert [record["status"] for record in updates_of(items, "tools")[0]["tools_executed"]] == ["error"]
    assert updates_of(items, "agent")[-1]["final_report"]
    assert "cut off" in str(provider.requests[1])


async def test_a_huge_output_is_cut_in_records_and_the_model_gets_what_the_tool_gave() -> None:
    """2.17b: the trace stays small."""

    async def big() -> str:
        """Be big."""
        return "x" * 100_000

    result = await bot_of([calls("big"), says("x")], [big]).arun("go")

    assert len(result.tools_executed[0]["output"]) == 500
    assert len(str(result.node_trace)) < 3000


async def test_a_tool_that_asks_a_model_keeps_its_tokens_out_of_the_messages() -> None:
    """2.71: inner texts are not the answer."""
    inner = LangChainModel(_Chatty())

    async def ask_inner() -> str:
        """Ask."""
        from graphwright.models import call_model
        from graphwright.models.base import ModelRequest

        reply = await call_model(inner, ModelRequest(messages=[AIMessage("hi")]))
        return "inner said " + reply.text

    items = await read(bot_of([calls("ask_inner"), says("outer")], [ask_inner]).astream_events("go", mode="auto"))

    assert shown_text(items) == "outer"


class _Chatty:
    """Counts for a chat model."""

    async def ainvoke(self, messages: Any, config: Any = None, **_: Any) -> AIMessage:
        return AIMessage("chatter")


async def test_each_text_is_delivered_once() -> None:
    """2.1, 2.58: no whole message follows its own pieces; a text that is void is said to be."""
    items = await read(bot_of([says("one two three")]).astream_events("go"))

    assert shown_text(items) == "one two three"
    assert [type(payload[0]).__name__ for mode, payload in items if mode == "messages"] == ["AIMessageChunk"] * 3


async def test_a_message_that_was_not_streamed_is_delivered_as_one() -> None:
    from graphwright.models.base import ModelCapabilities

    model = ScriptedModel([says("whole")], capabilities=ModelCapabilities(tools=True, streaming=False))
    items = await read(bot_of(model).astream_events("go"))

    assert shown_text(items) == "whole"


async def test_a_retry_is_told_before_the_wait_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.57: with the provider's own number of seconds, in an update of its own."""
    waits = no_waiting(monkeypatch)
    bot = bot_of([raises(rate_limited("2")), says("fine")])
    items: list[tuple[str, Any]] = []
    waits_then = []

    async for item in bot.astream_events("go"):
        items.append(item)
        if item[0] == "updates" and item[1].get("agent", {}).get("status_events"):
            waits_then.append(list(waits))

    retries = [event for update in updates_of(items, "agent") for event in update["status_events"]]
    assert [(event["type"], event["attempt"]) for event in retries] == [("retrying", 1)]
    assert waits_then == [[]]
    assert len(waits) == 1
    assert 2 <= waits[0] <= 3
    assert retries[0]["wait_s"] == round(waits[0], 1)
    place = next(i for i, item in enumerate(items) if item[1] == {"agent": {"status_events": retries}})
    assert [mode for mode, _ in items[:place]] == ["graph"]
    assert updates_of(items, "agent")[-1]["final_report"] == "fine"


async def test_an_attempt_that_broke_off_is_retracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.58."""
    no_waiting(monkeypatch)
    from graphwright.testing import raises_midstream

    items = await read(bot_of([raises_midstream("par tial", rate_limited()), says("done")]).astream_events("go"))

    kinds = [event["type"] for update in updates_of(items, "agent") for event in update["status_events"]]
    assert "warning" in kinds
    void = next(
        i
        for i, (mode, p) in enumerate(items)
        if mode == "updates"
        and p["agent"].get("status_events", [{}])[0:1]
        and p["agent"]["status_events"][0]["type"] == "warning"
    )
    assert shown_text(items[void:]) == "done"


@pytest.mark.parametrize("message", ["Failed to generate schema", "separate rated moderate"])
async def test_an_error_with_the_letters_of_a_rate_limit_is_no_rate_limit(message: str) -> None:
    """2.56, 2.59: the model is asked once, and the response says what was wrong."""
    model = ScriptedModel([raises(ValueError(message))])

    result = await bot_of(model).arun("go")

    assert len(model.inputs) == 1
    assert (result.success, result.status) == (False, "failed")
    assert message in result["error"]


async def test_a_stream_that_fails_raises_with_the_response_at_the_error() -> None:
    async def act() -> str:
        """Act."""
        return "acted"

    bot = bot_of([calls("act"), raises(ValueError("broken"))], [act])

    with pytest.raises(Exception, match="broken") as caught:
        await read(bot.astream_events("go", mode="auto"))

    response = caught.value.response  # type: ignore[attr-defined]
    assert (response.status, response.success) == ("failed", False)
    assert [bare(record) for record in response.tools_executed] == [("act", "success", "acted")]


async def test_cached_and_reasoning_tokens_are_told_apart_and_added_up_once() -> None:
    usage = Usage(100, 20, 120, cached_tokens=60, reasoning_tokens=7)
    steps = [calls_many(call("act"), usage=usage), says("x", usage=usage)]

    async def act() -> str:
        """Act."""
        return "acted"

    result = await bot_of(ScriptedModel(steps), [act]).arun("go")

    assert result.token_usage == {
        "prompt_tokens": 200,
        "completion_tokens": 40,
        "total_tokens": 240,
        "cached_tokens": 120,
        "reasoning_tokens": 14,
    }


@pytest.mark.parametrize("how", ["arun", "stream"])
async def test_thinking_in_front_of_the_text_is_not_the_answer(how: str) -> None:
    content: list[Any] = [
        {"type": "thinking", "thinking": "plan", "signature": "s"},
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": " you"},
    ]
    seen = []

    def guard(text: str) -> Any:
        from graphwright import GuardDecision

        seen.append(text)
        return GuardDecision.allow()

    bot = bot_of([AIMessage(content=content)], output_guards=[guard])
    if how == "arun":
        result = await bot.arun("go")
        assert (result.content, result.thinking) == ("Hello you", "plan")
    else:
        items = await read(bot.astream_events("go"))
        assert updates_of(items, "agent")[-1]["final_report"] == "Hello you"
        assert shown_text(items) == "Hello you"
        assert updates_of(items, "agent")[-1]["thinking"] == "plan"
    assert seen == ["Hello you"]


@pytest.mark.parametrize("inside", [True, False])
def test_a_runtime_error_of_the_user_is_not_taken_for_one_of_ours(inside: bool) -> None:
    """The coroutine runs once, inside and outside of a running loop."""
    ran = []

    def model(_: Any) -> Any:
        ran.append(1)
        raise RuntimeError("boom")

    bot = bot_of(ScriptedModel.answering(model))

    async def in_loop() -> Any:
        return bot.run("go")

    result = asyncio.run(in_loop()) if inside else bot.run("go")

    assert (result.status, ran) == ("failed", [1])
    assert "boom" in result["error"]


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
async def test_the_limit_of_node_executions_gives_a_response_that_holds_what_was_done(limit: int) -> None:
    """2.55: agent and tools count one each; the last result is never the answer."""

    async def act() -> str:
        """Act."""
        return "acted"

    model = ScriptedModel.answering(
        lambda messages: calls("act") if "stop" not in text_of(messages[-1]) else says("stopped")
    )
    bot = bot_of(model, [act], recursion_limit=limit)

    result = await bot.arun("go", thread_id="t")

    assert (result.status, result.success, len(result.node_trace)) == ("limit", False, limit)
    assert str(limit) in result.content
    assert "acted" not in result.content
    assert len(result.tools_executed) == limit // 2
    assert result.token_usage["total_tokens"] == 15 * len(model.inputs)
    state_of(bot, "t")
    follow_up = await bot.arun("stop", thread_id="t")
    assert follow_up.content == "stopped"


async def test_a_stream_at_the_limit_says_so() -> None:
    async def act() -> str:
        """Act."""
        return "acted"

    items = await read(
        bot_of(ScriptedModel.answering(lambda _: calls("act")), [act], recursion_limit=3).astream_events(
            "go", mode="auto"
        )
    )

    assert items[-1][0] == "graph"
    assert items[-1][1]["type"] == "limit_reached"
    assert items[-1][1]["limit"] == 3


async def test_an_empty_answer_is_never_filled_with_the_output_of_a_tool() -> None:
    """2.62, 2.38b: nor with the answer of the run before."""

    async def act() -> str:
        """Act."""
        return "raw tool output"

    from graphwright.testing import empty

    bot = bot_of(ScriptedModel([says("first answer"), calls("act"), empty()]), [act])
    await bot.arun("one", thread_id="t")

    result = await bot.arun("two", thread_id="t")

    assert (result.success, result.status) == (False, "failed")
    assert "raw tool output" not in result.content
    assert "first answer" not in result.content
    assert len(result.tools_executed) == 1


async def test_models_and_tools_that_only_look_alike_work() -> None:
    class Duck:
        bound: Any = None

        def bind_tools(self, tools: Any) -> Any:
            self.bound = tools
            return self

        async def astream(self, messages: Any) -> Any:
            if any(message.type == "tool" for message in messages):
                yield AIMessage("done")
            else:
                yield AIMessage("", tool_calls=[{"name": "quack", "args": {"n": 2}, "id": "q"}])

        async def ainvoke(self, messages: Any) -> Any:
            return [each async for each in self.astream(messages)][-1]

    class Quack:
        name = "quack"
        description = "Quack."
        args_schema = None

        async def ainvoke(self, args: dict[str, Any]) -> str:
            return "quack " * args["n"]

    @langchain_tool
    def other(x: int) -> str:
        """Do other things."""
        return str(x)

    model = Duck()
    bot = OrchestratorBot(SimpleNamespace(model=model), None, "x", [Quack(), other])

    result = await bot.arun("go")

    assert (result.content, result.tools_executed[0]["output"]) == ("done", "quack quack ")
    assert [entry["function"]["name"] for entry in model.bound] == ["quack", "other"]
    assert (await read(bot.astream_events("go", mode="auto")))[-1][1]["agent"]["final_report"] == "done"


async def test_secrets_in_arguments_are_in_no_record_trace_or_detail() -> None:
    """2.73."""

    async def login(user: str, password: str) -> str:
        """Log in."""
        return "in, token=abcdef123456"

    items = await read(
        bot_of([calls("login", user="a", password="hunter2"), says("x")], [login]).astream_events("go", mode="auto")
    )

    shown = [payload for mode, payload in items if mode == "graph"]
    shown += [update["node_trace"] for node in ("agent", "tools") for update in updates_of(items, node)]
    shown += [update["tools_executed"] for update in updates_of(items, "tools")]
    assert "hunter2" not in str(shown)
    assert "abcdef123456" not in str(shown)
    assert events_of(items, "node_invoked")[0]["detail"]["tool_calls"][0]["args"]["user"] == "a"
