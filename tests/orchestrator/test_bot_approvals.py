"""Runs that wait for a person: approvals, edits, questions, and whose answer it is."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrator._bots import bot_of, events_of, pending_in, read, results_in, state_of, updates_of

from graphwright import CallerContext, OrchestratorBot
from graphwright.engine.interrupt import interrupt, once
from graphwright.exceptions import ConfigurationError, InterruptError, RunPausedError, SessionAccessDenied
from graphwright.interrupts import ApprovalDecision
from graphwright.messages import text_of
from graphwright.runlog import MemoryRunLog, SQLiteRunLog
from graphwright.testing import ScriptedModel, call, calls, calls_many, says
from graphwright.tools import Tool
from graphwright.types import ToolSpec


class Tools:
    """Tools that write down what they did."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    @property
    def all(self) -> list[Any]:
        ran = self.ran

        async def delete(path: str) -> str:
            """Delete."""
            ran.append(path)
            return f"deleted {path}"

        async def look(path: str) -> str:
            """Look."""
            ran.append(f"look {path}")
            return "seen"

        look.risk_level = 0  # type: ignore[attr-defined]
        return [delete, look]


def deletes(*paths: str) -> Any:
    return calls_many(*(call("delete", path=path).with_id(path) for path in paths))


async def paused(bot: OrchestratorBot, thread_id: str = "t", goal: str = "clean up") -> list[Any]:
    """Run until the run waits, and return what it waits for."""
    return pending_in(await read(bot.astream_events(goal, mode="ask", thread_id=thread_id)))


async def test_an_approved_call_runs_once_and_the_run_goes_on_under_its_id() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("gone")], tools.all)

    items = await read(bot.astream_events("clean up", mode="ask", thread_id="t"))
    (item,) = pending_in(items)

    assert tools.ran == []
    assert item.kind == "approval"
    assert {key: item.value[key] for key in ("type", "tool", "tool_call_id", "params")} == {
        "type": "permission_request",
        "tool": "delete",
        "tool_call_id": "a",
        "params": {"path": "a"},
    }
    bot.set_resume_command(True)
    more = await read(bot.astream_events(None, mode="ask", thread_id="t"))

    assert tools.ran == ["a"]
    assert events_of(more, "graph_topology") == []
    nodes = [*events_of(items, "node_invoked"), *events_of(more, "node_invoked")]
    assert [(event["node"], event["seq"]) for event in nodes] == [("agent", 1), ("tools", 2), ("agent", 3)]
    assert {event["run_id"] for event in nodes} == {events_of(items, "graph_topology")[0]["run_id"]}
    assert state_of(bot, "t")["final_report"] == "gone"


async def test_what_nobody_declared_counts_as_risky() -> None:
    """An unclassified tool is asked about."""
    bot = bot_of([deletes("a")], Tools().all)

    assert len(await paused(bot)) == 1


async def test_all_risky_calls_of_a_batch_wait_at_once_and_nothing_of_it_has_run() -> None:
    """2.20, 2.21: also the calls without risk wait, and none runs twice."""
    tools = Tools()
    bot = bot_of(
        [calls_many(call("look", path="x"), call("delete", path="a"), call("delete", path="b")), "ok"], tools.all
    )

    items = await paused(bot)

    assert [item.value["params"]["path"] for item in items] == ["a", "b"]
    assert tools.ran == []
    response = await bot.aresume("t", {items[1].id: True})
    assert (response.status, tools.ran) == ("paused", [])
    response = await bot.aresume("t", {items[0].id: False})
    assert sorted(tools.ran) == ["b", "look x"]
    assert [record["status"] for record in response.tools_executed] == ["success", "skipped", "success"]


