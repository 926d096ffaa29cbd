"""The node that asks a model: what it sends, what it makes of the reply."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.engine import (
    GraphExecutionError,
    GraphState,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    RunResult,
    node,
)
from graphwright.exceptions import (
    ConfigurationError,
    EmptyReplyError,
    ModelRefusalError,
    OutputSchemaError,
)
from graphwright.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, text_of
from graphwright.models import ModelCapabilities
from graphwright.testing import ScriptedModel, call, calls, calls_many, empty, refuses, says


class Person(BaseModel):
    """A person."""

    name: str
    age: int


async def run_node(
    model: ScriptedModel, *args: Any, before: Any = None, input: Any = "go", **options: Any
) -> RunResult:
    nodes = [PromptNode("ask", *args, is_entry=before is None, **options)]
    if before is not None:
        nodes.append(before)
    graph = PromptGraph("g", nodes=nodes)
    if before is not None:
        graph.set_entry(before.name).always(before.name, "ask")
    with model:
        return await PromptGraphEngine(graph, model).ainvoke(input)


def system_of(model: ScriptedModel, request: int = 0) -> str:
    first = model.inputs[request][0]
    return text_of(first) if isinstance(first, SystemMessage) else ""


async def test_without_anything_to_say_no_system_message_is_sent() -> None:
    model = ScriptedModel([says("hi")])
    await run_node(model)
    assert [type(message) for message in model.inputs[0]] == [HumanMessage]


async def test_the_system_text_has_a_fixed_order_with_what_changes_last() -> None:
    @node("first")
    async def first(state: GraphState) -> NodeResult:
        state.context.update(city="Oslo", first_output="earlier words", rules="be kind", more={"a": 1})
        state.plan = ["find", "tell"]
        state.complete_subgoal("find")
        state.add_reflection(1, "Too long.", "Be brief.")
        state.add_observation("look", "sunny", {"at": "sky"})
        return NodeResult()

    class Block:
        name = "tone"

        def render(self, context: Any) -> str:
            return "Speak softly."

    model = ScriptedModel([says("ok")])
    result = await run_node(
        model,
        before=first,
        instructions="Answer.",
        blocks=[Block(), "Plain block."],
        input_keys=["city", "missing"],
        inherit_context_from="first",
        context_layers={"more": 1, "rules": 5},
    )
    assert system_of(model) == "\n\n".join(
        [
            "Answer.",
            "Speak softly.\n\nPlain block.",
            "Input data:\ncity: Oslo",
            "Output of the step 'first':\nearlier words",
            'rules:\nbe kind\n\nmore:\n{"a": 1}',
            'Recent tool results:\n- look({"at": "sky"}) = sunny',
            "Plan:\n✓ find\n→ tell",
            "Lessons so far:\n- Too long. Better: Be brief.",
        ]
    )
    assert result.text == "ok"


async def test_ingredients_can_be_left_out() -> None:
    @node("first")
    async def first(state: GraphState) -> NodeResult:
        state.plan = ["x"]
        state.add_reflection(1, "m", "c")
        state.add_observation("t", "r")
        return NodeResult()

    model = ScriptedModel([says("ok")])
    options = {"include_observations": False, "include_plan": False, "include_reflections": False}
    await run_node(model, before=first, instructions="Answer.", **options)
    assert system_of(model) == "Answer."


async def test_the_callers_system_text_joins_the_nodes_in_one_message() -> None:
    model = ScriptedModel([says("ok")])
    await run_node(model, instructions="Answer.", input=[("system", "I am Ada."), ("user", "go")])
    assert [message.type for message in model.inputs[0]] == ["system", "human"]
    assert system_of(model) == "Answer.\n\nI am Ada."


def look(at: str) -> str:
    """Look at something.

    Args:
        at: where to look.
    """
    return f"seen {at}"


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("off", ""),
        ("names", "Available tools: look"),
        ("full", "Available tools:\n- look(at): Look at something."),
    ],
)
async def test_the_tool_summary_says_as_much_as_asked(how: str, text: str) -> None:
    model = ScriptedModel([says("ok")])
    await run_node(model, tools=[look], tool_summary=how)
    assert system_of(model) == text


async def test_strategy_and_perspective_frame_the_text_and_are_noted() -> None:
    class Stepwise:
        def wrap(self, text: str, context: Any) -> str:
            return f"{text} Step by step."

        def parse(self, raw: str, context: Any) -> str:
            return raw.upper()

    class Critic:
        framing = "You are a critic."

    seen: list[NodeResult] = []

    class Watch:
        async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
            seen.append(result)

    model = ScriptedModel([says("ok")])
    ask = PromptNode("ask", instructions="Answer.", strategy=Stepwise(), perspective=Critic(), is_entry=True)
    result = await PromptGraphEngine(PromptGraph(nodes=[ask]), model, hooks=[Watch()]).ainvoke("go")
    assert system_of(model) == "You are a critic.\n\nAnswer. Step by step."
    assert (seen[0].strategy_applied, seen[0].perspective_applied) == ("Stepwise", "Critic")
    assert result.output == "OK"


async def test_output_goes_under_its_key_and_under_the_nodes_name() -> None:
    result = await run_node(ScriptedModel([says("ok")]), output_key="answer")
    assert result.context == {"ask_output": "ok", "answer": "ok"}


async def test_a_preprocessor_runs_before_the_model_and_can_stop_the_node() -> None:
    async def enrich(state: GraphState, config: Any) -> GraphState:
        state.context["city"] = "Oslo"
        return state

    model = ScriptedModel([says("ok")])
    await run_node(model, preprocessor=enrich, input_keys=["city"])
    assert system_of(model) == "Input data:\ncity: Oslo"

    def refuse(state: GraphState, config: Any) -> GraphState:
        raise ValueError("no city")

    model = ScriptedModel([])
    with pytest.raises(GraphExecutionError, match="no city"):
        await run_node(model, preprocessor=refuse)
    assert model.requests == []


async def test_a_postprocessor_changes_the_output_and_none_keeps_it() -> None:
    result = await run_node(ScriptedModel([says("ok")]), postprocessor=lambda output, state, config: output + "!")
    assert result.output == "ok!"
    result = await run_node(ScriptedModel([says("ok")]), postprocessor=lambda output, state, config: None)
    assert result.output == "ok"


async def test_sampling_is_sent_only_when_it_is_given() -> None:
    model = ScriptedModel([says("a"), says("b")])
    graph = PromptGraph(
        nodes=[PromptNode("a", is_entry=True, default_next="b"), PromptNode("b", temperature=0.0, max_tokens=9)]
    )
    await PromptGraphEngine(graph, model).ainvoke("go")
    assert [(request.temperature, request.max_tokens) for request in model.requests] == [(None, None), (0.0, 9)]


async def test_a_forced_tool_choice_holds_until_the_call_was_made() -> None:
    model = ScriptedModel([calls("look", at="sea"), says("done")])
    await run_node(model, tools=[look], tool_choice="look")
    assert [request.tool_choice for request in model.requests] == ["look", "auto"]


async def test_a_tool_choice_that_cannot_be_met_is_an_error() -> None:
    with pytest.raises(GraphExecutionError, match="tool_choice='required' and no tools"):
        await run_node(ScriptedModel([]), tool_choice="required")
    with pytest.raises(GraphExecutionError, match="'hear' of node 'ask'"):
        await run_node(ScriptedModel([]), tools=[look], tool_choice="hear")


async def test_injected_tools_are_the_engines_and_never_those_of_another_node() -> None:
    def secret() -> str:
        """Keep it."""
        return "x"

    def shared() -> str:
        """Use it."""
        return "x"

    graph = PromptGraph(
        nodes=[
            PromptNode("a", tools=[secret], is_entry=True, default_next="b"),
            PromptNode("b", inject_tools=True, tools=[look], default_next="c"),
            PromptNode("c"),
        ]
    )
    model = ScriptedModel([says("1"), says("2"), says("3")])
    await PromptGraphEngine(graph, model, tools=[shared]).ainvoke("go")
    assert [sorted(names) for names in model.tools_seen] == [["secret"], ["look", "shared"], []]


async def test_nodes_of_one_name_in_two_graphs_keep_their_own_tools() -> None:
    def look_twice(at: str) -> str:
        """Look two times."""
        return "x"

    look_twice.__name__ = "look"
    for tool in (look, look_twice):
        model = ScriptedModel([says("ok")])
        await run_node(model, tools=[tool])
        assert model.requests[0].tools[0].description.startswith(tool.__doc__.split(".")[0])  # type: ignore[union-attr]


async def test_an_empty_reply_is_an_error() -> None:
    with pytest.raises(GraphExecutionError, match="no text and no tool call") as caught:
        await run_node(ScriptedModel([empty()]))
    assert isinstance(caught.value.__cause__, EmptyReplyError)


async def test_thinking_before_the_text_is_no_part_of_the_answer() -> None:
    result = await run_node(ScriptedModel([says("Hello you", thinking="plan")]), output_key="k")
    assert result.text == "Hello you"
    assert result.context["k"] == "Hello you"


async def test_owed_calls_at_the_end_of_the_input_are_answered_first() -> None:
    model = ScriptedModel([says("done")])
    asked = AIMessage(
        content="",
        tool_calls=[{"id": "x", "name": "look", "args": {"at": "a"}}, {"id": "y", "name": "look", "args": {"at": "b"}}],
    )
    given = [HumanMessage(content="go"), asked, ToolMessage(content="seen a", tool_call_id="x")]
    result = await run_node(model, tools=[look], input=given)
    assert [text_of(message) for message in result.messages] == ["go", "", "seen a", "seen b", "done"]


async def test_a_broken_history_is_repaired_before_the_model_sees_it() -> None:
    model = ScriptedModel([says("done")])
    given = [
        ToolMessage(content="orphan", tool_call_id="gone"),
        HumanMessage(content="one"),
        AIMessage(content=""),
        AIMessage(content="", tool_calls=[{"id": "x", "name": "look", "args": {}}]),
        HumanMessage(content="two"),
    ]
    result = await run_node(model, tools=[look], input=given)
    assert [message.type for message in result.messages] == ["human", "ai", "tool", "human", "ai"]


# Structured output

FITS = '{"name": "Ada", "age": 36}'


@pytest.mark.parametrize(
    "reply",
    [
        FITS,
        f"```json\n{FITS}\n```",
        f"Here it is:\n```\n{FITS}\n```\nAnything else?",
        f'```json\n{{"name": "draft", "age": 1}}\n```\nBetter:\n```json\n{FITS}\n```',
        '{"name": "Ada", "age": 36,}',
        f'say "}}" then {FITS}',
    ],
)
async def test_json_in_a_text_reply_is_read_with_one_call(reply: str) -> None:
    model = ScriptedModel([says(reply)])
    result = await run_node(model, output_schema=Person)
    assert result.output == {"name": "Ada", "age": 36}
    assert len(model.requests) == 1


async def test_an_answer_by_tool_call_becomes_a_text_reply() -> None:
    model = ScriptedModel([calls("final_answer", name="Ada", age=36)])
    result = await run_node(model, output_schema=Person, output_key="person")
    assert model.tools_seen == [["final_answer"]]
    assert result.output == result.context["person"] == {"name": "Ada", "age": 36}
    assert [message.type for message in result.messages] == ["human", "ai"]
    assert result.text == '{"name": "Ada", "age": 36}'


async def test_structured_output_works_together_with_tools() -> None:
    model = ScriptedModel([calls("look", at="sea"), calls("final_answer", name="Ada", age=36)])
    result = await run_node(model, tools=[look], output_schema=Person)
    assert model.tools_seen[0] == ["look", "final_answer"]
    assert result.output == {"name": "Ada", "age": 36}
    assert [message.type for message in result.messages] == ["human", "ai", "tool", "ai"]


async def test_an_answer_given_beside_other_calls_waits_for_their_results() -> None:
    first = calls_many(call("look", at="sea"), call("final_answer", name="Eve", age=1))
    model = ScriptedModel([first, calls("final_answer", name="Ada", age=36)])
    result = await run_node(model, tools=[look], output_schema=Person)
    assert result.output == {"name": "Ada", "age": 36}
    assert "seen sea" in text_of(model.inputs[1][-2])
    assert "alone" in text_of(model.inputs[1][-1])


@pytest.mark.parametrize("wrong", ["[1, 2]", "no idea", '{"name": "Ada"}', '{"name": "Ada", "age": "old"}'])
async def test_an_answer_that_does_not_fit_is_told_to_the_model_once(wrong: str) -> None:
    model = ScriptedModel([says(wrong), says(FITS)])
    result = await run_node(model, output_schema=Person)
    assert result.output == {"name": "Ada", "age": 36}
    assert "does not fit" in text_of(model.inputs[1][-1])


async def test_an_answer_that_never_fits_ends_in_a_typed_error_and_no_default_object() -> None:
    model = ScriptedModel([says("no"), calls("final_answer", name="x"), says("still no")])
    with pytest.raises(GraphExecutionError) as caught:
        await run_node(model, output_schema=Person, output_retries=2)
    assert isinstance(caught.value.__cause__, OutputSchemaError)
    assert caught.value.__cause__.raw == "still no"


async def test_a_model_that_takes_schemas_gets_the_schema_and_no_tool() -> None:
    model = ScriptedModel([says(FITS)], capabilities=ModelCapabilities(structured_output=True))
    result = await run_node(model, output_schema=Person)
    assert model.requests[0].output_schema is Person
    assert model.tools_seen == [[]]
    assert result.output == {"name": "Ada", "age": 36}


async def test_a_refusal_is_the_answer_as_text_and_a_typed_error_where_data_was_asked_for() -> None:
    assert (await run_node(ScriptedModel([refuses("I can't help.")]))).text == "I can't help."
    model = ScriptedModel([refuses("I can't help.")])
    with pytest.raises(GraphExecutionError) as caught:
        await run_node(model, output_schema=Person)
    refusal = caught.value.__cause__
    assert isinstance(refusal, ModelRefusalError)
    assert (refusal.refusal, refusal.reason) == ("I can't help.", "refusal")
    assert len(model.requests) == 1


def test_a_schema_that_is_no_object_is_refused_when_the_node_first_runs() -> None:
    from graphwright.engine.answer_schema import AnswerSchema

    with pytest.raises(ConfigurationError, match="no object"):
        AnswerSchema(int)


# Guards


class Refuses:
    name = "no_secrets"

    async def check_output(self, text: str) -> bool:
        return "secret" not in text


class Redacts:
    def check_output(self, text: str) -> str:
        return text.replace("secret", "***")


class Breaks:
    def check_output(self, text: str) -> str:
        raise ConnectionError("scanner down")


async def test_a_guard_that_fails_makes_the_node_fail_and_its_text_is_not_in_the_conversation() -> None:
    with pytest.raises(GraphExecutionError, match="guard 'no_secrets' refused the answer") as caught:
        await run_node(ScriptedModel([says("a secret")]), guards=[Refuses()])
    assert [message.type for message in caught.value.messages] == ["human"]
    assert caught.value.report is not None
    assert (caught.value.report.guards_passed, caught.value.report.guards_failed) == (0, 1)


async def test_a_guard_failure_follows_its_own_edge_before_the_error_edge() -> None:
    @node("fix", default_next="__end__")
    async def fix(state: GraphState) -> str:
        return "fixed: " + state.context["ask_output"].replace("secret", "thing")

    @node("other")
    async def other() -> str:
        return "other"

    graph = PromptGraph(nodes=[PromptNode("ask", guards=[Refuses()], is_entry=True), fix, other])
    graph.on_error("ask", "other").on_guard_fail("ask", "fix")
    result = await PromptGraphEngine(graph, ScriptedModel([says("a secret")])).ainvoke("go")
    assert result.text == "fixed: a thing"


async def test_a_guard_can_change_the_text_that_everybody_sees() -> None:
    result = await run_node(ScriptedModel([says("a secret")]), guards=[Redacts()], output_key="k")
    assert result.text == result.output == result.context["k"] == result.context["ask_output"] == "a ***"


async def test_a_guard_that_cannot_run_refuses() -> None:
    with pytest.raises(GraphExecutionError, match="scanner down"):
        await run_node(ScriptedModel([says("fine")]), guards=[Breaks()])


@pytest.mark.parametrize(("guard", "passes"), [(lambda text: "ok" in text, True), (lambda text: "no" in text, False)])
async def test_a_guard_can_be_a_function(guard: Any, passes: bool) -> None:
    model = ScriptedModel([says("ok")])
    if passes:
        assert (await run_node(model, guards=[guard])).text == "ok"
    else:
        with pytest.raises(GraphExecutionError, match="refused"):
            await run_node(model, guards=[guard])


async def test_a_listener_sees_guarded_text_only_after_the_verdict() -> None:
    engine = PromptGraphEngine(
        PromptGraph(nodes=[PromptNode("ask", guards=[Redacts()], is_entry=True)]),
        ScriptedModel([says("a secret here")]),
    )
    shown = [
        event["data"]["chunk"].content
        async for event in engine.astream_events("go")
        if event["event"] == "on_chat_model_stream"
    ]
    assert shown == ["a *** here"]


@pytest.mark.parametrize(
    "options",
    [
        {"tool_summary": "all"},
        {"blocks": [3]},
        {"strategy": "think"},
        {"preprocessor": "x"},
        {"max_iterations": 0},
    ],
)
def test_values_that_do_not_fit_are_refused_when_the_node_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        PromptNode("ask", **options)
