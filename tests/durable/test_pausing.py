"""A run pauses for a person and goes on where it was: in every kind of node, and with nothing done twice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.engine import BaseNode, NodeFlag, NodeResult, PromptGraph, PromptNode
from graphwright.engine.interrupt import interrupt, once
from graphwright.engine.nodes import AutonomousNode, HumanNode, LoopNode, ParallelNode, RouterNode, SubgraphNode
from graphwright.exceptions import GraphExecutionError
from graphwright.messages import text_of
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, call, calls, calls_many, says
from graphwright.tools import FunctionTool, get_tool_context


def graph_of(*nodes: Any) -> PromptGraph:
    """Return a graph of nodes that follow each other."""
    graph = PromptGraph("g", nodes=list(nodes))
    graph.set_entry(nodes[0].name)
    for one, other in pairwise(nodes):
        graph.always(one.name, other.name)
    return graph


def asking(log: list[str], name: str = "ask", **attributes: Any) -> FunctionTool:
    """Return a tool that asks for a color and paints with it once."""

    async def ask(what: str) -> str:
        """Ask which color."""
        log.append(f"enter {what}")
        color = await interrupt("color", {"what": what})
        return str(await once("paint", lambda: log.append(f"paint {what} {color}") or f"{what} is {color}"))

    made = FunctionTool(ask, name=name)
    made.reenterable = True
    for key, value in attributes.items():
        setattr(made, key, value)
    return made


def counting(log: list[str]) -> FunctionTool:
    """Return a tool that notes each of its runs."""

    async def note(n: int) -> str:
        """Note."""
        log.append(f"note {n}")
        return f"noted {n}"

    return FunctionTool(note)


async def test_a_tool_that_asks_pauses_the_run_and_gets_the_answer_on_resume() -> None:
    log: list[str] = []
    with ScriptedModel([calls("ask", what="door"), says("Painted.")]) as model:
        agent = await build_agent(model=model, extra_tools=[asking(log)], runlog=MemoryRunLog())

        paused = await agent.ainvoke("paint", session_id="s")
        assert (paused.status, paused.thread_id) == ("paused", "s")
        assert [(item.kind, item.value) for item in paused.pending] == [("color", {"what": "door"})]
        assert paused["__interrupt__"] == paused.pending
        ended = await agent.resume("s", {paused.pending[0].id: "blue"})

    assert (ended.status, ended.pending, ended.text, ended.run_id) == ("completed", [], "Painted.", paused.run_id)
    assert log == ["enter door", "enter door", "paint door blue"]
    assert text_of(ended.messages[-2]) == "door is blue"
    assert_valid_conversation(ended.messages)


async def test_the_siblings_of_a_call_that_asks_run_to_their_end_and_never_again() -> None:
    log: list[str] = []
    turn = calls_many(call("note", n=1), call("ask", what="door"), call("note", n=2), call("ask", what="wall"))
    with ScriptedModel([turn, says("ok")]) as model:
        agent = await build_agent(model=model, extra_tools=[asking(log), counting(log)], runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        assert [item.value["what"] for item in paused.pending] == ["door", "wall"]
        assert sorted(log) == ["enter door", "enter wall", "note 1", "note 2"]
        half = await agent.resume(paused.run_id, {paused.pending[1].id: "red"})
        assert [item.value["what"] for item in half.pending] == ["door"]
        assert len(log) == 4
        ended = await agent.resume(paused.run_id, {paused.pending[0].id: "blue"})

    assert [text_of(message) for message in ended.messages if message.type == "tool"] == [
        "noted 1",
        "door is blue",
        "noted 2",
        "wall is red",
    ]
    assert sorted(log[4:]) == ["enter door", "enter wall", "paint door blue", "paint wall red"]


async def test_two_questions_of_one_tool_are_told_apart_by_their_order() -> None:
    async def trip() -> str:
        """Plan a trip."""
        where = await interrupt("question", {"ask": "where"})
        when = await interrupt("question", {"ask": "when"})
        return f"{where} in {when}"

    tool = FunctionTool(trip)
    tool.reenterable = True
    with ScriptedModel([calls("trip"), says("ok")]) as model:
        agent = await build_agent(model=model, extra_tools=[tool], runlog=MemoryRunLog())

        first = await agent.ainvoke("go")
        second = await agent.resume(first.run_id, "Oslo")
        assert [item.value for item in second.pending] == [{"ask": "when"}]
        ended = await agent.resume(first.run_id, "May")

    assert text_of(ended.messages[-2]) == "Oslo in May"


async def test_another_question_in_the_same_place_is_an_error_and_never_the_old_answer() -> None:
    asked = iter([{"n": 1}, {"n": 2}])

    async def ask() -> str:
        """Ask."""
        return str(await interrupt("color", next(asked)))

    tool = FunctionTool(ask)
    tool.reenterable = True
    with ScriptedModel([calls("ask"), says("ok")]) as model:
        agent = await build_agent(model=model, extra_tools=[tool], runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        ended = await agent.resume(paused.run_id, "blue")

    assert "asked a question of kind 'color' before and now asks another" in text_of(ended.messages[-2])


async def test_a_tool_that_does_not_say_it_may_run_again_cannot_ask() -> None:
    log: list[str] = []
    with ScriptedModel([calls("ask", what="door"), says("ok")]) as model:
        agent = await build_agent(model=model, extra_tools=[asking(log, reenterable=False)], runlog=MemoryRunLog())
        ended = await agent.ainvoke("go")

    assert ended.status == "completed"
    assert "set reenterable=True" in text_of(ended.messages[-2])


async def test_without_a_log_a_tool_cannot_ask() -> None:
    log: list[str] = []
    with ScriptedModel([calls("ask", what="door"), says("ok")]) as model:
        ended = await (await build_agent(model=model, extra_tools=[asking(log)])).ainvoke("go")

    assert "has no log, so it cannot pause" in text_of(ended.messages[-2])


async def test_a_node_of_ones_own_asks_and_goes_on() -> None:
    effects: list[str] = []

    class Confirm(BaseNode):
        reenterable = True

        async def execute(self, state: Any, config: Any) -> NodeResult:
            said = await interrupt("confirm", {"about": text_of(state.messages[-1])})
            await once("send", lambda: effects.append(said))
            return NodeResult(self.name, "confirm", output=f"sent: {said}")

    agent = await build_agent(model=ScriptedModel([]), agent_pattern=graph_of(Confirm("c")), runlog=MemoryRunLog())

    paused = await agent.ainvoke("mail")
    assert [(item.kind, item.value, item.path) for item in paused.pending] == [("confirm", {"about": "mail"}, "c#1")]
    ended = await agent.resume(paused.run_id, "yes")

    assert (ended.text, effects) == ("sent: yes", ["yes"])


@pytest.mark.parametrize(
    ("answer", "text"), [(True, "Sent."), ({"approved": False, "reason": "too late"}, "Not sent.")]
)
async def test_a_human_node_pauses_where_there_is_no_handler(answer: Any, text: str) -> None:
    nodes = [HumanNode("ok", prompt_template="Send {what}?", on_approve="send", on_deny="stop")]
    graph = graph_of(*nodes, PromptNode("send"))
    graph.add_node(PromptNode("stop"))
    with ScriptedModel([says(text)]) as model:
        agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog())

        paused = await agent.ainvoke("go", context={"what": "the mail"})
        assert [(i.kind, i.value) for i in paused.pending] == [("human", {"node": "ok", "prompt": "Send the mail?"})]
        ended = await agent.resume(paused.run_id, answer)

    assert ended.text == text
    assert ended.report.nodes_visited == ["ok", "send" if answer is True else "stop"]


async def test_a_step_that_requires_a_human_pauses_once_for_its_whole_tool_loop() -> None:
    log: list[str] = []
    step = PromptNode("work", tools=[counting(log)], flags={NodeFlag.REQUIRES_HUMAN})
    with ScriptedModel([calls("note", n=1), calls("note", n=2), says("ok")]) as model:
        agent = await build_agent(model=model, agent_pattern=graph_of(step), runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        assert (log, [item.value["prompt"] for item in paused.pending]) == ([], ["Run the step 'work'?"])
        ended = await agent.resume(paused.run_id, True)

    assert (ended.text, log) == ("ok", ["note 1", "note 2"])


async def test_a_step_that_a_person_refuses_does_not_run() -> None:
    step = PromptNode("work", flags={NodeFlag.REQUIRES_HUMAN})
    with ScriptedModel([]) as model:
        agent = await build_agent(model=model, agent_pattern=graph_of(step), runlog=MemoryRunLog())
        paused = await agent.ainvoke("go")

        with pytest.raises(GraphExecutionError, match=r"was not approved \(denied\): no money"):
            await agent.resume(paused.run_id, {"approved": False, "feedback": "no money"})


def by_question(messages: list[Any]) -> Any:
    """Answer for a model of children that run side by side: ask first, then say what was answered."""
    if messages[-1].type == "tool":
        return says(f"said {text_of(messages[-1])}")
    return calls("ask", what=text_of(messages[0]))


async def test_children_side_by_side_all_ask_before_the_run_pauses_and_nothing_runs_twice() -> None:
    log: list[str] = []
    tools = [asking(log)]
    children = [PromptNode(name, instructions=name, tools=tools) for name in ("a", "b")]
    children.append(PromptNode("c", instructions="c"))

    def answer(messages: list[Any]) -> Any:
        return says("quick") if text_of(messages[0]).endswith("c") else by_question(messages)

    model = ScriptedModel.answering(answer)
    both = ParallelNode("both", nodes=children, merge_strategy="dict")
    agent = await build_agent(model=model, agent_pattern=graph_of(both), instructions="", runlog=MemoryRunLog())

    paused = await agent.ainvoke("go")
    assert len(paused.pending) == 2
    assert len(model.requests) == 3
    ended = await agent.resume(paused.run_id, {item.id: f"c{n}" for n, item in enumerate(paused.pending)})

    assert (ended.status, ended.output) == ("completed", {"a": "said a is c0", "b": "said b is c1", "c": "quick"})
    assert len(model.requests) == 5
    assert [line for line in log if line.startswith("paint")] == ["paint a c0", "paint b c1"]


@pytest.mark.parametrize("inherit", [True, False])
async def test_a_question_inside_another_graph_is_answered_there(inherit: bool) -> None:
    log: list[str] = []
    inner = graph_of(PromptNode("work", tools=[asking(log)]))
    outer = graph_of(SubgraphNode("sub", subgraph=inner, inherit_state=inherit), PromptNode("close"))
    with ScriptedModel([calls("ask", what="door"), says("inner"), says("outer")]) as model:
        agent = await build_agent(model=model, agent_pattern=outer, runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        assert paused.pending[0].path.startswith("sub#1/sub/work#1/")
        ended = await agent.resume(paused.run_id, "blue")

    assert (ended.text, log) == ("outer", ["enter door", "enter door", "paint door blue"])
    assert ended.report.nodes_visited.count("close") == 1


async def test_each_pass_of_a_loop_asks_its_own_question() -> None:
    log: list[str] = []
    body = PromptNode("work", tools=[asking(log)])
    loop = LoopNode("again", body_node=body, max_loop_iterations=2)
    script = [calls("ask", what="one"), says("first"), calls("ask", what="two"), says("second")]
    with ScriptedModel(script) as model:
        agent = await build_agent(model=model, agent_pattern=graph_of(loop), runlog=MemoryRunLog())

        first = await agent.ainvoke("go")
        second = await agent.resume(first.run_id, "red")
        assert [item.value for item in second.pending] == [{"what": "two"}]
        ended = await agent.resume(first.run_id, "blue")

    assert ended.text == "second"
    assert log == ["enter one", "enter one", "paint one red", "enter two", "enter two", "paint two blue"]


async def test_a_router_does_not_choose_again_after_a_pause() -> None:
    log: list[str] = []
    graph = graph_of(RouterNode("route", routes={"paint": "work", "stop": "other"}))
    graph.add_node(PromptNode("work", tools=[asking(log)]))
    graph.add_node(PromptNode("other"))
    with ScriptedModel([says("paint"), calls("ask", what="door"), says("ok")]) as model:
        agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        ended = await agent.resume(paused.run_id, "blue")

    assert (ended.text, ended.report.nodes_visited) == ("ok", ["route", "work", "work"])


async def test_a_path_that_a_model_composed_goes_on_where_it_paused() -> None:
    log: list[str] = []
    pool = [PromptNode("plan"), PromptNode("work", tools=[asking(log)]), PromptNode("tell", is_terminal=True)]
    node = AutonomousNode("auto", node_pool=pool)
    script = [
        says('{"next_node": "plan", "reason": "first"}'),
        says("planned"),
        says('{"next_node": "work", "reason": "then"}'),
        calls("ask", what="door"),
        says("worked"),
        says('{"next_node": "tell", "reason": "done"}'),
        says("told"),
    ]
    with ScriptedModel(script) as model:
        agent = await build_agent(model=model, agent_pattern=graph_of(node), runlog=MemoryRunLog())

        paused = await agent.ainvoke("go")
        assert len(paused.pending) == 1
        ended = await agent.resume(paused.run_id, "blue")

    assert (ended.text, log[-1]) == ("told", "paint door blue")


async def test_the_name_of_a_call_stays_the_same_over_resumes_and_differs_between_calls() -> None:
    keys: list[tuple[str, bool]] = []

    async def ask(n: int) -> str:
        """Ask."""
        here = get_tool_context()
        keys.append((here.idempotency_key, here.resumed))
        return str(await interrupt("color", {"n": n}))

    tool = FunctionTool(ask)
    tool.reenterable = True
    with ScriptedModel([calls("ask", n=1), calls("ask", n=2), says("ok")]) as model:
        agent = await build_agent(model=model, extra_tools=[tool], runlog=MemoryRunLog())

        first = await agent.ainvoke("go")
        await agent.resume(first.run_id, "a")
        await agent.resume(first.run_id, "b")

    names = [key for key, _ in keys]
    assert names[0] == names[1] != names[2] == names[3]
    assert [again for _, again in keys] == [False, True, False, True]