@pytest.mark.parametrize(
    ("answer", "ran", "status"),
    [
        (True, ["a"], "success"),
        ({"approved": True}, ["a"], "success"),
        (ApprovalDecision(True, reviewer_id="ana"), ["a"], "success"),
        ({"approved": True, "tool_call_id": "a"}, ["a"], "success"),
        (False, [], "skipped"),
        ({"approved": False}, [], "skipped"),
        (ApprovalDecision(False), [], "skipped"),
    ],
)
async def test_a_decision_is_carried_out(answer: Any, ran: list[str], status: str) -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    await paused(bot)

    bot.set_resume_command(answer)
    items = await read(bot.astream_events(None, thread_id="t"))

    assert tools.ran == ran
    assert [record["status"] for record in updates_of(items, "tools")[0]["tools_executed"]] == [status]
    assert updates_of(items, "agent")[-1]["final_report"] == "ok"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {},
        [],
        "yes",
        "approve",
        "no",
        1,
        0,
        {"unknown": 1},
        {"a": "maybe"},
        {"approved": "true"},
        {"approved": 1},
        {"approved": True, "tool_call_id": "other"},
        {"approved": True, "surprise": 1},
        {"approved": True, "args": "x"},
        {"int_unknown": True},
    ],
)
async def test_an_answer_that_is_no_decision_is_refused_and_the_pause_stays(answer: Any) -> None:
    """2.25: nothing runs, and the right answer is taken afterwards."""
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    await paused(bot)

    bot.set_resume_command(answer)
    with pytest.raises(InterruptError):
        await read(bot.astream_events(None, thread_id="t"))

    assert tools.ran == []
    assert (await bot.aresume("t", True)).content == "ok"
    assert tools.ran == ["a"]


@pytest.mark.parametrize("how", ["break", "aclose", "answer inside", "abort"])
async def test_whoever_is_shown_a_pause_may_leave_the_stream_at_once(how: str) -> None:
    """The pause holds before it is shown, and the thread is free to go on."""
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    seen = []
    stream = bot.astream_events("clean up", mode="ask", thread_id="t")
    async for item in stream:
        seen.append(item)
        if item[0] == "updates" and "__interrupt__" in item[1]:
            bot.set_resume_command(True)
            if how == "break":
                break
            if how == "aclose":
                await stream.aclose()
            if how == "abort":
                bot.abort()
            if how == "answer inside":
                assert (await bot.aresume("t", True)).content == "ok"
    del stream

    if how != "answer inside":
        items = await read(bot.astream_events(None, thread_id="t"))
        assert updates_of(items, "agent")[-1]["final_report"] == "ok"
    assert tools.ran == ["a"]
    assert events_of(seen, "aborted") == []


async def test_a_resume_without_an_answer_shows_the_pause_again() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    (item,) = await paused(bot)

    items = await read(bot.astream_events(None, thread_id="t"))

    assert [again.id for again in pending_in(items)] == [item.id]
    assert tools.ran == []


async def test_a_bare_yes_answers_the_first_that_waits_and_no_other() -> None:
    tools = Tools()
    bot = bot_of([deletes("a", "b"), says("ok")], tools.all)
    first, second = await paused(bot)

    bot.set_resume_command(True)
    items = await read(bot.astream_events(None, thread_id="t"))
    assert [item.id for item in pending_in(items)] == [second.id]
    assert tools.ran == []
    assert first.id != second.id

    bot.set_resume_command(True)
    await read(bot.astream_events(None, thread_id="t"))
    assert tools.ran == ["a", "b"]


async def test_every_answer_reaches_its_own_call_whatever_the_order() -> None:
    chance = random.Random(7)
    for _ in range(50):
        tools = Tools()

        async def slow(context: Any, chance: Any = chance) -> Any:
            from graphwright import GuardDecision

            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            return GuardDecision.allow()

        model = ScriptedModel([deletes("d1", "d2", "d3"), says("ok")])
        bot = bot_of(model, tools.all, tool_guards=[slow])
        items = {item.value["tool_call_id"]: item.id for item in await paused(bot)}
        given = [("d1", True), ("d2", False), ("d3", True)]
        chance.shuffle(given)
        if chance.random() < 0.5:
            await bot.aresume("t", {items[name]: yes for name, yes in given})
        else:
            for name, yes in given:
                await bot.aresume("t", {items[name]: yes})
        assert sorted(tools.ran) == ["d1", "d3"]
        results = {entry[0]: entry for entry in results_in(model.inputs[1])}
        assert results["d2"][2] == "error"
        assert results["d1"][1] == "deleted d1"


