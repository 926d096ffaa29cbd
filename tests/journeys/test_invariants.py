"""What holds for every run, whatever the model does: properties over random scripts."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphwright.agent import Agent, build_agent
from graphwright.exceptions import GraphwrightError
from graphwright.messages import message_to_dict, problem_in
from graphwright.run_events import ViewChanged
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

# One event loop is used for all examples of a test.
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def shout(text: str) -> str:
    """Shout."""
    return text.upper()


def fails(why: str = "x") -> str:
    """Fail."""
    raise ValueError(why)


async def gone() -> str:
    """Be cancelled from inside."""
    raise asyncio.CancelledError


TOOLS = [add, shout, fails, gone]

CALLS = st.one_of(
    st.builds(lambda a: call("add", a=a), st.integers(0, 9)),
    st.builds(lambda text: call("shout", text=text), st.text(max_size=5)),
    st.just(call("shout", wrong=1)),
    st.just(call("add", a="not a number")),
    st.just(call("fails")),
    st.just(call("gone")),
    st.just(call("shuot", text="x")),
    st.just(call("add", a=1).with_id("same")),
    st.just(call("add", a=2).with_id(None)),
)
TURNS = st.one_of(
    st.builds(lambda made: calls_many(*made), st.lists(CALLS, min_size=1, max_size=4)),
    st.builds(lambda made: calls_many(*made, text="Let me see."), st.lists(CALLS, min_size=1, max_size=2)),
    st.sampled_from(["{", "null", "[1]", '{"a": 1', '"x"']).map(lambda raw: malformed("add", raw)),
    st.sampled_from(['{"a": 1', '{"text": "ab']).map(lambda raw: truncated("shout", raw)),
)
ENDS = st.one_of(
    st.just(says("The end.")),
    st.just(says("The end.", thinking="hm")),
    st.just(empty()),
    st.just(refuses("No.")),
    st.just(raises(PermissionError("bad key"))),
    st.builds(lambda made: calls_many(*made), st.lists(CALLS, min_size=1, max_size=2)),
)
SCRIPTS = st.tuples(st.lists(TURNS, max_size=4), ENDS)


@dataclass
class Outcome:
    """Everything about a run that must not depend on how it was run."""

    messages: list[Any]
    usage: Any
    error: tuple[str, str] | None
    requests: int


def plain(messages: list[Any]) -> list[Any]:
    """Return messages as data, with ids that were made up on the way numbered in order."""
    ids: dict[str, str] = {}
    shown = []
    for message in messages:
        data = message_to_dict(message)["data"]
        data["id"] = None
        for made in data.get("tool_calls") or []:
            made["id"] = ids.setdefault(made["id"], f"id{len(ids)}")
        if data.get("tool_call_id"):
            data["tool_call_id"] = ids.setdefault(data["tool_call_id"], f"id{len(ids)}")
        data["response_metadata"] = {}
        shown.append(data)
    return shown


async def outcome(how: str, steps: list[Any], **options: Any) -> tuple[Outcome, ScriptedModel]:
    model = ScriptedModel(steps)
    agent = await build_agent(model=model, extra_tools=TOOLS, max_agent_iterations=len(steps), **options)
    error: BaseException | None = None
    messages: list[Any] = []
    usage = None
    try:
        messages, usage = await WAYS[how](agent)
    except GraphwrightError as caught:
        error = caught
        messages = getattr(caught, "messages", [])
    told = (type(error).__name__, str(error)) if error is not None else None
    return Outcome(plain(messages), usage, told, len(model.requests)), model


async def by_ainvoke(agent: Agent) -> Any:
    result = await agent.ainvoke("go")
    return result.messages, result.usage.as_dict()


async def by_invoke(agent: Agent) -> Any:
    result = await asyncio.to_thread(agent.invoke, "go")
    return result.messages, result.usage.as_dict()


async def by_astream(agent: Agent) -> Any:
    last: Any = {}
    async for chunk in agent.astream("go"):
        last = chunk
    return last["messages"], None


async def by_start(agent: Agent) -> Any:
    run = agent.start("go")
    async for _ in run.events():
        pass
    result = await run.result()
    return result.messages, result.usage.as_dict()


async def by_tools(agent: Agent) -> Any:
    run = agent.start("go")
    result = await run.result()
    return result.messages, result.usage.as_dict()


async def by_engine_events(agent: Agent) -> Any:
    from graphwright.engine.execution import ValuesView

    last: Any = {}
    values = ValuesView()
    stream = agent._engine.stream(lambda emit: agent._engine.run("go", emit=emit), values)
    async for chunk in stream:
        last = chunk
    return last["messages"], None


WAYS = {
    "ainvoke": by_ainvoke,
    "invoke": by_invoke,
    "astream": by_astream,
    "start, read": by_start,
    "start, unread": by_tools,
    "engine": by_engine_events,
}


@SETTINGS
@given(script=SCRIPTS)
async def test_every_way_of_running_gives_the_same_messages_usage_and_errors(script: Any) -> None:
    turns, end = script
    first, _ = await outcome("ainvoke", [*turns, end])
    for how in WAYS:
        other, _ = await outcome(how, [*turns, end])
        assert other.messages == first.messages, how
        assert other.error == first.error, how
        assert other.requests == first.requests, how
        if other.usage is not None:
            assert other.usage == first.usage, how


@SETTINGS
@given(script=SCRIPTS, how=st.sampled_from(sorted(WAYS)))
async def test_a_strict_provider_accepts_whatever_a_model_is_given(script: Any, how: str) -> None:
    turns, end = script
    _, model = await outcome(how, [*turns, end])
    for given_messages in model.inputs:
        assert problem_in(given_messages) is None


@SETTINGS
@given(script=SCRIPTS, when=st.integers(0, 12))
async def test_a_run_that_is_aborted_anywhere_leaves_a_conversation_that_a_strict_provider_accepts(
    script: Any, when: int
) -> None:
    turns, end = script
    agent = await build_agent(model=ScriptedModel([*turns, end]), extra_tools=TOOLS, max_agent_iterations=9)
    run = agent.start("go")
    for _ in range(when):
        await asyncio.sleep(0)
    run.abort()
    try:
        messages = (await run.result()).messages
    except GraphwrightError:
        messages = run.messages
    assert not messages or problem_in(messages) is None


@SETTINGS
@given(script=SCRIPTS)
async def test_between_two_model_calls_of_a_run_the_earlier_messages_stay_as_they_were(script: Any) -> None:
    turns, end = script
    _, model = await outcome("astream", [*turns, end], context_compaction=False)
    for earlier, later in zip(model.inputs, model.inputs[1:], strict=False):
        assert [message_to_dict(m) for m in later[: len(earlier)]] == [message_to_dict(m) for m in earlier]


@SETTINGS
@given(script=SCRIPTS, after=st.integers(1, 3))
async def test_what_was_shown_before_changes_only_where_an_event_says_so(script: Any, after: int) -> None:
    turns, end = script
    model = ScriptedModel([*turns, *turns, end])
    agent = await build_agent(model=model, extra_tools=TOOLS, max_agent_iterations=9, context_compaction=after)
    run = agent.start("go")
    told = 0
    try:
        async for event in run.events():
            told += isinstance(event, ViewChanged)
        await run.result()
    except GraphwrightError:
        pass
    seen = [[message_to_dict(message) for message in given_messages] for given_messages in model.inputs]
    assert told == sum(later[: len(earlier)] != earlier for earlier, later in pairwise(seen))
    assert [problem_in(given_messages) for given_messages in model.inputs] == [None] * len(model.inputs)
    assert all("go" in [message.content for message in given_messages] for given_messages in model.inputs)


async def test_each_tool_call_of_a_turn_has_one_result_in_the_order_asked_in_twenty_runs() -> None:
    async def nap(ms: int) -> str:
        """Sleep."""
        await asyncio.sleep(ms / 1000)
        return str(ms)

    seen = set()
    for _ in range(20):
        model = ScriptedModel([calls_many(*(call("nap", ms=ms).with_id(f"c{ms}") for ms in (30, 2, 15))), says("ok")])
        await (await build_agent(model=model, extra_tools=[nap])).ainvoke("go")
        seen.add(str([message_to_dict(message) for message in model.inputs[1]]))
    assert len(seen) == 1
    assert [m.tool_call_id for m in model.inputs[1][-3:]] == ["c30", "c2", "c15"]


@pytest.mark.parametrize("listening", [False, True])
async def test_nothing_is_kept_for_each_event_or_each_run(listening: bool) -> None:
    model = ScriptedModel.answering(
        lambda messages: says("word " * 50) if len(messages) > 6 else calls_many(call("shout", text="x")), strict=False
    )
    agent = await build_agent(model=model, extra_tools=TOOLS)

    async def run() -> None:
        model.requests.clear()
        if listening:
            async for _ in agent.astream_with_tools("go"):
                pass
        else:
            await agent.ainvoke("go")

    for _ in range(5):
        await run()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(30):
        await run()
    gc.collect()
    assert len(gc.get_objects()) - before < 300


async def test_ids_that_repeat_in_a_later_turn_are_new_calls() -> None:
    count = 0

    def tick() -> str:
        """Tick."""
        nonlocal count
        count += 1
        return str(count)

    same = calls_many(call("tick").with_id("call_0"))
    model = ScriptedModel([same, same, says("ok")])
    result = await (await build_agent(model=model, extra_tools=[tick])).ainvoke("go")
    assert count == 2
    assert [m.content for m in result.messages if m.type == "tool"] == ["1", "2"]
    assert [m.type for m in result.messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
