"""RouterNode: what counts as naming a route, and what happens when a reply names none."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import GraphExecutionError, GraphState, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.nodes import RouterNode
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.testing import ScriptedModel, says


def routed(**options: Any) -> PromptGraph:
    @node("yes_node", default_next="__end__", description="Say yes.")
    async def yes_node(state: GraphState) -> str:
        return "went to yes"

    @node("no_node", default_next="__end__")
    async def no_node(state: GraphState) -> str:
        return "went to no"

    options.setdefault("routes", {"yes": "yes_node", "no": "no_node"})
    return PromptGraph(nodes=[RouterNode("r", is_entry=True, **options), yes_node, no_node])


@pytest.mark.parametrize(
    ("reply", "went"),
    [
        ("yes", "yes"),
        (" No.\n", "no"),
        ("YES", "yes"),
        ("`no`", "no"),
        ("```\nno\n```", "no"),
        ('{"route": "no"}', "no"),
        ('```json\n{"route": "No", "reason": "not yes"}\n```', "no"),
        ('I think {"choice": "yes", "why": "a } brace"}', "yes"),
    ],
)
async def test_a_route_is_matched_as_the_whole_reply_or_inside_json(reply: str, went: str) -> None:
    with ScriptedModel([reply]) as model:
        result = await PromptGraphEngine(routed(), model).ainvoke("which?")
    assert result.text == f"went to {went}"
    assert result.context["r_output"] == went


@pytest.mark.parametrize("reply", ["I cannot tell, maybe now", "yes or no", '{"route": "maybe yes"}', "nope"])
async def test_a_route_inside_a_sentence_is_no_choice_and_the_model_is_asked_once_more(reply: str) -> None:
    with ScriptedModel([reply, "yes"]) as model:
        result = await PromptGraphEngine(routed(), model).ainvoke("which?")
    assert result.text == "went to yes"
    assert "none of the routes" in text_of(model.inputs[1][-1])
    assert text_of(model.inputs[1][-2]) == reply


async def test_routes_that_differ_only_in_case_are_told_apart() -> None:
    graph = routed(routes={"a": "yes_node", "A": "no_node"})
    result = await PromptGraphEngine(graph, ScriptedModel(["A"])).ainvoke("which?")
    assert result.text == "went to no"


async def test_without_a_match_the_default_is_taken_and_without_a_default_the_node_fails() -> None:
    result = await PromptGraphEngine(routed(default_next="no_node"), ScriptedModel(["hm", "hm"])).ainvoke("which?")
    assert result.text == "went to no"
    with pytest.raises(GraphExecutionError, match=r"none of the routes 'yes', 'no', it said 'hm'; give default_next"):
        await PromptGraphEngine(routed(), ScriptedModel(["hm", "hm"])).ainvoke("which?")


async def test_the_routing_exchange_is_no_part_of_the_conversation_and_its_tokens_count() -> None:
    model = ScriptedModel([says("hm"), says("yes")])
    result = await PromptGraphEngine(routed(), model).ainvoke("which?")
    assert [text_of(message) for message in result.messages] == ["which?", "went to yes"]
    assert (result.usage.total_tokens, result.report.total_tokens) == (30, 30)


async def test_the_model_reads_instructions_blocks_and_descriptions_and_gets_no_tools() -> None:
    class Block:
        def render(self, context: dict[str, Any]) -> str:
            return f"tier {context['tier']}"

    graph = routed(instructions="Route well.", context_blocks=[Block(), "be quick"])
    model = ScriptedModel(["yes"])
    await PromptGraphEngine(graph, model, tools=[len]).ainvoke("which?", context={"tier": 3})
    seen = [text_of(message) for message in model.inputs[0]]
    assert seen == [
        "Route well.\n\ntier 3\n\nbe quick",
        "which?",
        "Choose the route that fits the conversation above:\n- yes: Say yes.\n- no\n"
        "Answer with the name of one route and nothing else.",
    ]
    assert model.tools_seen == [[]]


async def test_model_override_is_the_model_that_routes() -> None:
    small = ScriptedModel(["yes"], name="small")
    main = ScriptedModel(["the answer"], name="main")
    graph = routed(model_override=small, routes={"yes": "write", "no": "no_node"})
    graph.remove_node("yes_node").add_node(PromptNode("write"))
    result = await PromptGraphEngine(graph, main).ainvoke("which?")
    assert (result.text, len(small.requests), len(main.requests)) == ("the answer", 1, 1)


def test_validate_sees_routes_that_lead_nowhere_and_nodes_reached_only_by_a_route() -> None:
    assert routed().validate() == []
    problems = routed(routes={"yes": "nowhere", "no": "no_node"}).validate()
    assert problems[0] == "route 'yes' of node 'r' leads to 'nowhere', which is no node"


def test_a_router_without_routes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give a dict of route name"):
        RouterNode("r")