async def test_calls_that_were_approved_one_by_one_run_once_each() -> None:
    """Never again on a later resume, and never only the first."""
    tools = Tools()
    bot = bot_of([deletes("a", "b"), deletes("c"), says("ok")], tools.all)

    items = await paused(bot)
    for item in items:
        response = await bot.aresume("t", {item.id: True})
    assert tools.ran == ["a", "b"]
    assert response.status == "paused"
    await bot.aresume("t", True)

    assert tools.ran == ["a", "b", "c"]


async def test_edited_arguments_run_and_the_model_is_told() -> None:
    """2.25: edits used to be ignored."""
    tools = Tools()
    model = ScriptedModel([deletes("a"), says("ok")])
    bot = bot_of(model, tools.all)
    await paused(bot)

    response = await bot.aresume("t", {"approved": True, "args": {"path": "b"}})

    assert tools.ran == ["b"]
    assert response.tools_executed[0]["args"] == {"path": "b"}
    assert '"b"' in results_in(model.inputs[1])[0][1]


async def test_edited_arguments_that_do_not_fit_are_refused_and_the_run_waits() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    await paused(bot)

    with pytest.raises(InterruptError, match="do not fit"):
        await bot.aresume("t", {"approved": True, "args": {"path": 7}})

    assert tools.ran == []
    assert (await bot.aresume("t", True)).content == "ok"


async def test_the_model_reads_why_it_was_denied() -> None:
    model = ScriptedModel([deletes("a"), says("ok")])
    bot = bot_of(model, Tools().all)
    await paused(bot)

    await bot.aresume("t", {"approved": False, "feedback": "use the archive instead"})

    assert "use the archive instead" in results_in(model.inputs[1])[0][1]


async def test_an_approval_for_the_rest_of_the_run_ends_with_the_run() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), deletes("b"), says("ok"), deletes("c"), says("x")], tools.all)
    await paused(bot)

    response = await bot.aresume("t", {"approved": True, "always": True})

    assert (response.content, tools.ran) == ("ok", ["a", "b"])
    assert (await bot.arun("again", thread_id="t", mode="ask")).status == "paused"


async def test_an_approval_that_came_too_late_is_a_denial() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all, approval_timeout_s=0.01)
    (item,) = await paused(bot)
    assert item.expires_at is not None
    await asyncio.sleep(0.02)

    with pytest.raises(InterruptError, match="has passed"):
        await bot.aresume("t", True)
    response = await bot.aresume("t")

    assert (response.content, tools.ran, response.tools_executed[0]["status"]) == ("ok", [], "skipped")


async def test_the_answer_of_one_user_never_reaches_the_thread_of_another() -> None:
    """2.18: two users on one bot, one says no, the other yes."""
    tools = Tools()
    bot = bot_of(
        ScriptedModel.answering(
            lambda messages: says("ok") if messages[-1].type == "tool" else deletes(text_of(messages[-1]))
        ),
        tools.all,
    )
    turn = asyncio.Event()
    a_has_answered, b_has_answered = asyncio.Event(), asyncio.Event()

    async def user_a() -> Any:
        await paused(bot, "A", "of-a")
        await turn.wait()
        bot.set_resume_command(False)
        a_has_answered.set()
        await b_has_answered.wait()
        return await read(bot.astream_events(None, thread_id="A"))

    async def user_b() -> Any:
        await paused(bot, "B", "of-b")
        turn.set()
        await a_has_answered.wait()
        bot.set_resume_command(True)
        b_has_answered.set()
        return await read(bot.astream_events(None, thread_id="B"))

    items_a, items_b = await asyncio.gather(user_a(), user_b())

    assert tools.ran == ["of-b"]
    assert updates_of(items_a, "tools")[0]["tools_executed"][0]["status"] == "skipped"
    assert updates_of(items_b, "tools")[0]["tools_executed"][0]["status"] == "success"


