"""Each flag does what it says, shown by a test that fails without it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.engine import (
    BaseNode,
    GraphExecutionError,
    GraphIterationLimitError,
    GraphState,
    NodeFlag,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    node,
)
from graphwright.messages import AIMessage, HumanMessage, text_of
from graphwright.run_events import NodeMetrics, Restarted
from graphwright.testing import ScriptedModel, calls, raises, says


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("graphwright._internal.clock.sleep", sleep)


def counting(name: str, results: list[Any], ran: list[str], **options: Any) -> BaseNode:
    @node(name, **options)
    async def step() -> Any:
        ran.append(name)
        value = results[min(len(ran), len(results)) - 1]
        if isinstance(value, Exception):
            raise value
        return value

    return step


def giving(name: str, output: Any = None, **options: Any) -> BaseNode:
    @node(name, **options)
    async def step() -> Any:
        return output

    return step


async def test_critical_aborts_the_run_although_there_is_an_error_route() -> None:
    for flags, ends in (({"critical"}, None), (set(), "saved")):
        ran: list[str] = []
        graph = PromptGraph(nodes=[counting("a", [ValueError("x")], ran, flags=flags), giving("b", "saved")])
        graph.set_entry("a").on_error("a", "b")
        if ends is None:
            with pytest.raises(GraphExecutionError, match="ValueError: x"):
                await PromptGraphEngine(graph).ainvoke("go")
        else:
            assert (await PromptGraphEngine(graph).ainvoke("go")).text == ends


@pytest.mark.parametrize(("failures", "works"), [(2, True), (3, False)])
async def test_retryable_makes_three_attempts_in_all(failures: int, works: bool) -> None:
    ran: list[str] = []
    step = counting("a", [*[ValueError("x")] * failures, "ok"], ran, flags={"retryable"}, is_entry=True)
    engine = PromptGraphEngine(PromptGraph(nodes=[step]))
    if works:
        assert (await engine.ainvoke("go")).text == "ok"
    else:
        with pytest.raises(GraphExecutionError, match="ValueError: x"):
            await engine.ainvoke("go")
    assert len(ran) == 3


async def test_retryable_stays_within_the_nodes_limit() -> None:
    ran: list[str] = []
    step = counting("a", [ValueError("x")], ran, flags={"retryable"}, is_entry=True, max_iterations=2)
    with pytest.raises(GraphExecutionError):
        await PromptGraphEngine(PromptGraph(nodes=[step])).ainvoke("go")
    assert len(ran) == 2


async def test_retryable_takes_back_what_a_failed_attempt_wrote_and_streams_again() -> None:
    attempts = []

    def check(output: Any, state: GraphState, config: Any) -> None:
        attempts.append(output)
        state.messages.append(AIMessage(content="left behind"))
        state.context["left"] = True
        if len(attempts) == 1:
            raise ValueError("not yet")
        state.messages.pop()
        del state.context["left"]

    step = PromptNode("a", flags={"retryable"}, postprocessor=check, is_entry=True)
    engine = PromptGraphEngine(PromptGraph(nodes=[step]), ScriptedModel(["first", "second"]))
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    result = await engine.run("go", emit=emit)
    assert [text_of(message) for message in result.messages] == ["go", "second"]
    assert "left" not in result.context
    assert [event.dropped for event in events if isinstance(event, Restarted)] == ["first"]


async def test_skip_on_error_passes_over_nodes_up_to_one_that_can_deal_with_the_failure() -> None:
    seen: list[Any] = []

    @node("c")
    async def mends(state: GraphState) -> str:
        seen.extend((result.node_name, result.error, result.transition_reason) for result in state.node_history)
        return "mended"

    ran: list[str] = []
    graph = PromptGraph(
        nodes=[
            counting("a", [ValueError("x")], [], is_entry=True),
            counting("b", ["b"], ran, flags={"skip_on_error"}),
            mends,
        ]
    ).sequential("a", "b", "c")
    assert (await PromptGraphEngine(graph).ainvoke("go")).text == "mended"
    assert ran == []
    assert seen == [("a", "ValueError: x", "error"), ("b", None, "skipped: an earlier step failed")]


async def test_skip_on_error_raises_the_failure_when_no_node_is_left() -> None:
    graph = PromptGraph(
        nodes=[counting("a", [ValueError("x")], [], is_entry=True), giving("b", "b", flags={"skip_on_error"})]
    ).sequential("a", "b")
    with pytest.raises(GraphExecutionError, match="ValueError: x"):
        await PromptGraphEngine(graph).ainvoke("go")


async def test_a_failure_before_a_node_without_the_flag_is_raised() -> None:
    graph = PromptGraph(nodes=[counting("a", [ValueError("x")], [], is_entry=True), giving("b")]).sequential("a", "b")
    with pytest.raises(GraphExecutionError):
        await PromptGraphEngine(graph).ainvoke("go")


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


async def test_no_history_shows_the_question_and_the_nodes_own_tool_exchange() -> None:
    first = PromptNode("first", is_entry=True, default_next="ask")
    ask = PromptNode("ask", tools=[look], flags={NodeFlag.NO_HISTORY})
    model = ScriptedModel(["earlier words", calls("look", at="sea"), says("done")])
    given = [HumanMessage(content="old"), AIMessage(content="older answer"), HumanMessage(content="question")]
    result = await PromptGraphEngine(PromptGraph(nodes=[first, ask]), model).ainvoke(given)
    assert [[text_of(m) for m in shown] for shown in model.inputs[1:]] == [["question"], ["question", "", "seen sea"]]
    whole = [text_of(message) for message in result.messages]
    assert whole == ["old", "older answer", "question", "earlier words", "", "seen sea", "done"]


async def test_isolated_context_sees_its_input_keys_and_gives_back_its_output_only() -> None:
    seen: list[Any] = []

    def peek(state: GraphState, config: Any) -> None:
        seen.append(dict(state.context))
        state.context["leak"] = 1

    ask = PromptNode(
        "ask", preprocessor=peek, input_keys=["city"], output_key="out", flags={"isolated_context"}, is_entry=True
    )
    engine = PromptGraphEngine(PromptGraph(nodes=[ask]), ScriptedModel(["ok"]))
    result = await engine.ainvoke("go", context={"city": "Oslo", "secret": 1})
    assert seen == [{"city": "Oslo"}]
    assert result.context == {"city": "Oslo", "secret": 1, "out": "ok", "ask_output": "ok"}


@pytest.mark.parametrize("what", ["context", "nested", "messages", "plan"])
async def test_readonly_refuses_what_the_nodes_own_code_writes(what: str) -> None:
    @node("a", flags={"readonly"}, is_entry=True)
    async def a(state: GraphState) -> str:
        if what == "context":
            state.context["x"] = 1
        elif what == "nested":
            state.context["list"].append(1)
        elif what == "messages":
            state.messages.append(AIMessage(content="x"))
        else:
            state.plan = ["x"]
        return "out"

    engine = PromptGraphEngine(PromptGraph(nodes=[a]))
    states: list[GraphState] = []
    with pytest.raises(GraphExecutionError, match="'a' is readonly and wrote"):
        await engine.run("go", context={"list": []}, on_state=states.append)
    assert (states[0].context, states[0].plan, len(states[0].messages)) == ({"list": []}, [], 1)


async def test_readonly_still_stores_the_output() -> None:
    result = await PromptGraphEngine(
        PromptGraph(nodes=[giving("a", "out", flags={"readonly"}, is_entry=True)])
    ).ainvoke("go")
    assert result.context == {"a_output": "out"}
    ask = PromptNode("ask", output_key="k", flags={"readonly"}, is_entry=True)
    result = await PromptGraphEngine(PromptGraph(nodes=[ask]), ScriptedModel(["ok"])).ainvoke("go")
    assert (result.context, result.text) == ({"k": "ok", "ask_output": "ok"}, "ok")


async def test_cacheable_runs_an_equal_visit_once_and_one_that_reads_something_else_again() -> None:
    ran: list[Any] = []

    @node("a", flags={"cacheable"}, is_entry=True, default_next="b")
    async def a(state: GraphState) -> str:
        ran.append(state.context.get("n"))
        state.context["made"] = len(ran)
        return f"run {len(ran)}"

    @node("b", max_iterations=10)
    async def b(state: GraphState) -> NodeResult:
        visits = state.node_iterations["b"]
        state.context.pop("made", None)
        state.context["n"] = 1 if visits >= 3 else None
        return NodeResult(next_node="a" if visits < 4 else "__end__")

    await PromptGraphEngine(PromptGraph(nodes=[a, b])).ainvoke("go", context={"n": None})
    assert ran == [None, 1]
    ran.clear()
    a.flags = frozenset({NodeFlag.CACHEABLE, NodeFlag.STATEFUL})
    await PromptGraphEngine(PromptGraph(nodes=[a, b]).set_entry("a")).ainvoke("go", context={"n": None})
    assert ran == [None, None, None, 1]


async def test_cacheable_never_keeps_a_tool_turn() -> None:
    ask = PromptNode("ask", tools=[look], flags={"cacheable"}, is_entry=True)
    model = ScriptedModel([calls("look", at="a"), calls("look", at="b"), says("done")])
    with model:
        result = await PromptGraphEngine(PromptGraph(nodes=[ask]), model).ainvoke("go")
    assert result.text == "done"


async def test_lightweight_uses_the_small_model_where_there_is_one_and_an_override_wins() -> None:
    def graph() -> PromptGraph:
        own = PromptNode("c", flags={"lightweight"}, model_override=ScriptedModel(["own"]))
        return PromptGraph(
            nodes=[PromptNode("a", flags={"lightweight"}, is_entry=True), PromptNode("b"), own]
        ).sequential("a", "b", "c")

    main, small = ScriptedModel(["main"]), ScriptedModel(["small"])
    result = await PromptGraphEngine(graph(), main, lightweight_model=small).ainvoke("go")
    assert [text_of(message) for message in result.messages] == ["go", "small", "main", "own"]
    result = await PromptGraphEngine(graph(), ScriptedModel(["one", "two"])).ainvoke("go")
    assert [text_of(message) for message in result.messages] == ["go", "one", "two", "own"]


async def test_observable_reports_the_figures_of_a_visit() -> None:
    ask = PromptNode("ask", flags={"observable"}, is_entry=True)
    engine = PromptGraphEngine(PromptGraph(nodes=[ask]), ScriptedModel(["ok"]))
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    await engine.run("go", emit=emit)
    (metrics,) = [event for event in events if isinstance(event, NodeMetrics)]
    assert (metrics.node, metrics.metrics["total_tokens"]) == ("ask", 15)


async def test_verbose_logs_the_whole_prompt_and_the_whole_response(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="graphwright"):
        for flags in (set(), {"verbose"}):
            ask = PromptNode("ask", instructions="Be kind.", flags=flags, is_entry=True)
            await PromptGraphEngine(PromptGraph(nodes=[ask]), ScriptedModel(["the response"])).ainvoke("my question")
    assert caplog.text.count("system: Be kind.\nhuman: my question") == 1
    assert caplog.text.count("the response") == 1


async def test_summarize_output_puts_a_summary_in_the_place_of_a_long_output() -> None:
    long = "word " * 300
    ask = PromptNode("ask", output_key="k", flags={"summarize_output"}, is_entry=True)
    model = ScriptedModel([says(long), says("short")])
    result = await PromptGraphEngine(PromptGraph(nodes=[ask]), model).ainvoke("go")
    assert text_of(model.inputs[1][-1]) == long
    assert result.text == result.output == result.context["k"] == result.context["ask_output"] == "short"
    assert result.usage.total_tokens == result.report.total_tokens == 30
    brief = ScriptedModel(["brief"])
    ask = PromptNode("ask", flags={"summarize_output"}, is_entry=True)
    assert (await PromptGraphEngine(PromptGraph(nodes=[ask]), brief).ainvoke("go")).text == "brief"


class Person(BaseModel):
    """A person."""

    name: str


async def test_validate_output_fails_a_node_whose_output_does_not_fit() -> None:
    options: dict[str, Any] = {"flags": {"validate_output"}, "metadata": {"output_schema": Person}, "is_entry": True}
    fits = PromptGraph(nodes=[giving("a", {"name": "Ada"}, **options)])
    assert (await PromptGraphEngine(fits).ainvoke("go")).output == {"name": "Ada"}
    wrong = PromptGraph(nodes=[giving("a", {"nom": "Ada"}, **options)])
    with pytest.raises(GraphExecutionError, match="does not fit Person"):
        await PromptGraphEngine(wrong).ainvoke("go")
    nothing = PromptGraph(nodes=[giving("a", {}, flags={"validate_output"}, is_entry=True)])
    with pytest.raises(GraphExecutionError, match="no output_schema"):
        await PromptGraphEngine(nothing).ainvoke("go")


@pytest.mark.parametrize("said", [True, False, None])
async def test_requires_human_asks_before_the_node_runs_and_refuses_without_a_yes(said: bool | None) -> None:
    asked: list[str] = []

    def person(prompt: str, state: GraphState) -> bool:
        asked.append(prompt)
        return bool(said)

    model = ScriptedModel([calls("look", at="sea"), says("done")] if said else [])
    ask = PromptNode("ask", tools=[look], flags={"requires_human"}, is_entry=True)
    engine = PromptGraphEngine(PromptGraph(nodes=[ask]), model, human_handler=None if said is None else person)
    if said:
        assert (await engine.ainvoke("go")).text == "done"
        assert asked == ["Run the step 'ask'?"]
    else:
        with pytest.raises(GraphExecutionError, match="no one to ask" if said is None else "was not approved"):
            await engine.ainvoke("go")
        assert model.requests == []


def together(ran: list[str], barrier: asyncio.Barrier, **options: Any) -> list[PromptNode]:
    async def meet(state: GraphState, config: Any) -> None:
        ran.append("in")
        await asyncio.wait_for(barrier.wait(), 2)

    return [
        PromptNode(name, preprocessor=meet, output_key=name, flags={"parallel_safe"}, **options) for name in ("a", "b")
    ]


async def test_parallel_safe_nodes_in_a_row_run_together_and_merge_in_graph_order() -> None:
    model = ScriptedModel.answering(lambda messages: says("x"))
    graph = PromptGraph(nodes=[*together([], asyncio.Barrier(2)), giving("end")]).set_entry("a")
    graph.sequential("a", "b", "end")
    result = await PromptGraphEngine(graph, model).ainvoke("go")
    assert result.report.nodes_visited == ["a", "b", "end"]
    assert (result.context["a"], result.context["b"]) == ("x", "x")
    assert [message.type for message in result.messages] == ["human", "ai", "ai"]


@pytest.mark.parametrize("why", ["reads", "stateful", "conditional"])
async def test_nodes_that_depend_on_each_other_run_one_after_the_other(why: str) -> None:
    seen: list[int] = []
    model = ScriptedModel.answering(lambda messages: says(str(len(messages))))
    a = PromptNode("a", output_key="a", flags={"parallel_safe"})
    extra: dict[str, Any] = {"input_keys": ["a"]} if why == "reads" else {}
    flags = {"parallel_safe", "stateful"} if why == "stateful" else {"parallel_safe"}
    b = PromptNode("b", output_key="b", flags=flags, **extra)
    graph = PromptGraph(nodes=[a, b]).set_entry("a")
    if why == "conditional":
        graph.when("a", "b", lambda result: True)
    else:
        graph.always("a", "b")
    result = await PromptGraphEngine(graph, model).ainvoke("go")
    # The second saw the reply of the first.
    seen.append(int(result.context["b"]) - int(result.context["a"]))
    assert seen[0] >= 1


async def test_entry_and_terminal_and_injected_tools_are_what_they_say() -> None:
    graph = PromptGraph(
        nodes=[PromptNode("last", flags={NodeFlag.TERMINAL}), PromptNode("a", flags={"entry", "inject_tools"})]
    )
    assert graph.entry == "a"
    assert graph.validate() == ["node 'a' is a dead end: nothing leads on from it, not even to '__end__'"]
    model = ScriptedModel(["ok"])
    await PromptGraphEngine(graph, model, tools=[look]).ainvoke("go")
    assert model.tools_seen == [["look"]]


async def test_a_provider_failure_is_retried_by_the_node_too() -> None:
    ask = PromptNode("ask", flags={"retryable"}, is_entry=True)
    model = ScriptedModel([raises(ValueError("odd")), says("ok")])
    assert (await PromptGraphEngine(PromptGraph(nodes=[ask]), model).ainvoke("go")).text == "ok"


async def test_nodes_side_by_side_keep_their_error_routes_and_their_observations() -> None:
    def fails(output: Any, state: GraphState, config: Any) -> None:
        raise ValueError("no luck")

    a = PromptNode("a", tools=[look], output_key="a", flags={"parallel_safe"})
    b = PromptNode("b", output_key="b", flags={"parallel_safe"}, postprocessor=fails)
    model = ScriptedModel.answering(
        lambda messages: (
            calls("look", at="sea") if model.requests[-1].tools and messages[-1].type == "human" else says("x")
        )
    )
    graph = PromptGraph(nodes=[a, b, giving("fix", "fixed")]).set_entry("a").always("a", "b").always("b", "fix")
    with pytest.raises(GraphExecutionError, match="no luck"):
        await PromptGraphEngine(graph, model).ainvoke("go")
    graph.on_error("b", "fix")
    states: list[GraphState] = []
    result = await PromptGraphEngine(graph, model).run("go", on_state=states.append)
    assert result.output == "fixed"
    assert [seen["result"] for seen in states[0].observations] == ["seen sea"]


async def test_a_limit_inside_a_group_is_the_limits_error() -> None:
    model = ScriptedModel.answering(lambda messages: says("x"))
    nodes = [PromptNode(name, output_key=name, flags={"parallel_safe"}) for name in ("a", "b", "c")]
    graph = PromptGraph(nodes=nodes).set_entry("a").sequential("a", "b", "c")
    with pytest.raises(GraphIterationLimitError):
        await PromptGraphEngine(graph, model, max_iterations=2).ainvoke("go")


async def test_retryable_takes_back_nested_values_and_counts_the_tokens_of_every_attempt() -> None:
    def once(output: Any, state: GraphState, config: Any) -> None:
        state.context["list"].append(output)
        state.plan.append("p")
        if output == "first":
            raise ValueError("not yet")

    ask = PromptNode("ask", flags={"retryable"}, postprocessor=once, is_entry=True)
    states: list[GraphState] = []
    engine = PromptGraphEngine(PromptGraph(nodes=[ask]), ScriptedModel(["first", "second"]))
    result = await engine.run("go", context={"list": []}, on_state=states.append)
    assert (result.context["list"], states[0].plan) == (["second"], ["p"])
    assert result.report.total_tokens == result.usage.total_tokens == 30


async def test_what_cannot_be_compared_is_not_cached() -> None:
    class Box:
        value = 0

        def __str__(self) -> str:
            return "box"

    box, ran = Box(), []

    @node("a", flags={"cacheable"}, is_entry=True, default_next="b")
    async def a(state: GraphState) -> None:
        ran.append(state.context["box"].value)

    @node("b")
    async def b(state: GraphState) -> NodeResult:
        box.value += 1
        return NodeResult(next_node="a" if box.value < 2 else "__end__")

    await PromptGraphEngine(PromptGraph(nodes=[a, b])).ainvoke("go", context={"box": box})
    assert ran == [0, 1]


async def test_a_person_is_asked_once_although_the_answer_is_corrected() -> None:
    asked: list[str] = []

    def person(prompt: str, state: GraphState) -> bool:
        asked.append(prompt)
        return True

    ask = PromptNode("ask", output_schema=Person, flags={"requires_human"}, is_entry=True)
    model = ScriptedModel(["no data", '{"name": "Ada"}'])
    result = await PromptGraphEngine(PromptGraph(nodes=[ask]), model, human_handler=person).ainvoke("go")
    assert result.output == {"name": "Ada"}
    assert len(asked) == 1
