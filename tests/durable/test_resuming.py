"""What holds over all legs of a run: limits, usage, hooks, schemas, streams, the handle, and other processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.agent import Agent, build_agent
from graphwright.engine import BaseNode, NodeFlag, NodeResult, PromptGraph, PromptNode, context_of
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.interrupt import interrupt, once
from graphwright.engine.nodes import HumanNode, ParallelNode
from graphwright.exceptions import (
    ConfigurationError,
    GraphExecutionError,
    GraphIterationLimitError,
    InterruptError,
    ModelError,
    UnstorableError,
)
from graphwright.messages import ToolMessage, text_of
from graphwright.models import call_model
from graphwright.models.base import ModelRequest
from graphwright.run_events import RunPaused
from graphwright.runlog import MemoryRunLog, SQLiteRunLog
from graphwright.runtime import Durability, Resume
from graphwright.streaming import InterruptEvent
from graphwright.testing import ScriptedModel, call, calls, calls_many, raises, says, waits_for
from graphwright.testing._power import CrashPoint, Power, PowerCut, ShakyLog
from graphwright.tools import FunctionTool, get_tool_context
from graphwright.tools.base import GatedCall, Verdict


def ask_tool() -> FunctionTool:
    async def ask(n: int) -> str:
        """Ask."""
        return f"{n} {await interrupt('color', {'n': n})}"

    made = FunctionTool(ask)
    made.reenterable = True
    return made


ASK = calls("ask", n=1)


async def test_the_limit_of_steps_counts_over_all_legs() -> None:
    script = [calls("ask", n=n) for n in range(5)]
    agent = await build_agent(
        model=ScriptedModel(script, strict=False),
        extra_tools=[ask_tool()],
        runlog=MemoryRunLog(),
        max_agent_iterations=3,
    )
    paused = await agent.ainvoke("go")
    for color in ("a", "b"):
        paused = await agent.resume(paused.run_id, color)
    assert paused.status == "paused"

    with pytest.raises(GraphIterationLimitError, match="limit of 3"):
        await agent.resume(paused.run_id, "c")


async def test_usage_and_figures_are_those_of_a_run_that_did_not_pause() -> None:
    def quick(n: int) -> str:
        """Do not ask."""
        return f"{n} blue"

    quick.__name__ = "ask"
    script = [calls("ask", n=1), calls("ask", n=2), says("ok")]
    whole = await (await build_agent(model=ScriptedModel(script), extra_tools=[quick], runlog=MemoryRunLog())).ainvoke(
        "x"
    )
    agent = await build_agent(model=ScriptedModel(script), extra_tools=[ask_tool()], runlog=MemoryRunLog())

    ended = await agent.ainvoke("x")
    while ended.status == "paused":
        ended = await agent.resume(ended.run_id, "blue")

    assert [text_of(message) for message in ended.messages] == [text_of(message) for message in whole.messages]
    assert ended.usage == whole.usage
    for name in ("total_iterations", "total_tokens", "nodes_visited", "tool_calls", "error"):
        assert getattr(ended.report, name) == getattr(whole.report, name), name


async def test_hooks_are_not_called_again_for_calls_that_have_ended() -> None:
    seen: list[str] = []

    class Watch:
        async def pre_tool(self, tool_name: str, args: dict[str, Any], state: Any) -> dict[str, Any]:
            seen.append(f"pre {tool_name}")
            return args

        async def post_tool(self, tool_name: str, result: Any, args: dict[str, Any], state: Any) -> Any:
            seen.append(f"post {tool_name}")
            return result

    async def note() -> str:
        """Note."""
        return "noted"

    turn = calls_many(call("note"), call("ask", n=1))
    agent = await build_agent(
        model=ScriptedModel([turn, says("ok")]), extra_tools=[note, ask_tool()], hooks=[Watch()], runlog=MemoryRunLog()
    )
    paused = await agent.ainvoke("go")
    assert sorted(seen) == ["post note", "pre ask", "pre note"]
    await agent.resume(paused.run_id, "blue")

    assert sorted(seen) == ["post ask", "post note", "pre ask", "pre note"]


class Answer(BaseModel):
    color: str


@pytest.mark.parametrize("durable", [False, True])
async def test_a_structured_answer_comes_back_from_the_log(durable: bool, tmp_path: Path) -> None:
    log = SQLiteRunLog(tmp_path / "runs.db") if durable else MemoryRunLog()
    script = [ASK, says('{"color": "blue"}')]
    agent = await build_agent(model=ScriptedModel(script), extra_tools=[ask_tool()], output_schema=Answer, runlog=log)
    paused = await agent.ainvoke("go")
    ended = await agent.resume(paused.run_id, "blue")
    await log.aclose()

    assert ended.output == Answer(color="blue")


async def test_a_run_goes_on_with_another_agent_on_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    first = await build_agent(model=ScriptedModel([ASK]), extra_tools=[ask_tool()], runlog=path)
    paused = await first.ainvoke("go", session_id="s")
    await first.shutdown()

    second = await build_agent(model=ScriptedModel([says("ok")]), extra_tools=[ask_tool()], runlog=path)
    ended = await second.resume("s", {paused.pending[0].id: "blue"})
    await second.shutdown()

    assert (ended.text, ended.run_id) == ("ok", paused.run_id)
    assert [text_of(message) for message in ended.messages] == ["go", "", "1 blue", "ok"]
    assert ended.usage.total_tokens == 30


async def test_what_a_file_cannot_keep_is_named(tmp_path: Path) -> None:
    async with await build_agent(model=ScriptedModel([]), runlog=tmp_path / "runs.db") as agent:
        with pytest.raises(UnstorableError, match="client"):
            await agent.ainvoke("go", context={"client": object()})


async def test_a_result_that_a_file_cannot_keep_is_told_to_the_model_and_not_made_again(tmp_path: Path) -> None:
    runs: list[int] = []

    async def odd(n: int) -> Any:
        """Return what no file can keep."""
        runs.append(n)
        return ToolMessage("odd", tool_call_id="x", artifact=object())

    turn = calls_many(call("odd", n=1), call("ask", n=1))
    async with await build_agent(
        model=ScriptedModel([turn, says("ok")]), extra_tools=[odd, ask_tool()], runlog=tmp_path / "runs.db"
    ) as agent:
        paused = await agent.ainvoke("go")
        ended = await agent.resume(paused.run_id, "blue")

    assert runs == [1]
    assert "'odd' ran, but the run log cannot keep its result" in text_of(ended.messages[2])


async def test_a_call_that_was_cut_off_is_told_to_be_unknown_and_an_idempotent_one_runs_again() -> None:
    keys: list[str] = []
    cut, both = asyncio.Event(), asyncio.Event()

    class Gone(BaseException):
        pass

    def tool(name: str, idempotent: bool) -> FunctionTool:
        async def work() -> str:
            keys.append(get_tool_context().idempotency_key)
            if len(keys) == 2:
                both.set()
            if not cut.is_set():
                await cut.wait()
                raise Gone
            return f"{name} done"

        made = FunctionTool(work, name=name, description=name)
        made.idempotent = idempotent
        return made

    log = MemoryRunLog()
    tools = [tool("once_only", False), tool("again", True)]
    turn = calls_many(call("once_only"), call("again"))
    power = Power()
    shaky = ShakyLog(log, power)
    agent = await build_agent(model=ScriptedModel([turn]), extra_tools=tools, runlog=shaky)
    run = asyncio.create_task(agent.ainvoke("go", session_id="s"))
    await both.wait()
    power.point = CrashPoint(power.steps + 1, "before")
    cut.set()
    with pytest.raises((PowerCut, Gone)):
        await run
    await shaky.let_go()

    second = await build_agent(model=ScriptedModel([says("ok")]), extra_tools=tools, runlog=log)
    ended = await second.resume("s")

    first, again = (text_of(message) for message in ended.messages[2:4])
    assert "cut off while once_only was at work, so it is unknown whether it took effect" in first
    assert again == "again done"
    assert len(keys) == 3
    assert keys[1] == keys[2] != keys[0]


async def test_an_effect_that_was_cut_off_in_once_is_not_made_again() -> None:
    made: list[str] = []

    class Gone(BaseException):
        pass

    def effect() -> None:
        made.append("effect")
        power.off = True
        raise Gone

    async def act() -> str:
        """Act."""
        await once("effect", effect)
        return "done"

    tool = FunctionTool(act)
    tool.reenterable = True
    log = MemoryRunLog()
    power = Power()
    shaky = ShakyLog(log, power)
    agent = await build_agent(model=ScriptedModel([calls("act")]), extra_tools=[tool], runlog=shaky)

    with pytest.raises(Gone):
        await agent.ainvoke("go", session_id="s")
    await shaky.let_go()
    second = await build_agent(model=ScriptedModel([says("ok")]), extra_tools=[tool], runlog=log)
    ended = await second.resume("s")

    assert made == ["effect"]
    assert "once('effect') was cut off while it ran" in text_of(ended.messages[2])


async def test_a_node_of_ones_own_that_was_cut_off_is_not_run_again_by_itself() -> None:
    runs: list[str] = []
    fail = [True]

    class Gone(BaseException):
        pass

    class Send(BaseNode):
        async def execute(self, state: Any, config: Any) -> NodeResult:
            runs.append("sent")
            if fail[0]:
                power.off = True
                raise Gone
            return NodeResult(self.name, "send", output="sent")

    log = MemoryRunLog()
    power = Power()
    graph = PromptGraph("g", nodes=[Send("send")])
    graph.set_entry("send")
    shaky = ShakyLog(log, power)
    agent = await build_agent(model=ScriptedModel([]), agent_pattern=graph, runlog=shaky)
    with pytest.raises(Gone):
        await agent.ainvoke("go", session_id="s")
    await shaky.let_go()
    fail[0] = False

    second = await build_agent(model=ScriptedModel([]), agent_pattern=graph, runlog=log)
    with pytest.raises(GraphExecutionError, match="was cut off while it ran, so what it did is unknown"):
        await second.resume("s")

    assert runs == ["sent"]


async def test_a_reply_after_a_failed_attempt_is_found_again() -> None:
    class Flaky(BaseNode):
        """Asks its model twice where the first attempt fails, then a person."""

        reenterable = True

        async def execute(self, state: Any, config: Any) -> NodeResult:
            context = context_of(config)
            assert context.model is not None
            request = ModelRequest(messages=state.messages)
            try:
                reply = await context.once_asked(call_model(context.model, request))
            except ModelError:
                reply = await context.once_asked(call_model(context.model, request))
            return NodeResult(self.name, "flaky", output=f"{reply.text} {await interrupt('color', {})}")

    graph = PromptGraph("g", nodes=[Flaky("f")])
    graph.set_entry("f")
    with ScriptedModel([raises(ValueError("no")), says("yes")]) as model:
        agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog())
        paused = await agent.ainvoke("go")
        ended = await agent.resume(paused.run_id, "blue")

    assert ended.text == "yes blue"
    assert len(model.requests) == 2


async def test_compaction_shows_the_model_the_same_with_and_without_a_pause() -> None:
    shown: list[list[list[str]]] = []
    for pauses in (False, True):

        async def look(n: int) -> str:
            """Look."""
            return f"{n} " + "x" * 400

        async def ask(n: int) -> str:
            """Ask."""
            return f"{n} {await interrupt('color', {'n': n})}" if pauses else f"{n} blue"  # noqa: B023

        tool = FunctionTool(ask)
        tool.reenterable = True
        script = [
            calls("look", n=1),
            calls("look", n=2),
            calls("ask", n=3),
            calls("look", n=4),
            calls("ask", n=5),
            "ok",
        ]
        node = PromptNode("work", tools=[look, tool], auto_ledger_after=1)
        graph = PromptGraph("g", nodes=[node])
        graph.set_entry("work")
        with ScriptedModel(script) as model:
            log = MemoryRunLog()
            ended = await (await build_agent(model=model, agent_pattern=graph, runlog=log)).ainvoke("go")
            while ended.status == "paused":
                agent = await build_agent(model=model, agent_pattern=graph, runlog=log)
                ended = await agent.resume(ended.run_id, "blue")
        shown.append([[text_of(message) for message in messages] for messages in model.inputs])

    assert shown[0] == shown[1]
    # The last request no longer holds the first result as it was.
    assert "x" * 400 in " ".join(shown[0][1])
    assert all(text != "1 " + "x" * 400 for text in shown[0][-1])


async def test_streams_show_the_pause_and_go_on() -> None:
    script = [ASK, says("ok")]
    agent = await build_agent(model=ScriptedModel(script), extra_tools=[ask_tool()], runlog=MemoryRunLog())
    events = [event async for event in agent.astream_with_tools("go", session_id="s")]
    assert isinstance(events[-1], InterruptEvent)
    chunks = [chunk async for chunk in agent.astream(None, resume=Resume(thread_id="s", answers="blue"))]

    assert [text_of(message) for message in chunks[-1]["messages"]] == ["go", "", "1 blue", "ok"]

    plain = await build_agent(model=ScriptedModel([]), extra_tools=[])
    with pytest.raises(ConfigurationError, match="keeps no run log"):
        plain.astream(None, resume=Resume(thread_id="s"))
    with pytest.raises(ConfigurationError, match="keeps no run log"):
        await plain.resume("s", True)


async def test_a_handle_is_answered_and_goes_on_by_itself() -> None:
    turn = calls_many(call("ask", n=1), call("ask", n=2))
    agent = await build_agent(model=ScriptedModel([turn, says("ok")]), extra_tools=[ask_tool()], runlog=MemoryRunLog())
    run = agent.start("go", session_id="s")
    paused = await run.result()
    first, second = (item.id for item in run.pending)
    assert [item.id for item in paused.pending] == [first, second]

    await run.answer(second, "red")
    assert [item.id for item in (await run.result()).pending] == [first]
    with pytest.raises(InterruptError, match="was answered already"):
        await run.answer(second, "green")
    with pytest.raises(InterruptError, match="does not wait for 'int_0'"):
        await run.answer("int_0", "green")
    await run.answer(first, "blue", by="mia")
    ended = await run.result()

    assert [text_of(message) for message in ended.messages] == ["go", "", "1 blue", "2 red", "ok"]
    assert (run.pending, run.done) == ([], True)
    with pytest.raises(InterruptError, match="is not paused"):
        await run.answer(first, "blue")


async def test_a_handle_that_was_made_by_the_name_of_a_session_is_answered_too() -> None:
    agent = await build_agent(
        model=ScriptedModel([ASK, calls("ask", n=2), says("ok")]), extra_tools=[ask_tool()], runlog=MemoryRunLog()
    )
    paused = await agent.ainvoke("go", session_id="s")
    for resume in (Resume(thread_id="s"), Resume(run_id="s", answers="blue")):
        run = agent.start(None, resume=resume)
        await run.result()
        assert len(run.pending) == 1

    await run.answer(run.pending[0].id, "red")

    assert ((await run.result()).text, run.run_id) == ("ok", paused.run_id)


async def test_the_events_of_a_handle_tell_of_the_pause() -> None:
    agent = await build_agent(model=ScriptedModel([ASK, says("ok")]), extra_tools=[ask_tool()], runlog=MemoryRunLog())
    run = agent.start("go")
    events = [event async for event in run.events()]

    assert isinstance(events[-1], RunPaused)
    assert events[-1].pending == run.pending
    await run.answer(run.pending[0].id, "blue")
    assert (await run.result()).text == "ok"


async def test_nodes_side_by_side_count_once_whatever_is_read_back() -> None:
    """One of two flagged nodes pauses; the other's figures are read from the log, once."""
    nodes = [PromptNode(name, instructions=name, flags={NodeFlag.PARALLEL_SAFE}, tools=[ask_tool()]) for name in "ab"]
    close = HumanNode("close")
    graph = PromptGraph("g", nodes=[*nodes, close])
    graph.set_entry("a")
    graph.always("a", "b")
    graph.always("b", "close")

    def answer(messages: list[Any]) -> Any:
        asks = text_of(messages[0]).endswith("a") and messages[-1].type != "tool"
        return ASK if asks else says("done")

    model = ScriptedModel.answering(answer)
    agent = await build_agent(model=model, agent_pattern=graph, instructions="", runlog=MemoryRunLog())
    paused = await agent.ainvoke("go")
    assert [item.kind for item in paused.pending] == ["color"]
    again = await agent.resume(paused.run_id, "blue")
    assert [item.kind for item in again.pending] == ["human"]
    ended = await agent.resume(paused.run_id, True)

    assert len(model.requests) == 3
    assert ended.usage.total_tokens == 45
    assert ended.report.nodes_visited == ["a", "a", "b", "close"]
    assert ended.report.total_tokens == 45