async def test_an_answer_given_by_thread_is_taken_by_any_task_of_that_thread_alone() -> None:
    tools = Tools()
    bot = bot_of(ScriptedModel.answering(lambda m: says("ok") if m[-1].type == "tool" else deletes("x")), tools.all)
    await asyncio.gather(*(asyncio.create_task(paused(bot, name)) for name in ("t1", "t2")))

    bot.set_resume_command(True, thread_id="t1")
    others = await asyncio.create_task(read(bot.astream_events(None, thread_id="t2")))
    mine = await asyncio.create_task(read(bot.astream_events(None, thread_id="t1")))

    assert pending_in(others)
    assert not pending_in(mine)
    assert tools.ran == ["x"]


async def test_an_answer_that_no_stream_took_does_not_answer_what_is_asked_later() -> None:
    """2.19: an armed yes is dropped by a new goal."""
    tools = Tools()
    bot = bot_of([deletes("harmless"), deletes("precious"), says("x")], tools.all, on_paused="abandon")
    await paused(bot)
    bot.set_resume_command(True)

    (item,) = await paused(bot, goal="something else")
    assert item.value["params"] == {"path": "precious"}
    items = await read(bot.astream_events(None, thread_id="t"))

    assert tools.ran == []
    assert pending_in(items)


@pytest.mark.parametrize("how", ["arun", "start", "aresume"])
async def test_a_yes_is_tied_to_what_was_shown_when_it_was_given(how: str) -> None:
    """2.19: whatever else happened on the thread meanwhile, it answers nothing else."""
    tools = Tools()
    bot = bot_of([deletes("a"), deletes("b"), deletes("c")], tools.all, on_paused="abandon")
    await paused(bot)
    bot.set_resume_command(True)

    if how == "aresume":
        await asyncio.create_task(bot.aresume("t", False))
    elif how == "arun":
        await asyncio.create_task(bot.arun("another", thread_id="t", mode="ask"))
    else:
        await bot.start("another", thread_id="t", mode="ask").result()
    items = await read(bot.astream_events(None, thread_id="t"))

    assert tools.ran == []
    assert pending_in(items)


async def test_an_answer_given_before_anything_was_asked_answers_nothing_that_a_new_goal_asks() -> None:
    tools = Tools()
    bot = bot_of([deletes("a")], tools.all)
    bot.set_resume_command(True)

    await paused(bot)

    assert pending_in(await read(bot.astream_events(None, thread_id="t")))
    assert tools.ran == []


async def test_a_resume_on_a_wrong_thread_or_of_a_finished_run_is_refused() -> None:
    """2.22, 2.23: no model is asked with an empty history."""
    model = ScriptedModel([deletes("a"), says("ok")])
    bot = bot_of(model, Tools().all)
    await paused(bot)

    for thread_id in ("other", "T"):
        bot.set_resume_command(True, thread_id=thread_id)
        with pytest.raises(InterruptError, match="no open run"):
            await read(bot.astream_events(None, thread_id=thread_id))
    assert len(model.inputs) == 1
    await bot.aresume("t", True)
    with pytest.raises(InterruptError):
        await read(bot.astream_events(None, thread_id="t"))
    with pytest.raises(InterruptError):
        await bot.aresume("t", True)
    assert len(model.inputs) == 2


async def test_an_answer_by_somebody_else_is_refused() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    ana, bob = CallerContext(user_id="ana"), CallerContext(user_id="bob")
    response = await bot.arun("x", thread_id="t", mode="ask", caller=ana)

    for caller in (bob, None, CallerContext(user_id="ana", tenant_id="other")):
        with pytest.raises(SessionAccessDenied):
            await bot.aresume("t", True, caller=caller)
        with pytest.raises(SessionAccessDenied):
            await bot.arun("hello", thread_id="t", caller=caller)
        with pytest.raises(SessionAccessDenied):
            await bot.abandon("t", caller=caller)

    assert tools.ran == []
    assert response.status == "paused"
    assert (await bot.aresume("t", True, caller=CallerContext(user_id="ana"))).content == "ok"


