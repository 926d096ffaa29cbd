"""Runs of one session: one at a time, and what becomes of one that is paused, was cut off or was ended."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from graphwright.agent import Agent, build_agent
from graphwright.engine.interrupt import interrupt
from graphwright.exceptions import InterruptError, RunAbortedError, RunPausedError, RunTimeoutError, ThreadBusy
from graphwright.messages import HumanMessage, text_of
from graphwright.runlog import MemoryRunLog, Row, RunInfo
from graphwright.runtime.history import conversation_of
from graphwright.testing import ScriptedModel, assert_valid_conversation, call, calls, calls_many, says, waits_for
from graphwright.tools import FunctionTool


def ask_tool() -> FunctionTool:
    async def ask() -> str:
        """Ask."""
        return str(await interrupt("color", {}))

    made = FunctionTool(ask)
    made.reenterable = True
    return made


async def agent_of(*script: Any, log: MemoryRunLog | None = None, **options: Any) -> Agent:
    tools = options.pop("extra_tools", [ask_tool()])
    return await build_agent(
        model=ScriptedModel(script), extra_tools=tools, runlog=log if log is not None else MemoryRunLog(), **options
    )


async def statuses(log: Any, thread_id: str) -> list[str]:
    return [info.status for info in reversed(await log.runs(thread_id=thread_id))]


@pytest.mark.parametrize("on_busy", ["refuse", "wait"])
async def test_a_new_run_does_not_pass_one_that_is_paused(on_busy: str) -> None:
    agent = await agent_of(calls("ask"), says("ok"), says("new"), on_busy=on_busy)
    paused = await agent.ainvoke("go", session_id="s")

    for _ in range(3):
        with pytest.raises(RunPausedError, match="is paused and waits for 1 answer") as refused:
            await agent.ainvoke("again", session_id="s")
        assert (refused.value.pending, refused.value.run_id) == (paused.pending, paused.run_id)

    assert (await agent.resume("s", "blue")).text == "ok"
    assert (await agent.ainvoke("again", session_id="s")).text == "new"


@pytest.mark.parametrize("on_busy", ["refuse", "wait"])
async def test_a_paused_run_is_given_up_for_a_new_one_where_that_is_the_policy(on_busy: str) -> None:
    agent = await agent_of(calls("ask"), says("new"), on_busy=on_busy, on_paused="abandon")
    paused = await agent.ainvoke("go", session_id="s")

    assert (await agent.ainvoke("again", session_id="s")).text == "new"

    assert await statuses(agent.runlog, "s") == ["abandoned", "completed"]
    with pytest.raises(InterruptError, match=r"has ended \(abandoned\)"):
        await agent.resume(paused.run_id, "blue")


async def test_runs_that_wait_for_each_other_come_one_after_another_under_either_policy() -> None:
    for policy in ("refuse", "abandon"):
        gate = asyncio.Event()
        agent = await agent_of(
            waits_for(gate, says("one")), says("two"), says("three"), on_busy="wait", on_paused=policy
        )
        runs = [asyncio.create_task(agent.ainvoke(str(n), session_id="s")) for n in range(3)]
        await agent._engine.model.until_asked()  # type: ignore[union-attr]
        gate.set()

        assert sorted(result.text for result in await asyncio.gather(*runs)) == ["one", "three", "two"]
        assert await statuses(agent.runlog, "s") == ["completed"] * 3


async def test_a_second_run_on_a_session_at_work_is_refused() -> None:
    gate = asyncio.Event()
    agent = await agent_of(waits_for(gate, says("one")))
    first = asyncio.create_task(agent.ainvoke("go", session_id="s"))
    await agent._engine.model.until_asked()  # type: ignore[union-attr]

    with pytest.raises(ThreadBusy):
        await agent.ainvoke("again", session_id="s")
    with pytest.raises(ThreadBusy):
        await agent.resume("s")

    gate.set()
    assert (await first).text == "one"


async def test_a_run_that_is_given_up_answers_what_it_owes() -> None:
    agent = await agent_of(calls("ask"))
    paused = await agent.ainvoke("go", session_id="s")
    await agent.abandon("s")

    info = await agent.runlog.info(paused.run_id)  # type: ignore[union-attr]
    assert info is not None
    assert info.status == "abandoned"
    with pytest.raises(InterruptError):
        await agent.abandon("s")


async def open_run(log: MemoryRunLog, *rows: Row) -> None:
    """Leave a run behind that was cut off after these rows."""
    writer = await log.begin(RunInfo(run_id="r1", thread_id="s"))
    writer.put(*rows)
    await writer.close("running")


@pytest.mark.parametrize("on_busy", ["refuse", "wait"])
async def test_a_run_that_was_cut_off_before_its_input_was_written_holds_nobody_up(on_busy: str) -> None:
    log = MemoryRunLog()
    await open_run(log)
    agent = await agent_of(says("new"), log=log, on_busy=on_busy)

    with pytest.raises(InterruptError, match="was cut off before anything of it was written; start a new one"):
        await agent.resume("r1")

    assert (await agent.ainvoke("go", session_id="s")).text == "new"


@pytest.mark.parametrize("on_busy", ["refuse", "wait"])
@pytest.mark.parametrize("on_paused", ["refuse", "abandon"])
async def test_a_run_that_was_cut_off_after_its_end_keeps_how_it_ended(on_busy: str, on_paused: str) -> None:
    log = MemoryRunLog()
    end = Row("end", "", "", {"status": "completed"})
    await open_run(log, Row("input", "", "", {"m": []}), end)
    agent = await agent_of(says("new"), log=log, on_busy=on_busy, on_paused=on_paused)

    assert (await agent.ainvoke("go", session_id="s")).text == "new"

    kept = "running" if (on_busy, on_paused) == ("wait", "refuse") else "completed"
    assert await statuses(log, "s") == [kept, "completed"]


async def test_a_run_that_was_cut_off_is_gone_on_with_and_not_passed() -> None:
    log = MemoryRunLog()
    agent = await agent_of(calls("ask"), says("ok"), log=log)
    paused = await agent.ainvoke("go", session_id="s")
    await (await log.reopen(paused.run_id)).close("running")

    with pytest.raises(RunPausedError):
        await agent.ainvoke("again", session_id="s")

    assert (await agent.resume("s", "blue")).text == "ok"


async def test_an_aborted_run_has_a_conversation_that_a_provider_takes() -> None:
    started = asyncio.Event()

    async def slow() -> str:
        """Take for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    async def quick() -> str:
        """Be quick."""
        return "quick"

    turn = calls_many(call("slow"), call("quick"))
    agent = await agent_of(turn, extra_tools=[slow, quick])
    run = agent.start("go")
    await started.wait()
    run.abort()
    with pytest.raises(RunAbortedError) as ended:
        await run.result()

    info = await agent.runlog.info(run.run_id)  # type: ignore[union-attr]
    kept = conversation_of(await agent.runlog.rows(run.run_id))  # type: ignore[union-attr]
    assert info is not None
    assert info.status == "aborted"
    assert_valid_conversation([*kept, HumanMessage("and now?")])
    assert [text_of(message) for message in kept] == [text_of(message) for message in ended.value.messages]
    assert [message.type for message in kept] == ["human", "ai", "tool", "tool"]
    with pytest.raises(InterruptError, match=r"has ended \(aborted\)"):
        await agent.resume(run.run_id)


async def test_a_run_whose_time_ran_out_has_ended() -> None:
    gate = asyncio.Event()
    agent = await agent_of(waits_for(gate, says("late")), max_invocation_time=0.02)

    with pytest.raises(RunTimeoutError):
        await agent.ainvoke("go", session_id="s")

    runs = await agent.runlog.runs(thread_id="s")  # type: ignore[union-attr]
    assert [info.status for info in runs] == ["failed"]


async def test_chat_says_that_the_run_is_paused() -> None:
    agent = await agent_of(calls("ask"), says("ok"))

    with pytest.raises(RunPausedError, match="waits for 1 answer") as paused:
        await agent.chat("go", session_id="s")

    assert [item.kind for item in paused.value.pending] == ["color"]
    assert paused.value.thread_id == "s"
    assert (await agent.resume(paused.value.run_id or "", "blue")).text == "ok"


@pytest.mark.parametrize("keyword", ["on_busy", "on_paused"])
async def test_an_unknown_policy_is_refused_when_the_agent_is_built(keyword: Literal["on_busy", "on_paused"]) -> None:
    with pytest.raises(ValueError, match=f"{keyword} is 'perhaps'"):
        await agent_of(**{keyword: "perhaps"})
