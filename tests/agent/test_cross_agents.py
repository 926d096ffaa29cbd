"""Agents that ask agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright import CallerContext, ConfigurationError, build_agent, get_current_caller
from graphwright.cross_agent import CrossAgent, get_delegation_chain
from graphwright.engine.interrupt import interrupt
from graphwright.run_events import RunPaused, ToolStarted
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, call, calls, calls_many, says
from graphwright.tools import tool


async def peer(*steps: Any, **options: Any) -> Any:
    return await build_agent(model=ScriptedModel(list(steps)), **options)


async def test_a_peer_is_a_tool_and_its_answer_the_result() -> None:
    asked = ScriptedModel([says("Paris.")])
    expert = await build_agent(model=asked)
    model = ScriptedModel(
        [calls("ask_agent_geo", message="Capital of France?", context={"lang": "en"}), says("It is Paris.")]
    )
    agent = await build_agent(model=model, cross_agents={"geo": CrossAgent(expert, "knows capitals")})

    result = await agent.ainvoke("Where?")

    assert result.text == "It is Paris."
    assert [message.content for message in result.messages if message.type == "tool"] == ["Paris."]
    read = asked.requests[0].messages[-1].content
    assert read.startswith("Capital of France?")
    assert '"lang": "en"' in read
    assert "knows capitals" in model.requests[0].tools[0].description
    assert_valid_conversation(result.messages)


async def test_what_a_peer_uses_counts_for_the_run_that_asked() -> None:
    agent = await build_agent(
        model=ScriptedModel([calls("ask_agent_a", message="x"), says("done")]),
        cross_agents={"a": CrossAgent(await peer(says("y")))},
    )

    result = await agent.ainvoke("go")

    assert result.usage.total_tokens == 3 * 15


async def test_a_peer_sees_the_caller_who_asked_and_the_way_the_request_came() -> None:
    seen: list[Any] = []

    async def look() -> str:
        """Look around."""
        caller = get_current_caller()
        seen.append((caller.user_id if caller else None, get_delegation_chain()))
        return "seen"

    inner = await peer(calls("look"), says("inner"), extra_tools=[look])
    middle = await peer(
        calls("ask_agent_inner", message="x"), says("middle"), cross_agents={"inner": CrossAgent(inner)}
    )
    outer = await peer(
        calls("ask_agent_middle", message="x"), says("outer"), cross_agents={"middle": CrossAgent(middle)}
    )

    result = await outer.ainvoke("go", caller=CallerContext(user_id="ann"))

    assert result.text == "outer"
    assert seen == [("ann", ("middle", "inner"))]
    assert get_delegation_chain() == ()


async def test_a_request_is_not_passed_on_more_often_than_it_may_be() -> None:
    told = ScriptedModel([calls("ask_agent_deep", message="x"), says("I could not ask.")])
    middle = await build_agent(
        model=told, cross_agents={"deep": CrossAgent(await peer(says("deep")))}, max_delegation_depth=1
    )
    outer = await peer(
        calls("ask_agent_middle", message="x"),
        says("ok"),
        cross_agents={"middle": CrossAgent(middle)},
        max_delegation_depth=1,
    )

    result = await outer.ainvoke("go")

    assert result.text == "ok"
    refused = told.requests[1].messages[-1]
    assert refused.status == "error"
    assert "1 times at most" in refused.content


async def test_two_peers_that_ask_each_other_do_not_go_round() -> None:
    a_model = ScriptedModel([calls("ask_agent_b", message="x"), says("a")])
    b_model = ScriptedModel([calls("ask_agent_a", message="x"), says("b")])
    peers: dict[str, Any] = {}

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            return await peers[self.name].ainvoke(*args, **kwargs)

    to_a, to_b = Named("a"), Named("b")
    peers["a"] = await build_agent(model=a_model, cross_agents={"b": CrossAgent(to_b)}, max_delegation_depth=5)
    peers["b"] = await build_agent(model=b_model, cross_agents={"a": CrossAgent(to_a)}, max_delegation_depth=5)
    outer = await peer(calls("ask_agent_a", message="x"), says("end"), cross_agents={"a": CrossAgent(to_a)})

    await outer.ainvoke("go")

    refused = b_model.requests[1].messages[-1]
    assert refused.status == "error"
    assert "at work on this very request" in refused.content


async def test_a_peer_that_takes_too_long_is_an_error_that_the_model_reads() -> None:
    stopped = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    slow = await peer(calls("wait"), says("late"), extra_tools=[wait])
    model = ScriptedModel([calls("ask_agent_slow", message="x"), says("went on")])
    agent = await build_agent(model=model, cross_agents={"slow": CrossAgent(slow)}, delegation_timeout=0.05)

    result = await agent.ainvoke("go")

    assert result.text == "went on"
    assert "timed out after 0.05 s" in model.requests[1].messages[-1].content
    assert stopped.is_set()


async def test_events_of_a_peer_say_where_they_belong_and_its_words_are_not_the_answer() -> None:
    async def look() -> str:
        """Look."""
        return "x"

    inner = await peer(calls("look"), says("words of the peer"), extra_tools=[look])
    agent = await peer(calls("ask_agent_p", message="x"), says("my own"), cross_agents={"p": CrossAgent(inner)})

    run = agent.start("go")
    started = [(event.call.name, event.path) async for event in run.events() if isinstance(event, ToolStarted)]
    again = await peer(
        calls("ask_agent_p", message="x"), says("my own"), cross_agents={"p": CrossAgent(await peer(says("p")))}
    )
    tokens = [event.text async for event in again.astream_with_tools("go") if event.type == "token"]

    assert started == [("ask_agent_p", ""), ("look", "reason/@p")]
    assert "".join(tokens) == "my own"


async def test_what_a_peer_asks_a_person_surfaces_at_the_top_and_is_answered_there() -> None:
    did: list[str] = []

    async def seat(flight: str) -> str:
        """Book a seat."""
        answer = await interrupt("seat", {"flight": flight})
        did.append(answer)
        return f"seat {answer}"

    book = tool(seat)
    book.reenterable = True
    model = ScriptedModel([calls("seat", flight="F1"), says("booked")])
    agent = await peer(
        calls("ask_agent_travel", message="x"),
        says("all done"),
        cross_agents={"travel": CrossAgent(await build_agent(model=model, extra_tools=[book]))},
        runlog=MemoryRunLog(),
    )
    paused = await agent.ainvoke("go", session_id="trip")

    result = await agent.resume("trip", "12A")

    assert (paused.status, [item.value for item in paused.pending]) == ("paused", [{"flight": "F1"}])
    assert (result.text, did, len(model.requests)) == ("all done", ["12A"], 2)


async def test_aborting_the_run_stops_the_peer() -> None:
    working, stopped = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    agent = await peer(
        calls("ask_agent_p", message="x"),
        cross_agents={"p": CrossAgent(await peer(calls("wait"), extra_tools=[wait]))},
    )
    run = agent.start("go")
    await working.wait()

    run.abort()

    with pytest.raises(Exception, match="was ended before it had an answer"):
        await run.result()
    assert stopped.is_set()


async def test_a_broadcast_asks_everybody_and_one_failure_does_not_take_the_other_answers() -> None:
    class Broken:
        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("no network")

    model = ScriptedModel([calls("broadcast_to_agents", message="who?"), says("done")])
    agent = await build_agent(
        model=model,
        cross_agents={"a": CrossAgent(await peer(says("I am a"))), "b": CrossAgent(Broken())},
        include_broadcast=True,
    )

    await agent.ainvoke("go")

    said = model.requests[1].messages[-1].content
    assert said == "a: I am a\n\nb: no answer (RuntimeError: no network)"


async def test_pauses_of_several_peers_of_a_broadcast_are_asked_at_once() -> None:
    async def seat(flight: str) -> str:
        """Book."""
        return str(await interrupt("seat", {"flight": flight}))

    book = tool(seat)
    book.reenterable = True
    models = [ScriptedModel([calls("seat", flight=name), says(f"{name} booked")]) for name in "ab"]
    peers = {
        name: CrossAgent(await build_agent(model=model, extra_tools=[book]))
        for name, model in zip("ab", models, strict=True)
    }
    agent = await build_agent(
        model=ScriptedModel([calls("broadcast_to_agents", message="x"), says("done")]),
        cross_agents=peers,
        include_broadcast=True,
        runlog=MemoryRunLog(),
    )
    paused = await agent.ainvoke("go", session_id="s")

    result = await agent.resume("s", {item.id: f"seat {item.value['flight']}" for item in paused.pending})

    assert [item.value["flight"] for item in paused.pending] == ["a", "b"]
    assert result.text == "done"
    assert [len(model.requests) for model in models] == [2, 2]


async def test_several_peers_in_one_turn_run_side_by_side() -> None:
    gate = asyncio.Barrier(2)

    async def meet() -> str:
        """Meet."""
        await gate.wait()
        return "met"

    both = {name: CrossAgent(await peer(calls("meet"), says(name), extra_tools=[meet])) for name in "ab"}
    agent = await peer(
        calls_many(call("ask_agent_a", message="x"), call("ask_agent_b", message="x")), says("end"), cross_agents=both
    )

    result = await asyncio.wait_for(agent.ainvoke("go"), 5)

    assert [message.content for message in result.messages if message.type == "tool"] == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cross_agents": {"a b": CrossAgent(object())}}, "'a b' does not fit"),
        ({"cross_agents": {"a": object()}}, "give a CrossAgent"),
        ({"cross_agents": {"a": CrossAgent(object())}}, "has no ainvoke"),
        ({"include_broadcast": True}, "there are no cross_agents"),
        ({"max_delegation_depth": 0}, "max_delegation_depth is 0"),
        ({"delegation_timeout": -1}, "delegation_timeout is -1"),
    ],
)
async def test_what_does_not_fit_is_refused_when_the_agent_is_built(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        await build_agent(model=ScriptedModel([]), **options)


async def test_a_pause_is_told_once_in_the_outer_stream() -> None:
    async def seat(flight: str) -> str:
        """Book."""
        return str(await interrupt("seat", {"flight": flight}))

    book = tool(seat)
    book.reenterable = True
    agent = await peer(
        calls("ask_agent_p", message="x"),
        says("end"),
        cross_agents={"p": CrossAgent(await peer(calls("seat", flight="F"), says("ok"), extra_tools=[book]))},
        runlog=MemoryRunLog(),
    )
    run = agent.start("go")

    pauses = [event async for event in run.events() if isinstance(event, RunPaused)]

    assert len(pauses) == 1