async def test_a_new_goal_on_a_thread_that_waits_is_refused() -> None:
    """2.24: it never counts as an answer, and the pause can still be answered."""
    tools = Tools()
    model = ScriptedModel([deletes("a"), says("ok")])
    bot = bot_of(model, tools.all)
    await paused(bot)

    for start in (lambda: bot.arun("yes", thread_id="t"), lambda: read(bot.astream_events("yes", thread_id="t"))):
        with pytest.raises(RunPausedError) as caught:
            await start()
    assert caught.value.pending[0].value["tool"] == "delete"
    assert caught.value.thread_id == "t"
    assert len(model.inputs) == 1

    assert (await bot.aresume("t", True)).content == "ok"
    assert tools.ran == ["a"]


@pytest.mark.parametrize("how", ["policy", "method"])
async def test_a_run_that_is_given_up_leaves_a_thread_that_goes_on(how: str) -> None:
    """2.24: its calls are answered as cancelled, so that any provider takes the conversation."""
    tools = Tools()
    model = ScriptedModel([deletes("a", "b"), says("new answer")])
    bot = bot_of(model, tools.all, on_paused="abandon" if how == "policy" else "refuse")
    await paused(bot)
    if how == "method":
        await bot.abandon("t")

    response = await bot.arun("another goal", thread_id="t")

    assert (response.content, tools.ran) == ("new answer", [])
    assert [entry[2] for entry in results_in(model.inputs[1])] == ["error", "error"]
    assert response.tools_executed == []


async def test_a_paused_run_says_so_and_not_what_an_earlier_run_answered() -> None:
    """2.27c."""
    bot = bot_of([says("first answer"), deletes("a")], Tools().all)
    await bot.arun("one", thread_id="t")

    response = await bot.arun("two", thread_id="t", mode="ask")

    assert (response.status, response.success, response.needs_input) == ("paused", False, False)
    assert "first answer" not in response.content
    assert "delete" in response.content
    assert response.pending_approval is not None
    assert response.pending_approval["tool"] == "delete"
    assert response.pending[0]["id"].startswith("int_")


async def test_a_run_that_paused_in_arun_goes_on_in_a_stream() -> None:
    """2.27b: under its own id, with the numbers going on."""
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    response = await bot.arun("x", mode="ask")

    bot.set_resume_command(True)
    items = await read(bot.astream_events(None, mode="ask"))

    assert tools.ran == ["a"]
    nodes = events_of(items, "node_invoked")
    assert [(event["node"], event["seq"], event["run_id"]) for event in nodes] == [
        ("tools", 2, response.run_id),
        ("agent", 3, response.run_id),
    ]


def test_a_run_that_paused_in_run_goes_on_by_the_page() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    response = bot.run("x", mode="ask", thread_id="t")
    assert response.status == "paused"

    bot.set_resume_command(True)
    items = asyncio.run(read(bot.astream_events(None, mode="ask", thread_id="t")))

    assert tools.ran == ["a"]
    assert updates_of(items, "agent")[-1]["final_report"] == "ok"


async def test_the_mode_of_the_run_holds_after_a_resume() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), deletes("b")], tools.all)
    await paused(bot)
    bot.set_resume_command(True)

    items = await read(bot.astream_events(None, mode="auto", thread_id="t"))

    assert tools.ran == ["a"]
    assert pending_in(items)[0].value["params"] == {"path": "b"}


@pytest.mark.parametrize("shown", [object(), {"before": {1, 2}}, b"\xff", "text", ["a"], 7])
async def test_a_preview_of_any_kind_is_shown_and_ends_no_run(shown: Any) -> None:
    """2.26."""
    tools = Tools()
    delete = tools.all[0]
    delete.preview = lambda args: shown
    bot = bot_of([deletes("a"), says("ok")], [delete])

    (item,) = await paused(bot)

    assert isinstance(item.value.get("diff", ""), str)
    if shown == "text":
        assert item.value["diff"] == "text"
    assert (await bot.aresume("t", True)).content == "ok"


