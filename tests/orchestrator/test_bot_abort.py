"""Ending a run: wherever it is, at once or after the node at work, and the thread goes on afterwards."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from tests.orchestrator._bots import bot_of, events_of, read, results_in, shown_text, state_of, updates_of

from graphwright import OrchestratorBot
from graphwright.messages import problem_in
from graphwright.testing import ScriptedModel, call, calls, calls_many, says, waits_for


async def read_and(stream: Any, act: Any) -> list[tuple[str, Any]]:
    """Read a stream, and call `act(item)` for each item."""
    items = []
    async for item in stream:
        items.append(item)
        act(item)
    return items


def assert_aborted(items: list[tuple[str, Any]], run_id: str | None = None) -> None:
    """Check that the stream ended with the one event that says so."""
    (event,) = events_of(items, "aborted")
    assert items[-1] == ("graph", event)
    expected = run_id or events_of(items, "graph_topology")[0]["run_id"]
    assert event == {"type": "aborted", "run_id": expected}


async def goes_on(bot: OrchestratorBot, model: ScriptedModel, thread_id: str = "t") -> None:
    """Check that the thread takes another goal with a conversation that any provider accepts."""
    result = await bot.arun("and now?", thread_id=thread_id)
    assert (result.content, result.status) == ("going on", "completed")
    assert problem_in(model.inputs[-1]) is None
    state_of(bot, thread_id)


async def test_abort_on_the_topology_event_asks_the_model_at_most_once_and_runs_no_tool() -> None:
    ran = []

    async def act() -> str:
        """Act."""
        ran.append(1)
        return ""

    model = ScriptedModel([calls("act"), says("going on")], strict=False)
    bot = bot_of(model, [act])
    items = await read_and(
        bot.astream_events("go", mode="auto", thread_id="t"),
        lambda item: bot.abort() if item[1].get("type") == "graph_topology" else None,
    )

    assert ran == []
    assert len(model.inputs) <= 1
    assert_aborted(items)


@pytest.mark.parametrize("drain", [False, True])
async def test_abort_between_agent_and_tools_runs_no_tool_and_the_thread_goes_on(drain: bool) -> None:
    """2.28, 2.29: the side effect does not happen, and the call that is owed is answered."""
    ran = []

    async def delete() -> str:
        """Delete."""
        ran.append(1)
        return ""

    model = ScriptedModel([calls("delete"), says("going on")])
    bot = bot_of(model, [delete])
    items = await read_and(
        bot.astream_events("go", mode="auto", thread_id="t"),
        lambda item: bot.abort(drain=drain) if item[1].get("type") == "node_invoked" else None,
    )

    assert ran == []
    assert_aborted(items)
    await goes_on(bot, model)
    assert results_in(model.inputs[1])[0][2] == "error"


async def test_abort_while_the_model_says_nothing_ends_at_once() -> None:
    """2.30: also a model that never answers."""
    never = asyncio.Event()
    model = ScriptedModel([waits_for(never, says("never")), says("going on")])
    bot = bot_of(model)
    reading = asyncio.create_task(read(bot.astream_events("go", thread_id="t")))
    await model.until_asked()

    bot.abort()
    items = await asyncio.wait_for(reading, 5)

    assert_aborted(items)
    assert model.abandoned == 1
    await goes_on(bot, model)


async def test_abort_in_the_middle_of_the_tokens_ends_the_stream_of_the_model() -> None:
    """2.36b."""
    never = asyncio.Event()
    model = ScriptedModel([says(chunks=["one ", never, "two"]), says("going on")])
    bot = bot_of(model)
    items = await asyncio.wait_for(
        read_and(bot.astream_events("go", thread_id="t"), lambda item: bot.abort() if item[0] == "messages" else None),
        5,
    )

    assert shown_text(items) == "one "
    assert_aborted(items)
    assert model.abandoned == 1
    await goes_on(bot, model)


@pytest.mark.parametrize("from_thread", [False, True])
async def test_abort_during_an_async_tool_cancels_it_and_waits_for_its_clean_up(from_thread: bool) -> None:
    """2.33a: from any thread."""
    at_work, cleaned = asyncio.Event(), []

    async def hang() -> str:
        """Hang."""
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)
        return ""

    async def quick() -> str:
        """Be quick."""
        return "quick"

    model = ScriptedModel([calls_many(call("quick"), call("hang")), says("going on")])
    bot = bot_of(model, [hang, quick])
    reading = asyncio.create_task(read(bot.astream_events("go", mode="auto", thread_id="t")))
    await at_work.wait()

    if from_thread:
        await asyncio.to_thread(bot.abort)
    else:
        bot.abort()
    items = await asyncio.wait_for(reading, 5)

    assert cleaned == [1]
    assert_aborted(items)
    await goes_on(bot, model)
    assert next((text, status) for _, text, status in results_in(model.inputs[1])) == ("quick", "success")


async def test_abort_during_a_sync_tool_returns_and_its_late_result_is_discarded() -> None:
    at_work, let_go, landed = threading.Event(), threading.Event(), threading.Event()

    def hang() -> str:
        """Hang."""
        at_work.set()
        let_go.wait(10)
        landed.set()
        return "late result"

    model = ScriptedModel([calls("hang"), says("going on")])
    bot = bot_of(model, [hang])
    reading = asyncio.create_task(read(bot.astream_events("go", mode="auto", thread_id="t")))
    try:
        await asyncio.to_thread(at_work.wait, 10)
        bot.abort()
        items = await asyncio.wait_for(reading, 5)
        assert not landed.is_set()
        assert_aborted(items)
        await goes_on(bot, model)
    finally:
        let_go.set()
    await asyncio.to_thread(landed.wait, 10)
    assert "late result" not in str(state_of(bot, "t"))
    assert "not known" in results_in(model.inputs[1])[0][1] or "unknown" in results_in(model.inputs[1])[0][1]


async def test_drain_lets_the_node_at_work_end() -> None:
    """The granularity of the page: a node that runs is not cut off."""
    at_work, go = asyncio.Event(), asyncio.Event()
    done = []

    async def work() -> str:
        """Work."""
        at_work.set()
        await go.wait()
        done.append(1)
        return "worked"

    model = ScriptedModel([calls("work"), says("going on")])
    bot = bot_of(model, [work])
    reading = asyncio.create_task(read(bot.astream_events("go", mode="auto", thread_id="t")))
    await at_work.wait()

    bot.abort(drain=True)
    await asyncio.sleep(0)
    assert not reading.done()
    go.set()
    items = await asyncio.wait_for(reading, 5)

    assert done == [1]
    assert updates_of(items, "tools")[0]["tools_executed"][0]["output"] == "worked"
    assert_aborted(items)
    assert len(model.inputs) == 1
    await goes_on(bot, model)
    assert results_in(model.inputs[1])[0][1] == "worked"


@pytest.mark.parametrize("drain", [False, True])
async def test_abort_before_the_first_event_is_not_lost(drain: bool) -> None:
    """2.31: nothing runs at all."""
    model = ScriptedModel([says("going on")])
    bot = bot_of(model)
    stream = bot.astream_events("go", thread_id="t")

    bot.abort(drain=drain)
    items = await read(stream)

    assert [payload["type"] for _, payload in items] == ["aborted"]
    assert model.inputs == []
    await goes_on(bot, model)


async def test_abort_on_the_leg_after_a_pause_names_the_run() -> None:
    """2.36c."""
    never = asyncio.Event()

    async def act() -> str:
        """Act."""
        return "acted"

    model = ScriptedModel([calls("act"), waits_for(never, says("never")), says("going on")])
    bot = bot_of(model, [act])
    response = await bot.arun("go", mode="ask", thread_id="t")
    bot.set_resume_command(True)
    reading = asyncio.create_task(read(bot.astream_events(None, thread_id="t")))
    await model.until_asked(2)

    bot.abort()
    items = await reading

    assert_aborted(items, response.run_id)
    await goes_on(bot, model)


async def test_abort_while_a_run_waits_for_a_person_leaves_it_waiting() -> None:
    async def act() -> str:
        """Act."""
        return "acted"

    bot = bot_of([calls("act"), says("ok")], [act])
    await bot.arun("go", mode="ask", thread_id="t")

    bot.abort()

    assert (await bot.aresume("t", True)).content == "ok"


async def test_abort_on_the_last_event_changes_nothing_and_the_bot_is_reusable() -> None:
    """2.32."""
    bot = bot_of([says("one"), says("two")])
    items = await read_and(bot.astream_events("go"), lambda item: bot.abort() if item[0] == "updates" else None)
    assert updates_of(items, "agent")[-1]["final_report"] == "one"

    again = await read(bot.astream_events("go"))
    assert events_of(again, "aborted") == []
    assert updates_of(again, "agent")[-1]["final_report"] == "two"


async def test_arun_does_not_observe_abort_and_a_handle_has_its_own() -> None:
    go = asyncio.Event()
    model = ScriptedModel([waits_for(go, says("one")), waits_for(asyncio.Event(), says("never")), says("going on")])
    bot = bot_of(model)
    running = asyncio.create_task(bot.arun("go"))
    await model.until_asked()
    bot.abort()
    go.set()
    assert (await running).content == "one"

    run = bot.start("go", thread_id="t")
    await model.until_asked(2)
    bot.abort()
    await asyncio.sleep(0)
    assert not run.done
    run.abort()
    response = await run.result()
    assert (response.status, response.success, response.run_id) == ("aborted", False, run.run_id)
    await goes_on(bot, model)


async def test_one_of_three_streams_ends_and_it_is_the_newest() -> None:
    """2.34."""
    go = asyncio.Event()
    model = ScriptedModel.answering(lambda _: waits_for(go, says("fine")))
    bot = bot_of(model)
    readings = []
    for place in range(3):
        readings.append(asyncio.create_task(read(bot.astream_events("go", thread_id=f"t{place}"))))
        await model.until_asked(place + 1)

    bot.abort()
    items = await readings[2]
    assert_aborted(items)
    go.set()
    for reading in readings[:2]:
        assert updates_of(await reading, "agent")[-1]["final_report"] == "fine"


async def test_a_stream_that_begins_does_not_undo_an_abort() -> None:
    """2.35."""
    go = asyncio.Event()
    model = ScriptedModel.answering(lambda _: waits_for(go, says("fine")))
    bot = bot_of(model)
    first = asyncio.create_task(read(bot.astream_events("go", thread_id="t1")))
    await model.until_asked()
    bot.abort()
    second = asyncio.create_task(read(bot.astream_events("go", thread_id="t2")))

    assert_aborted(await first)
    go.set()
    assert updates_of(await second, "agent")[-1]["final_report"] == "fine"


@pytest.mark.parametrize("how", ["break", "aclose", "cancel"])
async def test_leaving_a_stream_ends_the_run_and_its_tools_and_frees_the_thread(how: str) -> None:
    """2.36."""
    cleaned, at_work = asyncio.Event(), asyncio.Event()

    async def hang() -> str:
        """Hang."""
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()
        return ""

    model = ScriptedModel([calls("hang"), says("going on")])
    bot = bot_of(model, [hang])

    async def consume() -> None:
        stream = bot.astream_events("go", mode="auto", thread_id="t")
        async for mode, payload in stream:
            if mode == "updates" and "agent" in payload:
                if how == "break":
                    break
                if how == "aclose":
                    await stream.aclose()

    task = asyncio.create_task(consume())
    if how == "cancel":
        await asyncio.wait_for(at_work.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned.is_set()
    else:
        await asyncio.wait_for(task, 5)
    gc.collect()
    for _ in range(50):
        await asyncio.sleep(0)

    await goes_on(bot, model)


async def test_a_stream_that_nobody_reads_is_not_the_newest_for_ever() -> None:
    go = asyncio.Event()
    model = ScriptedModel.answering(lambda _: waits_for(go, says("fine")))
    bot = bot_of(model)
    reading = asyncio.create_task(read(bot.astream_events("go", thread_id="t1")))
    await model.until_asked()
    bot.astream_events("never read", thread_id="t2")
    gc.collect()

    bot.abort()

    assert_aborted(await asyncio.wait_for(reading, 5))


async def test_abort_while_an_input_guard_judges_is_not_lost() -> None:
    at_work = asyncio.Event()

    async def slow(text: str) -> Any:
        at_work.set()
        await asyncio.Event().wait()

    model = ScriptedModel([])
    bot = bot_of(model, input_guards=[slow])
    reading = asyncio.create_task(read(bot.astream_events("go", thread_id="t")))
    await at_work.wait()

    bot.abort()
    items = await asyncio.wait_for(reading, 5)

    assert [payload["type"] for _, payload in items] == ["aborted"]
    assert model.inputs == []


async def test_what_was_done_before_an_abort_is_in_the_thread() -> None:
    async def act() -> str:
        """Act."""
        return "acted"

    model = ScriptedModel([calls("act"), waits_for(asyncio.Event(), says("never")), says("going on")])
    bot = bot_of(model, [act])
    run = bot.start("go", thread_id="t")
    await model.until_asked(2)
    run.abort()
    response = await run.result()

    assert [record["output"] for record in response.tools_executed] == ["acted"]
    assert [entry["node"] for entry in response.node_trace] == ["agent", "tools"]
    assert state_of(bot, "t")["tools_executed"] == response.tools_executed
    assert state_of(bot, "t")["final_report"] == ""
    await goes_on(bot, model)


async def test_abort_while_a_run_waits_for_its_turn_on_the_thread() -> None:
    go = asyncio.Event()
    model = ScriptedModel([waits_for(go, says("one")), says("going on")])
    bot = bot_of(model, on_busy="wait")
    first = asyncio.create_task(bot.arun("go", thread_id="t"))
    await model.until_asked()
    second = asyncio.create_task(read(bot.astream_events("go", thread_id="t")))
    await asyncio.sleep(0.01)

    bot.abort()
    items = await asyncio.wait_for(second, 5)

    assert [payload["type"] for _, payload in items] == ["aborted"]
    go.set()
    assert (await first).content == "one"
    await goes_on(bot, model)
