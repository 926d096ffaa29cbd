"""Every stream: its events, its end, and what a reader who leaves does to the run."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
from typing import Any

import pytest

from graphwright.agent import CallerContext, build_agent, get_current_caller
from graphwright.engine import GraphExecutionError, PromptGraph, PromptGraphEngine, build_react_graph, node
from graphwright.exceptions import ModelError
from graphwright.messages import AIMessage, text_of
from graphwright.streaming import (
    DoneEvent,
    ErrorEvent,
    RestartEvent,
    RetryEvent,
    StreamEvent,
    TokenEvent,
    ToolEndEvent,
    ToolStartEvent,
)
from graphwright.testing import (
    ScriptedModel,
    call,
    calls,
    calls_many,
    malformed,
    raises,
    raises_midstream,
    says,
    truncated,
)


async def search_customers(name: str) -> dict[str, Any]:
    """Search."""
    return {"id": 7, "name": name, "city": "Oslo", "age": 3}


def broken() -> str:
    """Fail."""
    raise ValueError("bad id")


async def agent_of(*steps: Any, tools: Any = (search_customers, broken), **options: Any) -> Any:
    return await build_agent(model=ScriptedModel(steps), extra_tools=list(tools), **options)


async def all_of(stream: Any) -> list[Any]:
    return [event async for event in stream]


async def test_the_stream_with_tools_tells_calls_text_and_end() -> None:
    agent = await agent_of(calls("search_customers", name="Ada"), says("It is Ada.", chunks=["It ", "is ", "Ada."]))
    events = await all_of(agent.astream_with_tools("who?"))
    assert [event.type for event in events] == ["tool_start", "tool_end", "token", "token", "token", "done"]
    start, end, *tokens, done = events
    assert isinstance(start, ToolStartEvent)
    assert (start.tool_name, start.tool_display_name, start.arguments, start.tool_index) == (
        "search_customers",
        "Searching customers",
        {"name": "Ada"},
        0,
    )
    assert isinstance(end, ToolEndEvent)
    assert (end.tool_name, end.tool_summary, end.success, end.tool_index, end.reused) == (
        "search_customers",
        "id: 7, name: Ada, city: Oslo (+1 more)",
        True,
        0,
        False,
    )
    assert [(token.text, token.cumulative_text) for token in tokens] == [
        ("It ", "It "),
        ("is ", "It is "),
        ("Ada.", "It is Ada."),
    ]
    assert isinstance(done, DoneEvent)
    assert done.full_response == "It is Ada."
    assert done.tool_calls == [{"name": "search_customers", "summary": end.tool_summary, "success": True}]
    assert done.cache_hit is False
    for event in events:
        assert json.loads(event.to_json())["type"] == event.type
    assert json.loads(tokens[1].to_json())["cumulative_text"] == "It is "


async def test_arguments_can_be_left_out_and_names_chosen() -> None:
    agent = await agent_of(calls("search_customers", name="Ada"), says("ok"))
    events = await all_of(
        agent.astream_with_tools("x", include_arguments=False, tool_display_names={"search_customers": "Looking"})
    )
    assert (events[0].arguments, events[0].tool_display_name) == ({}, "Looking")


async def test_three_calls_of_which_one_fails_have_three_starts_and_three_ends() -> None:
    agent = await agent_of(
        calls_many(call("search_customers", name="a"), call("broken"), call("search_customers", name="c")), says("ok")
    )
    events = await all_of(agent.astream_with_tools("go"))
    starts = {event.tool_index: event.tool_name for event in events if event.type == "tool_start"}
    ends = {event.tool_index: event for event in events if event.type == "tool_end"}
    assert starts == {0: "search_customers", 1: "broken", 2: "search_customers"}
    assert [ends[index].success for index in range(3)] == [True, False, True]
    assert ends[1].tool_summary == "Tool call failed"
    assert events[-1].full_response == "ok"


async def test_thinking_is_no_token() -> None:
    agent = await agent_of(says("Hello you", thinking="plan"))
    events = await all_of(agent.astream_with_tools("hi"))
    assert "".join(event.text for event in events if event.type == "token") == "Hello you"
    assert events[-1].full_response == "Hello you"


async def test_a_failure_is_an_error_event_and_then_the_exception() -> None:
    agent = await agent_of(raises(PermissionError("key sk-123 rejected")))
    events: list[StreamEvent] = []
    with pytest.raises(GraphExecutionError) as caught:
        async for event in agent.astream_with_tools("hi"):
            events.append(event)
    assert [event.type for event in events] == ["error"]
    assert isinstance(events[0], ErrorEvent)
    assert "sk-123" not in events[0].message
    assert events[0].recoverable is False
    assert isinstance(caught.value.__cause__, PermissionError)


async def test_a_retry_after_shown_text_tells_the_reader_to_drop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphwright._internal import clock

    async def no_wait(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(clock, "sleep", no_wait)
    overloaded = ModelError("overloaded", retryable=True, status=529)
    agent = await agent_of(raises_midstream("The first half", overloaded), says("Whole."))
    events = await all_of(agent.astream_with_tools("hi"))
    kinds = [event.type for event in events]
    assert [kind for kind in kinds if kind != "token"] == ["retry", "restart", "done"]
    retry = next(event for event in events if isinstance(event, RetryEvent))
    restart = next(event for event in events if isinstance(event, RestartEvent))
    assert retry.attempt == 1
    assert restart.dropped == "The first half"
    last = [event for event in events if isinstance(event, TokenEvent)][-1]
    assert last.cumulative_text == events[-1].full_response == "Whole."


@pytest.mark.parametrize(
    "step",
    [
        malformed("save_note", '{"title": "Plan", "bo'),
        truncated("save_note", '{"title": "Plan", "body": "first li'),
        malformed("save_note", "null"),
        malformed("save_note", "[]"),
        malformed("save_note", '"x"'),
        malformed("save_note", "5"),
        malformed("save_note", '{"t":1}{"t":1}'),
    ],
)
@pytest.mark.parametrize("how", ["ainvoke", "astream_with_tools"])
async def test_a_call_that_the_model_did_not_finish_never_runs(step: Any, how: str) -> None:
    saved = []

    def save_note(title: str = "none", body: str = "") -> str:
        """Save."""
        saved.append((title, body))
        return "saved"

    model = ScriptedModel([step, calls("save_note", title="whole"), says("done")])
    agent = await build_agent(model=model, extra_tools=[save_note])
    if how == "ainvoke":
        assert (await agent.ainvoke("go")).text == "done"
    else:
        assert (await all_of(agent.astream_with_tools("go")))[-1].full_response == "done"
    assert saved == [("whole", "")]
    assert model.inputs[1][-1].status == "error"
    model.assert_done()


@pytest.mark.parametrize("answering", ["schema", "node", "message"])
async def test_done_has_the_answer_however_it_was_made(answering: str) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        """An answer."""

        text: str

    if answering == "schema":
        agent = await agent_of(calls("final_answer", text="hi"), output_schema=Answer)
    else:

        @node("a", is_entry=True)
        async def a(state: Any) -> Any:
            if answering == "message":
                state.messages.append(AIMessage(content='{"text": "hi"}'))
                return None
            return {"text": "hi"}

        agent = await agent_of(agent_pattern=PromptGraph(nodes=[a]))
    events = await all_of(agent.astream_with_tools("go"))
    assert events[-1].full_response == '{"text": "hi"}'


# values


async def test_values_come_after_each_node_and_the_last_is_what_invoke_returns() -> None:
    @node("a", is_entry=True, default_next="b")
    async def a(state: Any) -> None:
        state.messages.append(AIMessage(content="draft"))

    @node("b")
    async def b() -> None:
        return None

    engine = PromptGraphEngine(PromptGraph(nodes=[a, b]))
    chunks = await all_of(engine.astream("go"))
    assert [len(chunk["messages"]) for chunk in chunks] == [2, 2]
    result = await engine.ainvoke("go")
    assert [text_of(m) for m in chunks[-1]["messages"]] == [text_of(m) for m in result["messages"]]

    @node("c", is_entry=True)
    async def c() -> str:
        return "made at the end"

    engine = PromptGraphEngine(PromptGraph(nodes=[c]))
    chunks = await all_of(engine.astream("go"))
    assert text_of(chunks[-1]) == (await engine.ainvoke("go")).text == "made at the end"


async def test_values_of_a_failed_run_end_with_the_last_good_node() -> None:
    @node("a", is_entry=True, default_next="b")
    async def a(state: Any) -> None:
        state.messages.append(AIMessage(content="draft"))

    @node("b")
    async def b() -> None:
        raise ValueError("no")

    chunks = []
    with pytest.raises(GraphExecutionError):
        async for chunk in PromptGraphEngine(PromptGraph(nodes=[a, b])).astream("go"):
            chunks.append(chunk)
    assert len(chunks) == 1


# events


async def test_v2_events_pair_starts_and_ends_and_carry_the_chunks() -> None:
    model = ScriptedModel([calls_many(call("search_customers", name="a"), call("broken")), says("It is Ada.")])
    engine = PromptGraphEngine(build_react_graph([search_customers, broken]), model)
    events = await all_of(engine.astream_events("go", version="v2"))
    assert all(set(event) == {"event", "name", "run_id", "data"} for event in events)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "on_node_start"
    assert kinds[-1] == "on_node_end"
    starts = [e["data"]["run_id"] for e in events if e["event"] == "on_tool_start"]
    ends = [e["data"]["run_id"] for e in events if e["event"] in ("on_tool_end", "on_tool_error")]
    assert sorted(starts) == sorted(ends)
    assert len(set(starts)) == 2
    end = next(e for e in events if e["event"] == "on_tool_end")
    assert end["data"]["status"] == "success"
    assert end["data"]["duration_ms"] >= 0
    error = next(e for e in events if e["event"] == "on_tool_error")
    assert "bad id" in error["data"]["error"]
    chunks = [e["data"] for e in events if e["event"] == "on_chat_model_stream"]
    assert "".join(chunk["chunk"].content for chunk in chunks) == "It is Ada."
    assert len({chunk["run_id"] for chunk in chunks}) == 1
    assert len(model.requests) == 2


# leaving


async def waits_for_ever() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return ""


async def test_a_reader_who_closes_the_stream_ends_the_run_and_waits_for_its_clean_up() -> None:
    started, cleaned = asyncio.Event(), []

    async def slow() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(1)
        return ""

    agent = await agent_of(calls("slow"), tools=[slow])
    stream = agent.astream_with_tools("go")
    assert (await anext(stream)).type == "tool_start"
    reading = asyncio.create_task(all_of(stream))
    await started.wait()
    await stream.aclose()
    assert cleaned == [1]
    assert await reading == []
    await stream.aclose()
    assert await all_of(stream) == []


@pytest.mark.parametrize("how", ["astream", "astream_with_tools"])
async def test_a_reader_who_breaks_off_ends_the_run_and_nothing_is_logged(how: str) -> None:
    loop = asyncio.get_running_loop()
    problems: list[Any] = []
    loop.set_exception_handler(lambda _, context: problems.append(context))
    stopped = asyncio.Event()

    async def slow(n: int) -> str:
        """Wait."""
        if n == 1:
            return "1"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    agent = await agent_of(calls("slow", n=1), calls("slow", n=2), tools=[slow])
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outer")
    async for _ in getattr(agent, how)("go", caller=CallerContext(user_id="ada")):
        assert get_current_caller() is None
        if how == "astream":
            break
        await asyncio.sleep(0)
        if _.type == "tool_end":
            break
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert problems == []
    assert variable.get() == "outer"


async def test_a_cancelled_reader_takes_the_run_with_it() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    agent = await agent_of(calls("slow"), tools=[slow])
    reader = asyncio.create_task(all_of(agent.astream_with_tools("go")))
    await started.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert stopped.is_set()


async def test_a_slow_reader_holds_the_run_back_at_everything_but_text() -> None:
    ran: list[int] = []

    def count(n: int) -> str:
        """Count."""
        ran.append(n)
        return str(n)

    agent = await agent_of(
        *(calls("count", n=n) for n in range(20)), says("end"), tools=[count], max_agent_iterations=30
    )
    stream = agent.astream_with_tools("go")
    await anext(stream)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(ran) <= 1
    await stream.aclose()


async def test_the_models_stream_is_closed_when_the_reader_leaves() -> None:
    hold = asyncio.Event()
    model = ScriptedModel([says(chunks=["one ", hold, "two"])])
    agent = await build_agent(model=model)
    stream = agent.astream_with_tools("go")
    assert (await anext(stream)).text == "one "
    await stream.aclose()
    assert model.abandoned == 1


# LangChain callbacks


async def test_callbacks_see_each_model_call_and_each_tool_call_once() -> None:
    from langchain_core.callbacks import AsyncCallbackHandler

    class Handler(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.tags: list[Any] = []

        async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("model_start")
            self.tags.append((kwargs.get("tags"), (kwargs.get("metadata") or {}).get("who")))

        async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("model_end")

        async def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
            if token:
                self.seen.append(f"token {token!r}")

        async def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("tool_start")

        async def on_tool_end(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("tool_end")

        async def on_tool_error(self, *args: Any, **kwargs: Any) -> None:
            self.seen.append("tool_error")

    steps = [calls("search_customers", name="a"), calls("broken"), says("ok")]
    plain = (
        "model_start model_end tool_start tool_end model_start model_end tool_start tool_error model_start model_end"
    )
    handler = Handler()
    config = {"callbacks": [handler], "tags": ["t"], "metadata": {"who": "ada"}}
    await (await agent_of(*steps)).ainvoke("go", config)
    assert handler.seen == plain.split()
    assert handler.tags[0] == (["t"], "ada")
    handler = Handler()
    await all_of((await agent_of(*steps)).astream_with_tools("go", {"callbacks": [handler]}))
    assert [entry for entry in handler.seen if not entry.startswith("token")] == plain.split()
    assert "token 'ok'" in handler.seen


async def test_leaving_while_a_thought_is_open_or_a_tool_fails_closes_cleanly() -> None:
    hold = asyncio.Event()
    model = ScriptedModel([says(thinking="a long thought", chunks=["one ", hold, "two"])])
    stream = (await build_agent(model=model)).astream_with_tools("go")
    await anext(stream)
    assert await stream.aclose() is None
    assert model.abandoned == 1

    failing, go = asyncio.Event(), asyncio.Event()

    async def fails() -> str:
        """Fail."""
        failing.set()
        await go.wait()
        raise ValueError("now")

    agent = await agent_of(calls("fails"), tools=[fails])
    stream = agent.astream_with_tools("go")
    await anext(stream)
    reading = asyncio.create_task(all_of(stream))
    await failing.wait()
    go.set()
    assert await stream.aclose() is None
    assert await reading == []