async def test_a_preview_that_fails_leaves_the_question() -> None:
    def broken(args: Any) -> Any:
        raise RuntimeError("no")

    delete = Tools().all[0]
    delete.preview = broken
    (item,) = await paused(bot_of([deletes("a")], [delete]))

    assert "diff" not in item.value


async def test_what_a_person_is_shown_has_no_secrets_and_two_calls_still_look_different() -> None:
    async def login(password: str) -> str:
        """Log in."""
        return "in"

    bot = bot_of([calls_many(call("login", password="hunter2"), call("login", password="hunter3"))], [login])
    first, second = await paused(bot)

    assert "hunter" not in str(first.value)
    assert first.value["digest"] != second.value["digest"]


async def test_a_handle_is_answered_and_goes_on() -> None:
    tools = Tools()
    bot = bot_of([deletes("a", "b"), says("ok")], tools.all)
    run = bot.start("x", mode="ask", thread_id="t")
    response = await run.result()
    assert response.status == "paused"
    assert len(run.pending) == 2

    first, second = run.pending
    with pytest.raises(InterruptError):
        await run.answer(first.id, "yes")
    await run.answer(second.id, True, by="ana")
    await run.answer(first.id, False, by="ana")
    response = await run.result()

    assert (response.content, tools.ran, response.run_id) == ("ok", ["b"], run.run_id)
    assert [row.data["by"] for row in await bot.checkpointer.rows(run.run_id) if row.kind == "answer"] == ["ana", "ana"]


def bot_on(path: Path, steps: list[Any], tools: list[Any], **options: Any) -> OrchestratorBot:
    return bot_of(steps, tools, checkpointer=str(path), **options)


async def test_another_process_with_the_same_file_goes_on_with_the_run(tmp_path: Path) -> None:
    """2.27d: a second bot and log stand for it; the memory entry has the goal."""
    tools = Tools()
    first = bot_on(tmp_path / "runs.db", [deletes("a")], tools.all)
    await paused(first)
    await first.aclose()

    second = bot_on(
        tmp_path / "runs.db",
        [says("ok")],
        tools.all,
        enable_memory_writeback=True,
        memory_path=str(tmp_path / "memory"),
    )
    response = await second.aresume("t", True)
    await second.aclose()

    assert (response.content, response.goal, tools.ran) == ("ok", "clean up", ["a"])
    assert [entry["seq"] for entry in response.node_trace] == [1, 2, 3]
    assert response.token_usage["total_tokens"] == 30
    assert "Goal: clean up" in (tmp_path / "memory" / "MEMORY.md").read_text()


async def test_an_approved_call_of_a_tool_that_is_gone_or_changed_does_not_run(tmp_path: Path) -> None:
    """The approval was for that tool with those arguments."""
    ran = []

    async def delete(path: str, force: bool) -> str:
        """Delete in another way."""
        ran.append(path)
        return "x"

    for name, tools in (("gone", []), ("changed", [delete])):
        first = bot_on(tmp_path / f"{name}.db", [deletes("a")], Tools().all)
        await paused(first)
        await first.aclose()
        second = bot_on(tmp_path / f"{name}.db", [says("ok")], tools)
        response = await second.aresume("t", True)
        await second.aclose()
        assert (ran, response.tools_executed[0]["status"], response.content) == ([], "error", "ok")


async def test_another_graph_does_not_take_the_run_up(tmp_path: Path) -> None:
    first = bot_on(tmp_path / "runs.db", [deletes("a")], Tools().all)
    await paused(first)
    await first.aclose()
    tools = Tools()
    second = bot_on(tmp_path / "runs.db", [], tools.all, enable_planning=True)

    with pytest.raises(InterruptError, match="another graph"):
        await second.aresume("t", True)
    await second.aclose()

    assert tools.ran == []


# Questions


COLOR = {
    "id": "color",
    "text": "Which?",
    "type": "single_choice",
    "options": [{"value": "r", "label": "Red"}, {"value": "g", "label": "Green"}],
}
COUNT = {"id": "count", "text": "How many?", "type": "number", "required": False}


