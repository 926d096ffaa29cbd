"""AutonomousNode: how a choice is read, what the model is told, and that there is always a written answer."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import GraphExecutionError, GraphState, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.nodes import AutonomousNode
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.run_events import TextDelta
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, says

DONE = '{"next_node": "__done__", "reason": "enough"}'


def look_up(word: str) -> str:
    """Look up."""
    return f"found {word}"


def go(name: str) -> str:
    return f'{{"next_node": "{name}", "reason": "because"}}'


def step(name: str, **options: Any) -> Any:
    @node(name, **options)
    async def work(state: GraphState) -> str:
        state.context.setdefault("ran", []).append(name)
        return name

    return work


def free(*pool: Any, **options: Any) -> PromptGraph:
    return PromptGraph(nodes=[AutonomousNode("agent", node_pool=pool, is_entry=True, **options)])


def texts(result: Any) -> list[str]:
    return [text_of(message) for message in result.messages]


async def test_the_model_chooses_steps_and_then_writes_the_answer_itself() -> None:
    search = PromptNode("search", tools=[look_up], description="Find things.")
    with ScriptedModel([go("search"), calls("look_up", word="x"), says("it is x"), DONE, "The answer."]) as model:
        engine = PromptGraphEngine(free(search, planner_instructions="Plan well."), model, instructions="You are Ada.")
        result = await engine.ainvoke("what?")
    assert texts(result) == ["what?", "", "found x", "it is x", "The answer."]
    assert_valid_conversation(result.messages)
    assert result.output == {"steps": [{"node": "search", "reason": "because", "error": None}], "total": 1}
    assert (result.usage.total_tokens, result.report.total_tokens) == (75, 75)
    assert result.report.nodes_visited == ["agent", "search", "search"]
    first, last = model.inputs[0], model.inputs[4]
    assert text_of(first[0]) == text_of(last[0]) == "You are Ada.\n\nPlan well."
    assert "- search: Find things. (tools: look_up)" in text_of(first[-1])
    assert "Done so far: search" in text_of(model.inputs[3][-1])


@pytest.mark.parametrize(
    "reply",
    [
        go("b"),
        f"```json\n{go('b')}\n```",
        '{"next_node": "b", "reason": "a } or \\" and {"}',
        f"First I thought {go('a')} but no: {go('b')}",
        "b",
        go("B"),
    ],
)
async def test_a_choice_is_read_past_prose_fences_strings_and_drafts(reply: str) -> None:
    with ScriptedModel([reply, DONE, "ok"]) as model:
        result = await PromptGraphEngine(free(step("a"), step("b")), model).ainvoke("what?")
    assert result.context["ran"] == ["b"]


@pytest.mark.parametrize("word", ["__done__", "__end__", "done", "finish", "Done"])
async def test_finish_words_end_the_path_and_there_is_still_an_answer(word: str) -> None:
    with ScriptedModel([go(word), "nothing was needed"]) as model:
        result = await PromptGraphEngine(free(step("a")), model).ainvoke("what?")
    assert (result.text, "ran" in result.context) == ("nothing was needed", False)


async def test_a_tool_name_runs_the_node_that_has_the_tool() -> None:
    search = PromptNode("search", tools=[look_up])
    with ScriptedModel([go("look_up"), "found", DONE, "ok"]) as model:
        result = await PromptGraphEngine(free(step("a"), search), model).ainvoke("what?")
    assert result.output["steps"][0]["node"] == "search"


async def test_an_unknown_step_is_told_to_the_model_and_uses_up_a_step() -> None:
    with ScriptedModel([go("zzz"), go("a"), "ok"]) as model:
        result = await PromptGraphEngine(free(step("a"), max_steps=2), model).ainvoke("what?")
    assert "There is no step 'zzz'. The steps are: a." in text_of(model.inputs[1][-1])
    assert (result.context["ran"], result.text) == (["a"], "ok")
    assert texts(result) == ["what?", "ok"]


async def test_a_reply_that_cannot_be_read_is_told_once_and_then_ends_the_path() -> None:
    with ScriptedModel(["let me see", "hmm", "ok"]) as model:
        result = await PromptGraphEngine(free(step("a")), model).ainvoke("what?")
    assert "no JSON object with a next_node" in text_of(model.inputs[1][-1])
    assert texts(result) == ["what?", "ok"]


async def test_a_failed_step_is_told_to_the_model_and_a_critical_one_ends_the_run() -> None:
    def broken(**options: Any) -> Any:
        @node("bad", **options)
        async def bad(state: GraphState) -> str:
            raise ValueError("no disk")

        return bad

    with ScriptedModel([go("bad"), DONE, "ok"]) as model:
        result = await PromptGraphEngine(free(broken()), model).ainvoke("what?")
    assert "The step 'bad' failed: ValueError: no disk" in text_of(model.inputs[1][-1])
    assert result.output["steps"][0]["error"] == "ValueError: no disk"
    with pytest.raises(GraphExecutionError, match="no disk"):
        await PromptGraphEngine(free(broken(flags=["critical"])), ScriptedModel([go("bad")])).ainvoke("what?")


async def test_steps_repeat_unless_that_is_off() -> None:
    with ScriptedModel([go("a"), go("a"), DONE, "ok"]) as model:
        result = await PromptGraphEngine(free(step("a")), model).ainvoke("what?")
    assert result.context["ran"] == ["a", "a"]
    with ScriptedModel([go("a"), go("a"), DONE, "ok"]) as model:
        result = await PromptGraphEngine(free(step("a"), step("b"), allow_repeat=False), model).ainvoke("what?")
    assert result.context["ran"] == ["a"]
    assert "- a" not in text_of(model.inputs[1][-1])
    assert "has run already" in text_of(model.inputs[2][-1])


async def test_max_steps_ends_the_path_with_an_answer() -> None:
    with ScriptedModel([go("a"), go("a"), "ok"]) as model:
        result = await PromptGraphEngine(free(step("a"), max_steps=2), model).ainvoke("what?")
    assert (result.context["ran"], result.text) == (["a", "a"], "ok")


async def test_the_entry_runs_first_and_a_terminal_node_ends_the_run() -> None:
    with ScriptedModel([go("write"), "the report"]) as model:
        graph = free(step("a"), PromptNode("write"), entry_node="a", terminal_nodes=["write"])
        result = await PromptGraphEngine(graph, model).ainvoke("what?")
    assert ([taken["node"] for taken in result.output["steps"]], result.text) == (["a", "write"], "the report")


@pytest.mark.parametrize("options", [{"answer_node": "write"}, {"terminal_nodes": ["write"]}])
async def test_the_answer_node_writes_when_no_terminal_node_ran_last(options: dict[str, Any]) -> None:
    with ScriptedModel([go("a"), DONE, "the report"]) as model:
        result = await PromptGraphEngine(free(step("a"), PromptNode("write"), **options), model).ainvoke("what?")
    assert ([taken["node"] for taken in result.output["steps"]], result.text) == (["a", "write"], "the report")


async def test_an_answer_node_that_ran_last_does_not_write_twice() -> None:
    with ScriptedModel([go("write"), "the report", DONE]) as model:
        result = await PromptGraphEngine(free(PromptNode("write"), answer_node="write"), model).ainvoke("what?")
    assert texts(result) == ["what?", "the report"]


async def test_a_terminal_node_that_writes_no_reply_is_followed_by_one_of_the_model() -> None:
    with ScriptedModel([go("a"), "written"]) as model:
        result = await PromptGraphEngine(free(step("a"), terminal_nodes=["a"]), model).ainvoke("what?")
    assert result.text == "written"


async def test_only_the_steps_and_the_answer_are_streamed() -> None:
    shown: list[str] = []

    async def emit(event: Any) -> None:
        if isinstance(event, TextDelta):
            shown.append(event.text)

    model = ScriptedModel([go("p"), "step text", DONE, "final text"])
    await PromptGraphEngine(free(PromptNode("p")), model).run("what?", emit=emit)
    assert "".join(shown) == "step textfinal text"


async def test_a_hook_that_stops_the_run_inside_a_step_stops_the_choosing_too() -> None:
    class Stop:
        async def post_node(self, node: Any, result: Any, state: GraphState) -> None:
            if node.name == "p":
                state.current_node = "__end__"

    with ScriptedModel([go("p"), "step text"]) as model:
        result = await PromptGraphEngine(free(PromptNode("p")), model, hooks=[Stop()]).ainvoke("what?")
    assert result.text == "step text"
    assert "Stop" in (result.report.error or "")


async def test_a_graph_from_a_pool_starts_at_its_entry_and_ends_at_its_terminal() -> None:
    graph = PromptGraph.from_pool(
        [step("a", is_entry=True), PromptNode("write", is_terminal=True)], system_prompt="Be good."
    )
    assert (graph.mode, graph.entry, graph.validate()) == ("autonomous", "orchestrator", [])
    with ScriptedModel([go("write"), "the report"]) as model:
        result = await PromptGraphEngine(graph, model).ainvoke("what?")
    assert (result.text, result.context["ran"]) == ("the report", ["a"])
    assert text_of(model.inputs[0][0]) == "Be good."


@pytest.mark.parametrize(
    "options",
    [
        {"node_pool": []},
        {"node_pool": [step("a"), step("a")]},
        {"entry_node": "z"},
        {"terminal_nodes": ["z"]},
        {"answer_node": "z"},
        {"max_steps": 0},
    ],
)
def test_what_cannot_work_is_refused_when_the_node_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="'agent'"):
        AutonomousNode("agent", **{"node_pool": [step("a")], **options})