async def test_children_side_by_side_use_up_the_limit_of_steps_once() -> None:
    """Seven visits in all: the node, and three of each child; the limit leaves room for not one more."""

    async def note() -> str:
        """Note."""
        return "noted"

    def answer(messages: list[Any]) -> Any:
        results = sum(message.type == "tool" for message in messages)
        return (calls("note"), ASK, says("done"))[results]

    tools = [note, ask_tool()]
    both = ParallelNode("both", nodes=[PromptNode(name, tools=tools) for name in "ab"], merge_strategy="dict")
    graph = PromptGraph("g", nodes=[both])
    graph.set_entry("both")
    model = ScriptedModel.answering(answer)
    agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog(), max_agent_iterations=7)

    paused = await agent.ainvoke("go")
    half = await agent.resume(paused.run_id, {paused.pending[1].id: "red"})
    ended = await agent.resume(paused.run_id, {half.pending[0].id: "blue"})

    assert (len(paused.pending), len(half.pending), ended.status) == (2, 1, "completed")
    assert (len(model.requests), ended.usage.total_tokens, ended.report.total_tokens) == (6, 90, 90)
    assert len(ended.report.nodes_visited) == 7


async def test_an_answer_given_to_a_handle_is_in_the_log_before_anything_comes_of_it() -> None:
    gate = asyncio.Event()
    model = ScriptedModel([ASK, waits_for(gate, says("ok"))])
    log = MemoryRunLog()
    run = (await build_agent(model=model, extra_tools=[ask_tool()], runlog=log)).start("go")
    await run.result()
    asked = run.pending[0].id

    await run.answer(asked, "blue", by="mia")

    rows = [row for row in await log.rows(run.run_id) if row.kind == "answer"]
    answers = [(row.key, row.data["value"], row.data["by"]) for row in rows]
    assert (answers, run.done) == ([(asked, "blue", "mia")], False)
    gate.set()
    assert (await run.result()).text == "ok"


async def test_a_handle_stays_paused_when_a_guard_refuses_an_edit() -> None:
    class Gate:
        async def judge(self, gated: GatedCall) -> Verdict:
            return Verdict("deny", reason="too much") if gated.args["n"] > 5 else Verdict("ask")

    ran: list[int] = []

    async def pay(n: int) -> str:
        """Pay."""
        ran.append(n)
        return "paid"

    graph = PromptGraph("g", nodes=[PromptNode("work", tools=[pay])])
    graph.set_entry("work")
    engine = PromptGraphEngine(graph, ScriptedModel([calls("pay", n=1), says("ok")]), gate=Gate())
    run = Agent(engine, durability=Durability(log=MemoryRunLog())).start("go")
    await run.result()
    asked = run.pending[0].id

    with pytest.raises(InterruptError, match="too much"):
        await run.answer(asked, {"approved": True, "args": {"n": 9}})
    assert ([item.id for item in run.pending], ran) == ([asked], [])
    await run.answer(asked, {"approved": True, "args": {"n": 2}})

    assert ((await run.result()).text, ran) == ("ok", [2])
