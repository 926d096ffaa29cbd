"""Every way of running a bot gives the same run, whatever the model does."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.orchestrator._bots import events_of, pending_in, updates_of

from graphwright import GuardDecision, OrchestratorBot
from graphwright.exceptions import GraphExecutionError
from graphwright.messages import message_to_dict, problem_in
from graphwright.orchestrator.response import BotResponse
from graphwright.testing import (
    ScriptedModel,
    call,
    calls_many,
    empty,
    malformed,
    raises,
    refuses,
    says,
    truncated,
)

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def shout(text: str) -> str:
    """Shout."""
    return text.upper()


async def fails() -> str:
    """Fail."""
    raise ValueError("no")


add.risk_level = 0  # type: ignore[attr-defined]

CALLS = st.one_of(
    st.builds(lambda a: call("add", a=a), st.integers(0, 9)),
    st.builds(lambda text: call("shout", text=text), st.text("abc", max_size=3)),
    st.just(call("fails")),
    st.just(call("add", a="no number")),
    st.just(call("nowhere")),
    st.just(call("add", a=1).with_id("same")),
    st.just(call("set_plan", steps=["one", "two"])),
    st.just(call("update_step", step=1, status="done")),
    st.just(call("update_step", step=7, status="done")),
    st.just(call("ask_user", questions=[{"id": "q", "text": "Q?"}])),
    st.just(call("ask_user", questions="broken")),
)
TURNS = st.one_of(
    st.builds(lambda made: calls_many(*made), st.lists(CALLS, min_size=1, max_size=4)),
    st.builds(
        lambda made: calls_many(*made, text="Let me see.", thinking="hm"), st.lists(CALLS, min_size=1, max_size=2)
    ),
    st.sampled_from(["{", "null", '{"a": 1']).map(lambda raw: malformed("add", raw)),
    st.just(truncated("shout", '{"text": "ab')),
)
ENDS = st.one_of(
    st.just(says("The end.")),
    st.just(says("A SECRET end.", thinking="hm")),
    st.just(empty()),
    st.just(refuses("No.")),
    st.just(raises(PermissionError("bad key"))),
)
VERDICTS = st.sampled_from([says('{"approved": true}'), says('{"approved": false, "feedback": "more"}'), says("?")])
SCRIPTS = st.tuples(st.lists(TURNS, max_size=4), ENDS, st.lists(VERDICTS, min_size=2, max_size=2), ENDS)
FLAGS = st.fixed_dictionaries(
    {
        "enable_planning": st.booleans(),
        "enable_user_questions": st.booleans(),
        "enable_verification": st.booleans(),
        "mode": st.sampled_from(["auto", "ask", "plan"]),
        "limit": st.sampled_from([3, 50]),
        "guarded": st.sampled_from([None, "annotate", "block", "retry"]),
    }
)


def no_secret(text: str) -> GuardDecision:
    return GuardDecision.deny("a secret") if "SECRET" in text else GuardDecision.allow()


def make(script: Any, flags: dict[str, Any]) -> tuple[OrchestratorBot, ScriptedModel]:
    turns, end, verdicts, last = script
    left = {"turn": [*turns, end, last, last, last], "verdict": [*verdicts]}

    def answer(messages: list[Any]) -> Any:
        review = "review whether" in str(messages[0].content)
        waiting = left["verdict" if review else "turn"]
        return waiting.pop(0) if waiting else says("Beyond the script.")

    model = ScriptedModel.answering(answer)
    bot = OrchestratorBot(
        model,
        None,
        "x",
        [add, shout, fails],
        enable_planning=flags["enable_planning"],
        enable_user_questions=flags["enable_user_questions"],
        enable_verification=flags["enable_verification"],
        recursion_limit=flags["limit"],
        output_guards=[no_secret] if flags["guarded"] else None,
        output_guard_action=flags["guarded"] or "annotate",
    )
    return bot, model


def answers_for(pending: list[Any]) -> dict[str, Any]:
    """Approve every second call, and answer every question."""
    given: dict[str, Any] = {}
    for place, item in enumerate(pending):
        kind, item_id = (item["kind"], item["id"]) if isinstance(item, dict) else (item.kind, item.id)
        given[item_id] = {"q": "yes"} if kind == "question" else place % 2 == 0
    return given


async def by_arun(bot: OrchestratorBot, mode: str) -> BotResponse:
    response = await bot.arun("go", thread_id="t", mode=mode)
    while response.status == "paused":
        response = await bot.aresume("t", answers_for(response.pending))
    return response


async def by_run(bot: OrchestratorBot, mode: str) -> BotResponse:
    response = bot.run("go", thread_id="t", mode=mode)
    while response.status == "paused":
        response = await bot.aresume("t", answers_for(response.pending))
    return response


async def by_start(bot: OrchestratorBot, mode: str) -> BotResponse:
    run = bot.start("go", thread_id="t", mode=mode)
    response = await run.result()
    while response.status == "paused":
        for item_id, answer in answers_for(run.pending).items():
            await run.answer(item_id, answer)
        response = await run.result()
    return response


async def by_stream(bot: OrchestratorBot, mode: str) -> BotResponse:
    """Add up what the stream says, as a user interface would."""
    goal: str | None = "go"
    parts: dict[str, Any] = {"tools": [], "events": [], "trace": [], "usage": {}, "plan": [], "thinking": ""}
    error: GraphExecutionError | None = None
    limit = False
    while True:
        items = []
        try:
            async for item in bot.astream_events(goal, mode=mode, thread_id="t"):
                items.append(item)
        except GraphExecutionError as failure:
            error = failure
        _add_up(items, parts)
        pending = pending_in(items)
        limit = bool(events_of(items, "limit_reached"))
        if not pending:
            break
        goal = None
        bot.set_resume_command(answers_for(pending))
    state = (await bot.graph.aget_state({"configurable": {"thread_id": "t"}})).values
    whole = error.response if error is not None else None  # type: ignore[attr-defined]
    response = BotResponse(
        state["final_report"] if error is None and not limit else "",
        success=False,
        status="limit" if limit else "failed" if error is not None else "completed",
        tools_executed=parts["tools"],
        token_usage=parts["usage"],
        plan=parts["plan"],
        guard_events=parts["events"],
        node_trace=parts["trace"],
    )
    if whole is not None:
        assert whole.tools_executed == response.tools_executed
        assert whole.token_usage == response.token_usage
        response["error"] = whole["error"]
    return response


def _add_up(items: list[tuple[str, Any]], parts: dict[str, Any]) -> None:
    for mode, payload in items:
        if mode != "updates" or "__interrupt__" in payload:
            continue
        for update in payload.values():
            parts["tools"] += update.get("tools_executed", [])
            parts["events"] += update.get("guard_events", [])
            parts["trace"] += update.get("node_trace", [])
            parts["plan"] = update.get("plan", parts["plan"])
            for name, count in update.get("token_usage", {}).items():
                parts["usage"][name] = parts["usage"].get(name, 0) + count
    assert [entry["node"] for entry in parts["trace"]][-len(events_of(items, "node_invoked")) :] == [
        event["node"] for event in events_of(items, "node_invoked")
    ] or not events_of(items, "node_invoked")
    assert all(update["messages"] is not None for update in updates_of(items, "agent") if "messages" in update)


def shown(response: BotResponse, *, whole: bool) -> dict[str, Any]:
    """Return what has to agree; what a stream alone does not say is left out for it."""
    found: dict[str, Any] = {
        "tools": response.tools_executed,
        "usage": response.token_usage,
        "plan": response.plan,
        "events": [{key: event[key] for key in event if key != "ts"} for event in response.guard_events],
        "trace": [{"node": e["node"], "seq": e["seq"], "detail": _timeless(e["detail"])} for e in response.node_trace],
        "status": response.status,
    }
    if whole or response.status == "failed":
        found["error"] = response.get("error")
    if response.status == "completed":
        found["content"] = response.content
    if whole:
        found |= {"success": response.success, "thinking": response.thinking, "content": response.content}
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if key != "ts"}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def plain(messages: Any) -> list[Any]:
    """Return messages as data, without what the clock and chance put into them."""
    text = json.dumps([_timeless(message_to_dict(message)) for message in messages])
    found: list[Any] = json.loads(re.sub(r"call_[0-9a-f]{32}", "made up", text))
    return found


async def messages_of(bot: OrchestratorBot) -> list[Any]:
    state = (await bot.graph.aget_state({"configurable": {"thread_id": "t"}})).values
    assert problem_in([*state["messages"]]) is None
    return plain(state["messages"])


@SETTINGS
@given(script=SCRIPTS, flags=FLAGS)
async def test_run_arun_start_and_the_stream_agree(script: Any, flags: dict[str, Any]) -> None:
    found = []
    for way in (by_arun, by_run, by_start, by_stream):
        bot, model = make(script, flags)
        response = await way(bot, flags["mode"])
        model.assert_done()
        sent = [plain(messages) for messages in model.inputs]
        found.append((response, await messages_of(bot), sent))

    (first, *others) = found
    for response, messages, sent in others:
        streamed = response is found[-1][0]
        assert shown(response, whole=not streamed) == shown(first[0], whole=not streamed)
        assert messages == first[1]
        assert sent == first[2]
    assert first[0].success is False or first[0].status == "completed"


@SETTINGS
@given(script=SCRIPTS, flags=FLAGS, at=st.integers(0, 12))
async def test_a_stream_that_is_aborted_anywhere_leaves_a_thread_that_goes_on(
    script: Any, flags: dict[str, Any], at: int
) -> None:
    bot, model = make(script, flags)
    items = []
    try:
        async for item in bot.astream_events("go", mode=flags["mode"], thread_id="t"):
            items.append(item)
            if len(items) == at:
                bot.abort()
    except GraphExecutionError:
        pass
    if pending_in(items):
        await bot.abandon("t")

    assert len(events_of(items, "aborted")) <= 1
    if events_of(items, "aborted"):
        assert items[-1][1]["type"] == "aborted"
    model._answer = lambda _: says("going on")  # type: ignore[assignment]
    response = await bot.arun("next", thread_id="t", mode="auto")
    assert problem_in(model.inputs[-1]) is None
    assert response.status in ("completed", "limit")
    model.assert_done()


@pytest.mark.parametrize("many", [20])
async def test_the_ways_agree_also_side_by_side(many: int) -> None:
    script = ([calls_many(call("shout", text="a"), call("add", a=1))], says("The end."), [], says("x"))
    flags = {
        "enable_planning": True,
        "enable_user_questions": False,
        "enable_verification": False,
        "limit": 50,
        "guarded": None,
        "mode": "ask",
    }

    async def one(way: Any) -> Any:
        bot, _ = make(script, flags)
        return shown(await way(bot, "ask"), whole=False)

    results = await asyncio.gather(*(one((by_arun, by_start, by_stream)[n % 3]) for n in range(many)))

    assert all(result == results[0] for result in results)