async def test_asking_wins_and_the_other_calls_are_put_off() -> None:
    """2.43: the tool runs neither before the question nor after it by itself."""
    tools = Tools()
    model = ScriptedModel(
        [
            calls_many(
                call("delete", path="a").with_id("d"),
                call("ask_user", questions=[COLOR]).with_id("q1"),
                call("ask_user", questions=[COUNT]).with_id("q2"),
            ),
            says("ok"),
        ]
    )
    bot = bot_of(model, tools.all, enable_user_questions=True)

    response = await bot.arun("x", thread_id="t")
    assert (response.status, response.needs_input) == ("paused", True)
    assert response.questions == [{**COLOR, "required": True}]
    assert response.content == "1. Which?\n   - Red\n   - Green"
    response = await bot.aresume("t", {"color": "g"})

    assert tools.ran == []
    results = {entry[0]: entry for entry in results_in(model.inputs[1])}
    assert '"g"' in results["q1"][1]
    assert "the user was asked first" in results["d"][1] == results["q2"][1]
    assert [(record["tool_name"], record["status"]) for record in response.tools_executed] == [("ask_user", "success")]


@pytest.mark.parametrize(
    "answers",
    [
        {"color": "blue"},
        {},
        {"color": None},
        {"color": ["r"]},
        {"color": "r", "count": "many"},
        {"color": "r", "count": True},
        {"color": "r", "other": 1},
        "r",
        True,
        0,
        "",
        ["r"],
    ],
)
async def test_an_answer_that_does_not_fit_its_question_is_refused_and_asked_again(answers: Any) -> None:
    """2.42."""
    bot = bot_of([calls("ask_user", questions=[COLOR, COUNT]), says("ok")], enable_user_questions=True)
    await paused(bot)

    bot.set_resume_command(answers)
    with pytest.raises(InterruptError, match="answers"):
        await read(bot.astream_events(None, thread_id="t"))

    assert (await bot.aresume("t", {"color": "r", "count": 3})).content == "ok"


@pytest.mark.parametrize(
    "questions",
    [
        "what?",
        [],
        [{"text": "no id"}],
        [{"id": "a", "text": "A?", "type": "essay"}],
        [{"id": "a", "text": "A?", "type": "single_choice"}],
        [{"id": "a", "text": "A?"}, {"id": "a", "text": "B?"}],
    ],
)
async def test_questions_that_cannot_be_asked_go_back_to_the_model(questions: Any) -> None:
    """2.33."""
    model = ScriptedModel([calls("ask_user", questions=questions), says("never mind")])
    bot = bot_of(model, enable_user_questions=True)

    response = await bot.arun("x")

    assert (response.content, response.needs_input, response.status) == ("never mind", False, "completed")
    assert results_in(model.inputs[1])[0][2] == "error"


async def test_a_question_where_questions_are_off_is_an_unknown_tool() -> None:
    """2.43b."""
    model = ScriptedModel([calls("ask_user", questions=[COLOR]), says("ok")])

    response = await bot_of(model).arun("x")

    assert (response.content, response.tools_executed[0]["status"]) == ("ok", "error")


async def test_questions_are_asked_in_every_mode_and_past_every_guard() -> None:
    """2.43c: signals are no actions."""
    from graphwright import ToolAllowlistGuard

    bot = bot_of(
        [calls_many(call("set_plan", steps=["a"]), call("ask_user", questions=[COLOR])), says("ok")],
        enable_user_questions=True,
        enable_planning=True,
        tool_guards=[ToolAllowlistGuard([])],
    )

    response = await bot.arun("x", thread_id="t", mode="auto")
    assert response.needs_input
    assert response.plan == [{"step": 1, "description": "a", "status": "pending"}]
    response = await bot.aresume("t", {"color": "r"})
    assert response.content == "ok"
    assert response.plan


async def test_a_paused_thread_can_be_read_without_going_on() -> None:
    bot = bot_of([deletes("a")], Tools().all)
    (item,) = await paused(bot)

    state = await bot.graph.aget_state({"configurable": {"thread_id": "t"}})

    assert state.next == ("tools",)
    assert [each.id for each in state.interrupts] == [item.id]
    assert state.values["final_report"] == ""
    assert state.values["goal"] == "clean up"


