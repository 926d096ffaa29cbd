"""What an answer may be: the wrong, the second and the unfitting one are refused, and nothing runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright.agent import Agent, CallerContext, build_agent
from graphwright.engine import PromptGraph, PromptNode
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.nodes import HumanNode, ParallelNode
from graphwright.exceptions import InterruptError, SessionAccessDenied
from graphwright.interrupts import ApprovalDecision
from graphwright.messages import text_of
from graphwright.runlog import MemoryRunLog
from graphwright.runtime import Durability
from graphwright.testing import ScriptedModel, call, calls, calls_many, says
from graphwright.tools import FunctionTool
from graphwright.tools.base import GatedCall, Verdict


class Gate:
    """Asks for every call of `pay`; what it says of other arguments is given."""

    def __init__(self, **verdicts: Verdict) -> None:
        self.judged: list[dict[str, Any]] = []
        self._verdicts = verdicts
        self.options: dict[str, Any] = {}

    async def judge(self, gated: GatedCall) -> Verdict:
        self.judged.append(dict(gated.args))
        found = self._verdicts.get(str(gated.args.get("to")))
        return found or Verdict("ask", reason="it costs money", shown={"risk": 2}, **self.options)


class World:
    """A tool that pays, and an agent whose payments a person approves."""

    def __init__(self, *script: Any, **verdicts: Verdict) -> None:
        self.paid: list[str] = []
        self.gate = Gate(**verdicts)
        self.model = ScriptedModel(script)
        self.log = MemoryRunLog()
        self.agent = self.build()

    def build(self) -> Agent:
        async def pay(amount: int, to: str) -> str:
            """Pay."""
            self.paid.append(f"{amount} {to}")
            return "paid"

        graph = PromptGraph("g", nodes=[PromptNode("work", tools=[FunctionTool(pay)])])
        graph.set_entry("work")
        return Agent(PromptGraphEngine(graph, self.model, gate=self.gate), durability=Durability(log=self.log))


def results(ended: Any) -> list[str]:
    return [text_of(message) for message in ended.messages if message.type == "tool"]


PAY = calls("pay", amount=5, to="ann")


async def test_an_approval_shows_what_will_run_and_runs_it_once() -> None:
    world = World(PAY, says("ok"))

    paused = await world.agent.ainvoke("go")
    item = paused.pending[0]
    shown = {k: v for k, v in item.value.items() if k != "digest"}
    assert item.kind == "approval"
    assert shown == {
        "tool": "pay",
        "tool_call_id": "call_1",
        "params": {"amount": 5, "to": "ann"},
        "risk": 2,
        "reason": "it costs money",
    }
    assert (world.paid, len(item.value["digest"])) == ([], 24)
    ended = await world.agent.resume(paused.run_id, {item.id: {"approved": True, "tool_call_id": "call_1"}})

    assert (ended.text, world.paid, results(ended)) == ("ok", ["5 ann"], ["paid"])
    assert world.gate.judged == [{"amount": 5, "to": "ann"}]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("yes", "is no decision on a tool call"),
        (1, "is no decision on a tool call"),
        (None, "is no decision on a tool call"),
        ({"approved": "yes"}, "approved is 'yes'"),
        ({"approved": True, "argz": {}}, "unknown key 'argz'"),
        ({"approved": True, "args": {"amount": "much", "to": "ann"}}, "do not fit"),
        ({"approved": True, "args": {"amount": 5}}, "do not fit"),
        ({"approved": True, "tool_call_id": "call_9"}, "is for the call 'call_9'"),
        ({"int_000": True}, "does not wait for 'int_000'"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_run_waits_as_before(answer: Any, problem: str) -> None:
    world = World(PAY, says("ok"))
    paused = await world.agent.ainvoke("go")
    before = await world.log.rows(paused.run_id)

    with pytest.raises(InterruptError, match=problem):
        await world.agent.resume(paused.run_id, answer)

    info = await world.log.info(paused.run_id)
    assert (world.paid, info and info.status, len(world.model.requests)) == ([], "paused", 1)
    assert await world.log.rows(paused.run_id) == before
    assert (await world.agent.resume(paused.run_id, True)).text == "ok"


async def test_a_wrong_id_among_right_ones_is_refused_as_a_whole() -> None:
    world = World(PAY, says("ok"))
    paused = await world.agent.ainvoke("go")

    with pytest.raises(InterruptError, match="does not wait for 'typo'"):
        await world.agent.resume(paused.run_id, {paused.pending[0].id: True, "typo": True})

    assert world.paid == []


async def test_a_question_that_was_answered_is_not_answered_again() -> None:
    world = World(calls_many(call("pay", amount=1, to="ann"), call("pay", amount=2, to="bob")), says("ok"))
    paused = await world.agent.ainvoke("go")
    first, second = (item.id for item in paused.pending)
    half = await world.agent.resume(paused.run_id, {first: True})
    assert [item.id for item in half.pending] == [second]
    assert world.paid == []

    with pytest.raises(InterruptError, match="was answered already"):
        await world.agent.resume(paused.run_id, {first: False})

    await world.agent.resume(paused.run_id, {second: False})
    assert world.paid == ["1 ann"]


async def test_a_run_that_has_ended_takes_no_answer() -> None:
    world = World(PAY, says("ok"))
    paused = await world.agent.ainvoke("go")
    await world.agent.resume(paused.run_id, True)

    with pytest.raises(InterruptError, match="has ended"):
        await world.agent.resume(paused.run_id, {paused.pending[0].id: True})
    with pytest.raises(InterruptError, match="there is no run 'nope'"):
        await world.agent.resume("nope", True)

    assert world.paid == ["5 ann"]


async def test_a_denial_is_told_to_the_model_with_its_reason() -> None:
    world = World(PAY, says("I left it."))
    paused = await world.agent.ainvoke("go")
    ended = await world.agent.resume(paused.run_id, {"approved": False, "feedback": "ask Bob first"})

    assert (ended.text, world.paid) == ("I left it.", [])
    assert results(ended) == ["A person rejected this call, so it did not run. They said: ask Bob first"]


async def test_edited_arguments_run_and_the_model_reads_which() -> None:
    world = World(PAY, says("ok"), bob=Verdict("ask", reason="hm"))
    paused = await world.agent.ainvoke("go")
    ended = await world.agent.resume(paused.run_id, {"approved": True, "args": {"amount": 3, "to": "bob"}})

    assert world.paid == ["3 bob"]
    assert results(ended) == [
        'A person changed the arguments of this call; it ran with {"amount": 3, "to": "bob"}.\npaid'
    ]
    assert ended.messages[1].tool_calls[0]["args"] == {"amount": 5, "to": "ann"}


async def test_an_edit_that_a_guard_denies_or_would_change_is_refused_and_can_be_given_anew() -> None:
    world = World(
        PAY, says("ok"), eve=Verdict("deny", reason="eve is barred"), tom=Verdict(args={"amount": 1, "to": "tom"})
    )
    paused = await world.agent.ainvoke("go")

    for name, problem in (("eve", "eve is barred"), ("tom", "a guard would change these arguments")):
        with pytest.raises(InterruptError, match=problem):
            await world.agent.resume(paused.run_id, {"approved": True, "args": {"amount": 9, "to": name}})
    info = await world.log.info(paused.run_id)
    assert (info and info.status, world.paid) == ("paused", [])

    assert (await world.agent.resume(paused.run_id, True)).text == "ok"
    assert world.paid == ["5 ann"]


async def test_a_refused_edit_in_a_run_that_was_cut_off_leaves_it_waiting_too() -> None:
    world = World(PAY, says("ok"), eve=Verdict("deny", reason="eve is barred"))
    paused = await world.agent.ainvoke("go", session_id="s")
    await (await world.log.reopen(paused.run_id)).close("running")

    with pytest.raises(InterruptError, match="eve is barred"):
        await world.agent.resume("s", {"approved": True, "args": {"amount": 9, "to": "eve"}})

    assert (await world.agent.resume("s", True)).text == "ok"


async def test_a_refused_edit_does_not_cut_off_what_runs_beside_it() -> None:
    """Both children are answered at once; the one whose edit is refused waits until the other has paid."""
    paid: list[str] = []
    paying = asyncio.Event()

    async def pay(amount: int, to: str) -> str:
        """Pay."""
        paying.set()
        await asyncio.sleep(0.01)
        paid.append(to)
        return "paid"

    class Slow(Gate):
        async def judge(self, gated: GatedCall) -> Verdict:
            if gated.args["to"] == "eve":
                await paying.wait()
            return await super().judge(gated)

    def answer(messages: list[Any]) -> Any:
        return says("ok") if messages[-1].type == "tool" else calls("pay", amount=1, to=text_of(messages[0]))

    tools = [FunctionTool(pay)]
    children = [PromptNode(name, instructions=name, tools=tools) for name in ("ann", "bob")]
    graph = PromptGraph("g", nodes=[ParallelNode("both", nodes=children, merge_strategy="dict")])
    graph.set_entry("both")
    gate = Slow(eve=Verdict("deny", reason="eve is barred"))
    engine = PromptGraphEngine(graph, ScriptedModel.answering(answer), gate=gate)
    agent = Agent(engine, durability=Durability(log=MemoryRunLog()))
    paused = await agent.ainvoke("go")
    ann, bob = sorted(paused.pending, key=lambda item: str(item.value["params"]["to"]))

    edit = {"approved": True, "args": {"amount": 1, "to": "eve"}}
    with pytest.raises(InterruptError, match="eve is barred"):
        await agent.resume(paused.run_id, {ann.id: True, bob.id: edit})
    assert paid == ["ann"]
    ended = await agent.resume(paused.run_id, {bob.id: True})

    assert (ended.status, paid) == ("completed", ["ann", "bob"])
    assert results(ended) == ["paid", "paid"]


async def test_a_gate_that_rewrites_shows_and_runs_the_rewritten_arguments() -> None:
    world = World(PAY, says("ok"), ann=Verdict("ask", args={"amount": 1, "to": "ann"}))
    paused = await world.agent.ainvoke("go")
    assert paused.pending[0].value["params"] == {"amount": 1, "to": "ann"}
    await world.agent.resume(paused.run_id, True)

    assert world.paid == ["1 ann"]


ALWAYS = {"approved": True, "always": True}


async def test_an_approval_for_the_whole_run_asks_no_more() -> None:
    world = World(PAY, calls("pay", amount=6, to="bob"), calls("pay", amount=7, to="cid"), says("ok"))
    paused = await world.agent.ainvoke("go")
    ended = await world.agent.resume(paused.run_id, ALWAYS)

    assert (ended.status, world.paid) == ("completed", ["5 ann", "6 bob", "7 cid"])


async def test_an_approval_for_the_whole_run_holds_when_another_answer_comes_later() -> None:
    turn = calls_many(call("pay", amount=1, to="ann"), call("pay", amount=2, to="bob"))
    world = World(turn, calls("pay", amount=3, to="cid"), says("ok"))
    paused = await world.agent.ainvoke("go")
    first, second = (item.id for item in paused.pending)

    await world.agent.resume(paused.run_id, {first: ALWAYS})
    ended = await world.agent.resume(paused.run_id, {second: True})

    assert (ended.status, world.paid) == ("completed", ["1 ann", "2 bob", "3 cid"])


@pytest.mark.parametrize("in_two", [False, True])
async def test_a_call_that_has_to_be_asked_for_each_time_is(in_two: bool) -> None:
    turn = calls_many(call("pay", amount=1, to="ann"), call("pay", amount=2, to="bob"))
    world = World(turn, calls("pay", amount=3, to="cid"), says("ok"))
    world.gate.options["standing"] = False
    paused = await world.agent.ainvoke("go")
    answers = {item.id: ALWAYS for item in paused.pending}
    if in_two:
        await world.agent.resume(paused.run_id, {paused.pending[0].id: ALWAYS})
        del answers[paused.pending[0].id]
    again = await world.agent.resume(paused.run_id, answers)

    assert [item.value["params"]["to"] for item in again.pending] == ["cid"]


async def test_who_answered_is_in_the_log() -> None:
    world = World(PAY, calls("pay", amount=6, to="bob"), says("ok"))
    paused = await world.agent.ainvoke("go")
    await world.agent.resume(paused.run_id, True, by="mia")
    await world.agent.resume(paused.run_id, ApprovalDecision(True, reviewer_id="leo"))

    rows = await world.log.rows(paused.run_id)
    assert [row.data["by"] for row in rows if row.kind == "answer"] == ["mia", "leo"]


async def test_a_question_that_nobody_answered_in_time_is_a_no() -> None:
    world = World(PAY, says("ok"))
    world.gate.options["expires_at"] = 1.0
    paused = await world.agent.ainvoke("go")

    with pytest.raises(InterruptError, match="has passed"):
        await world.agent.resume(paused.run_id, True)
    ended = await world.agent.resume(paused.run_id)

    assert (world.paid, results(ended)) == ([], ["Nobody approved this call in time, so it did not run."])


async def test_a_human_node_whose_time_has_passed_takes_its_way_out() -> None:
    graph = PromptGraph("g", nodes=[HumanNode("ok", timeout=0.01, on_timeout="late"), PromptNode("late")])
    graph.set_entry("ok")
    with ScriptedModel([says("too late")]) as model:
        agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog())
        paused = await agent.ainvoke("go")
        await asyncio.sleep(0.02)
        ended = await agent.resume(paused.run_id)

    assert ended.text == "too late"


async def test_another_caller_can_neither_see_answer_nor_give_up_a_run() -> None:
    ann, bob = CallerContext(user_id="ann"), CallerContext(user_id="bob")
    world = World(PAY, says("ok"))
    paused = await world.agent.ainvoke("go", caller=ann, session_id="s")

    for stranger in (bob, None):
        for name in (paused.run_id, "s"):
            with pytest.raises(SessionAccessDenied):
                await world.agent.resume(name, True, caller=stranger)
            with pytest.raises(SessionAccessDenied):
                await world.agent.abandon(name, caller=stranger)
        with pytest.raises(SessionAccessDenied):
            await world.agent.ainvoke("mine", caller=stranger, session_id="s")

    assert world.paid == []
    assert (await world.agent.resume("s", True, caller=ann)).text == "ok"


async def test_another_caller_cannot_have_a_paused_run_given_up_by_beginning_one() -> None:
    ann, bob = CallerContext(user_id="ann"), CallerContext(user_id="bob")
    with ScriptedModel([says("hi")]) as model:
        graph = PromptGraph("g", nodes=[HumanNode("ok", on_approve="say"), PromptNode("say")])
        graph.set_entry("ok")
        agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog(), on_paused="abandon")
        await agent.ainvoke("go", caller=ann, session_id="s")

        with pytest.raises(SessionAccessDenied):
            await agent.ainvoke("mine", caller=bob, session_id="s")

        assert (await agent.resume("s", True, caller=ann)).text == "hi"


async def test_a_changed_graph_is_refused_unless_it_is_told_to_go_on() -> None:
    world = World(PAY, says("ok"))
    paused = await world.agent.ainvoke("go")
    world.agent.graph.add_node(PromptNode("new"))

    with pytest.raises(InterruptError, match="began on another graph"):
        await world.agent.resume(paused.run_id, True)
    assert world.paid == []

    ended = await world.agent.resume(paused.run_id, True, allow_changed_graph=True)
    assert (ended.text, world.paid) == ("ok", ["5 ann"])


async def test_without_a_log_a_call_that_needs_approval_does_not_run() -> None:
    world = World(PAY, says("I left it."))
    agent = Agent(world.agent._engine)
    ended = await agent.ainvoke("go")

    assert world.paid == []
    assert "needs a person's approval, and this run cannot pause" in results(ended)[0]


async def test_a_gate_that_fails_refuses_the_call() -> None:
    world = World(PAY, says("ok"))

    async def judge(gated: GatedCall) -> Verdict:
        raise RuntimeError("the gate is broken")

    world.gate.judge = judge  # type: ignore[method-assign]
    ended = await world.agent.ainvoke("go")

    assert world.paid == []
    assert "a check of the call failed" in results(ended)[0]
