"""The nodes that answer in fields: how the fields are read, where they go, what they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from graphwright.engine import GraphState, NodeFlag, NodeResult, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.reasoning_nodes import (
    CritiqueNode,
    JustifyNode,
    ObserveNode,
    PlanNode,
    ReflectNode,
    ThinkNode,
    ValidateNode,
)
from graphwright.exceptions import ConfigurationError, GraphExecutionError, GraphIterationLimitError
from graphwright.messages import text_of
from graphwright.models import ModelCapabilities
from graphwright.testing import ScriptedModel, calls, says

ANSWERS: dict[type[PromptNode], dict[str, Any]] = {
    ThinkNode: {"reasoning": "r", "gap_analysis": "g", "next_step": "n", "confidence": 0.4},
    PlanNode: {"subgoals": ["a", "b"], "priorities": ["1", "2"], "active_subgoal": "a", "quality_score": 4},
    ReflectNode: {"progress": "half", "mistake": "slow", "correction": "hurry", "confidence": 0.5, "route": ""},
    ObserveNode: {"summary": "s", "entities": ["Oslo"], "facts": ["cold"], "key_findings": ["k"]},
    JustifyNode: {"reasoning_chain": ["a"], "evidence": ["e"], "conclusion": "c", "confidence": 1},
    CritiqueNode: {"weaknesses": ["w"], "counter_arguments": ["c"], "improvements": ["i"], "severity": 0.2},
    ValidateNode: {"passes": True, "issues": [], "suggestions": ["s"], "confidence": 0.9},
}
KEYS = {
    ThinkNode: "think_output",
    PlanNode: "plan_output",
    ReflectNode: "reflection",
    ObserveNode: "observation",
    JustifyNode: "justification",
    CritiqueNode: "critique",
    ValidateNode: "validation",
}
NATIVE = ModelCapabilities(structured_output=True)
PLAIN = ModelCapabilities(tools=False)


def leading_on(kind: type[Any]) -> Any:
    options = {"on_pass": "note"} if kind is ValidateNode else {"default_next": "note"}
    return kind("step", **options)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("how", ["native", "tool", "text"])
async def test_the_listed_fields_are_read_however_the_model_gives_them(
    run: Callable[..., Any], kind: type[PromptNode], how: str
) -> None:
    fields = ANSWERS[kind]
    text = json.dumps(fields)
    if how == "tool":
        model = ScriptedModel([calls("final_answer", **fields)])
    else:
        said = text if how == "native" else f'A draft {{"x": 1}} first.\n```json\n{text}\n```'
        model = ScriptedModel([says(said)], capabilities=NATIVE if how == "native" else PLAIN)
    world = await run(model, leading_on(kind))
    kept = world.seen["context"][KEYS[kind]]
    assert {key: kept[key] for key in fields} == fields
    assert [text_of(message) for message in world.seen["messages"]] == ["go"]


@pytest.mark.parametrize("kind", ANSWERS)
async def test_the_instructions_are_short_and_name_no_answer(kind: type[Any]) -> None:
    assert 60 < len(kind("step").instructions) < 400


async def test_flags_are_the_nodes_own_and_those_given() -> None:
    assert ThinkNode("t").flags == {NodeFlag.LIGHTWEIGHT}
    plan = PlanNode("plan", flags={NodeFlag.ENTRY, NodeFlag.INJECT_TOOLS})
    assert plan.flags == {NodeFlag.ENTRY, NodeFlag.INJECT_TOOLS, NodeFlag.STATEFUL, NodeFlag.OBSERVABLE}
    assert plan.inject_tools


async def test_own_instructions_keep_what_the_nodes_parameters_say() -> None:
    assert ThinkNode("t", instructions="Think hard.", focus_areas=["cost", "risk"]).instructions == (
        "Think hard.\n\nPay special attention to: cost, risk."
    )
    assert PlanNode("p", instructions="Plan.", max_subgoals=2).instructions == "Plan.\n\nGive at most 2 subgoals."
    assert ValidateNode("v", instructions="Judge.", criteria="short").instructions == "Judge.\n\nCriteria:\nshort"
    routed = ReflectNode("r", instructions="R.", transitions={"answer": "a", "again": "b", "error": "a"})
    assert routed.instructions == "R.\n\nSet `route` to one of: answer, again."


async def test_instructions_of_a_saved_node_do_not_grow() -> None:
    first = PlanNode("p", max_subgoals=2)
    assert PlanNode("p", max_subgoals=2, instructions=first.instructions).instructions == first.instructions


async def test_fields_are_the_reply_only_where_nobody_answered() -> None:
    fields = {"passes": True, "issues": [], "suggestions": [], "confidence": 1.0}
    alone = PromptGraph("g", nodes=[ValidateNode("v", is_entry=True)])
    with ScriptedModel([calls("final_answer", **fields)]) as model:
        result = await PromptGraphEngine(alone, model).ainvoke("go")
    assert json.loads(result.text) == fields == result.output

    answered = PromptGraph("g", nodes=[PromptNode("a", is_entry=True, default_next="v"), ValidateNode("v")])
    with ScriptedModel([says("The answer."), calls("final_answer", **fields)]) as model:
        result = await PromptGraphEngine(answered, model).ainvoke("go")
    assert [text_of(message) for message in result.messages] == ["go", "The answer."]
    # A conversation that ends on the assistant's turn is one to be continued, for many providers.
    assert model.inputs[1][-1].type == "human"


async def test_a_correction_stays_out_of_the_conversation(run: Callable[..., Any]) -> None:
    model = ScriptedModel([says("no json"), calls("final_answer", severity="unknowable"), says('{"severity": 0.1}')])
    world = await run(model, CritiqueNode("c", default_next="note", output_retries=2))
    assert [text_of(message) for message in world.seen["messages"]] == ["go"]
    assert world.seen["context"]["critique"]["severity"] == 0.1
    assert "no number from 0 to 1" in text_of(model.inputs[2][-1])


async def test_an_answer_that_never_fits_leaves_nothing_behind(run: Callable[..., Any]) -> None:
    model = ScriptedModel([says("no"), says("never")])
    world = await run(model, CritiqueNode("c", transitions={"error": "note"}))
    assert [text_of(message) for message in world.seen["messages"]] == ["go"]


async def test_a_correction_that_nobody_can_follow_any_more_leaves_nothing_behind(run: Callable[..., Any]) -> None:
    model = ScriptedModel([says("no")])
    world = await run(model, CritiqueNode("c", max_iterations=1, transitions={"error": "note"}))
    assert [text_of(message) for message in world.seen["messages"]] == ["go"]


async def test_the_text_of_fields_is_not_streamed() -> None:
    graph = PromptGraph("g", nodes=[ThinkNode("t", is_entry=True, default_next="a"), PromptNode("a")])
    with ScriptedModel([says('{"reasoning": "secret"}'), says("Hello")], capabilities=PLAIN) as model:
        events = [event async for event in PromptGraphEngine(graph, model).astream_events("go")]
    shown = [text_of(e["data"]["chunk"]) for e in events if e["event"] == "on_chat_model_stream"]
    assert "".join(shown) == "Hello"
    assert [e["name"] for e in events if e["event"] == "on_node_end"] == ["t", "a"]


@pytest.mark.parametrize(
    ("written", "read"),
    [(0, 0), (1, 1), (0.3, 0.3), ("0.7", 0.7), (4, 0.8), ("4/5", 0.8), (5, 1), ("85%", 0.85), (-1, 0), (9, 1)],
)
async def test_a_confidence_is_from_0_to_1_on_either_scale(run: Callable[..., Any], written: Any, read: float) -> None:
    model = ScriptedModel([calls("final_answer", reasoning="r", confidence=written)])
    world = await run(model, ThinkNode("t", default_next="note"))
    assert world.seen["context"]["think_output"]["confidence"] == pytest.approx(read)


@pytest.mark.parametrize(
    ("written", "passes"),
    [(True, True), (False, False), ("false", False), ("False", False), ("no", False), ("yes", True), (0, False)],
)
async def test_the_word_false_does_not_pass(run: Callable[..., Any], written: Any, passes: bool) -> None:
    model = ScriptedModel([calls("final_answer", passes=written), *([] if passes else [says("was no good")])])
    failed = PromptNode("failed", default_next="note")
    world = await run(model, ValidateNode("v", on_pass="note", on_fail="failed"), failed)
    assert ("failed" in world.seen["visited"]) is not passes
    assert world.seen["context"]["validation"]["passes"] is passes


async def test_a_failed_validation_that_leads_nowhere_is_a_failure(run: Callable[..., Any]) -> None:
    model = ScriptedModel([calls("final_answer", passes=False, issues=["too long", {"issue": "dull"}])])
    with pytest.raises(GraphExecutionError, match="the validation by node 'v' failed: too long; dull"):
        await run(model, ValidateNode("v", default_next="note"))


async def test_a_conditional_edge_takes_a_failed_validation(run: Callable[..., Any]) -> None:
    model = ScriptedModel([calls("final_answer", passes=False)])
    world = await run(
        model, ValidateNode("v"), connect=lambda graph: graph.on_output("v", "note", key="passes", value=False)
    )
    assert world.seen["visited"] == ["prepare", "v", "note"]


async def test_validate_lists_both_ways() -> None:
    assert ValidateNode("v", on_pass="a", on_fail="b").targets() == {"on_pass": "a", "on_fail": "b"}


@pytest.mark.parametrize(("severity", "way"), [(0.5, "note"), (0.51, "fix"), ("high", "fix"), (2, "note"), (3, "fix")])
async def test_a_critique_goes_back_above_its_threshold(run: Callable[..., Any], severity: Any, way: str) -> None:
    model = ScriptedModel([calls("final_answer", severity=severity), *([says("better")] if way == "fix" else [])])
    critic = CritiqueNode("c", default_next="note", transitions={"improve": "fix"})
    world = await run(model, critic, PromptNode("fix", default_next="note"))
    assert ("fix" in world.seen["visited"]) is (way == "fix")


async def test_a_poor_plan_is_made_again_with_the_reason(run: Callable[..., Any]) -> None:
    model = ScriptedModel(
        [
            calls("final_answer", subgoals=["x"], quality=2),
            calls("final_answer", subgoals=[{"goal": "a"}, "b", "b", "c", "d"], quality_score="4/5"),
        ]
    )
    world = await run(model, PlanNode("p", max_subgoals=3, default_next="note"))
    assert world.seen["visited"] == ["prepare", "p", "p", "note"]
    assert text_of(model.inputs[1][-1]) == (
        'The last plan, ["x"], was rated 2 of 5, which is below 3. Make a better one.'
    )
    assert (world.seen["plan"], world.seen["active"]) == (["a", "b", "c"], "a")
    assert world.seen["context"]["plan_output"]["active_subgoal"] == "a"
    assert [text_of(message) for message in world.seen["messages"]] == ["go"]


@pytest.mark.parametrize("target", ["p", "look"])
async def test_a_plan_that_stays_poor_goes_on_within_its_budget(run: Callable[..., Any], target: str) -> None:
    @node("look", default_next="p")
    async def look() -> NodeResult:
        return NodeResult()

    model = ScriptedModel([calls("final_answer", subgoals=["x"], quality_score=1)] * 2)
    plan = PlanNode("p", max_iterations=2, default_next="note", transitions={"replan": target})
    world = await run(model, plan, look)
    assert world.seen["visited"].count("p") == 2
    assert world.seen["plan"] == ["x"]


async def test_a_new_plan_keeps_what_is_completed(run: Callable[..., Any]) -> None:
    def before(state: GraphState) -> None:
        state.plan = ["a", "b", "c"]
        state.complete_subgoal("a")

    model = ScriptedModel(
        [calls("final_answer", subgoals=["a", "b", "d"], quality_score=5, completed=["b", "never planned"])]
    )
    world = await run(model, PlanNode("p", default_next="note"), before=before)
    assert (world.seen["plan"], world.seen["completed"], world.seen["active"]) == (["a", "b", "d"], ["a", "b"], "d")
    assert 'reached are ["a"]' in text_of(model.inputs[0][-1])


@pytest.mark.parametrize("kind", [ThinkNode, ReflectNode, ObserveNode])
async def test_subgoals_are_completed_one_by_one_until_all_are(run: Callable[..., Any], kind: type[Any]) -> None:
    fields = {"reasoning": "r", "progress": "p", "summary": "s"}
    steps = [calls("final_answer", **fields, subgoal_complete=done) for done in ("true", "false", True)]
    nodes = [kind(f"s{index}", default_next=f"s{index + 1}" if index < 2 else "note") for index in range(3)]

    def before(state: GraphState) -> None:
        state.plan = ["a", "b"]

    world = await run(ScriptedModel(steps), *nodes, before=before)
    assert (world.seen["completed"], world.seen["active"], world.seen["all_done"]) == (["a", "b"], None, True)


async def test_a_reflection_is_stored_and_chooses_the_way(run: Callable[..., Any]) -> None:
    model = ScriptedModel(
        [calls("final_answer", progress_assessment="half", mistake="slow", correction="hurry", confidence=4, route="B")]
    )
    world = await run(model, ReflectNode("r", transitions={"a": "r", "b": "note"}))
    assert world.seen["reflections"] == [
        {"iteration": 2, "mistake": "slow", "correction": "hurry", "confidence": 0.8, "stage": "reflect"}
    ]
    kept = world.seen["context"]["reflection"]
    assert kept["progress"] == kept["progress_assessment"] == "half"


@pytest.mark.parametrize("nothing", ["", "None", "n/a", None])
async def test_no_mistake_is_no_reflection(run: Callable[..., Any], nothing: Any) -> None:
    model = ScriptedModel([calls("final_answer", progress="done", mistake=nothing)])
    world = await run(model, ReflectNode("r", default_next="note"))
    assert world.seen["reflections"] == []


async def test_reflect_is_shown_as_many_steps_as_it_asks_for(run: Callable[..., Any]) -> None:
    model = ScriptedModel([says("one"), says("two"), calls("final_answer", progress="p")])
    first, second = PromptNode("first", default_next="second"), PromptNode("second", default_next="r")
    await run(model, first, second, ReflectNode("r", review_depth=1, default_next="note"))
    assert text_of(model.inputs[2][-1]) == "Review the work now. The last steps were:\n- second: two"


async def test_observations_gather_in_the_context_bounded(run: Callable[..., Any]) -> None:
    def before(state: GraphState) -> None:
        state.context["extracted_facts"] = [f"f{index}" for index in range(100)]
        state.add_observation("look", "sunny")

    model = ScriptedModel([calls("final_answer", summary="s", facts=["f3", "new"], entities="Oslo\n- Bergen")])
    world = await run(model, ObserveNode("o", default_next="note"), before=before)
    facts = world.seen["context"]["extracted_facts"]
    assert (len(facts), facts[0], facts[-2:]) == (100, "f1", ["f3", "new"])
    assert world.seen["context"]["extracted_entities"] == ["Oslo", "Bergen"]
    assert "look({}) = sunny" in text_of(model.inputs[0][0])


async def test_justify_sees_the_last_step_and_keeps_the_newest_five(run: Callable[..., Any]) -> None:
    model = ScriptedModel([says("I sold it."), calls("final_answer", reasoning_chain="a\nb", conclusion="c")])

    def before(state: GraphState) -> None:
        state.context["justifications"] = [{"n": index} for index in range(5)]

    world = await run(model, PromptNode("act", default_next="j"), JustifyNode("j", default_next="note"), before=before)
    assert text_of(model.inputs[1][-1]) == "Justify the last step, 'act'. Its outcome: I sold it."
    kept = world.seen["context"]["justifications"]
    assert kept[:-1] == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]
    assert kept[-1] == {"iteration": 3, "reasoning": ["a", "b"], "conclusion": "c", "confidence": 0.5}


async def test_a_reasoning_node_has_a_budget() -> None:
    graph = PromptGraph("g", nodes=[ThinkNode("t", is_entry=True, default_next="t", max_iterations=2)])
    model = ScriptedModel([calls("final_answer", reasoning="r")] * 2)
    with pytest.raises(GraphIterationLimitError):
        await PromptGraphEngine(graph, model).ainvoke("go")
    model.assert_done()


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlanNode("p", max_subgoals=0),
        lambda: ReflectNode("r", review_depth=-1),
        lambda: CritiqueNode("c", severity_threshold=3),
    ],
)
def test_values_that_cannot_work_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()