async def test_one_log_serves_two_bots() -> None:
    log = MemoryRunLog()
    tools = Tools()
    first = bot_of([deletes("a")], tools.all, checkpointer=log)
    await paused(first)
    await first.aclose()

    assert (await bot_of([says("ok")], tools.all, checkpointer=log).aresume("t", True)).content == "ok"
    assert tools.ran == ["a"]


async def test_a_bot_does_not_close_a_log_that_it_was_given(tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db")
    bot = bot_of([says("one"), says("two")], checkpointer=log)
    await bot.arun("x", thread_id="t")
    await bot.aclose()
    assert (await bot.arun("y", thread_id="t")).content == "two"
    await log.aclose()


async def test_a_handle_of_a_thread_goes_on_with_answers() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    first = await bot.start("x", mode="ask", thread_id="t").result()

    response = await bot.start(None, thread_id="t", answers=True).result()

    assert (response.content, response.run_id, tools.ran) == ("ok", first.run_id, ["a"])


async def test_a_run_that_paused_in_a_handle_is_answered_by_the_page() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    await bot.start("x", mode="ask", thread_id="t").result()

    bot.set_resume_command(True)
    await read(bot.astream_events(None, thread_id="t"))

    assert tools.ran == ["a"]


async def test_a_tool_asks_by_itself_and_does_its_effect_once() -> None:
    """Beside what waits for approval: everything of a turn is asked for, and each answer reaches its question."""
    booked = []

    class Book(Tool):
        spec = ToolSpec(
            name="book", description="Book.", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}
        )
        reenterable = True
        risk_level = 0

        def validate(self, args: dict[str, Any]) -> dict[str, Any]:
            return args

        async def run(self, args: dict[str, Any], call: Any, config: Any) -> str:
            seat = await interrupt("seat", {"n": args["n"]})
            return str(await once("booking", lambda: booked.append((args["n"], seat)) or f"booked {seat}"))

    model = ScriptedModel([calls_many(call("book", n=1), call("book", n=2)), says("ok")])
    bot = bot_of(model, [Book()])

    response = await bot.arun("x", thread_id="t")
    assert [(item["kind"], item["value"]) for item in response.pending] == [("seat", {"n": 1}), ("seat", {"n": 2})]
    ids = [item["id"] for item in response.pending]
    response = await bot.aresume("t", {ids[1]: "2B"})
    response = await bot.aresume("t", {ids[0]: "1A"})

    assert response.content == "ok"
    assert sorted(booked) == [(1, "1A"), (2, "2B")]
    assert [text for _, text, _ in results_in(model.inputs[1])] == ["booked 1A", "booked 2B"]


async def test_the_limit_of_node_executions_counts_on_after_a_pause() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("too late")], tools.all, recursion_limit=2)
    await paused(bot)

    response = await bot.aresume("t", True)

    assert (response.status, response.success, tools.ran) == ("limit", False, ["a"])
    assert [entry["seq"] for entry in response.node_trace] == [1, 2]


async def test_two_who_answer_at_once_run_the_call_once() -> None:
    tools = Tools()
    bot = bot_of([deletes("a"), says("ok")], tools.all)
    await paused(bot)

    results = await asyncio.gather(*(bot.aresume("t", True) for _ in range(5)), return_exceptions=True)

    assert tools.ran == ["a"]
    assert [result.content for result in results if not isinstance(result, Exception)] == ["ok"]


@pytest.mark.parametrize("thread_id", [7, b"t", ("t",)])
async def test_a_thread_is_named_by_a_text(thread_id: Any) -> None:
    bot = bot_of([])

    with pytest.raises(ConfigurationError, match="thread_id is"):
        await bot.arun("x", thread_id=thread_id)
    with pytest.raises(ConfigurationError, match="thread_id is"):
        bot.astream_events("x", thread_id=thread_id)
    with pytest.raises(ConfigurationError, match="thread_id is"):
        await bot.aresume(thread_id, True)
