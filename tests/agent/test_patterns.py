"""`agent_pattern`, `node_pool` and `graph_blocks` of `build_agent`, and the limits that go with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.agent import AGENT_PATTERNS, DEFAULT_SYSTEM_PROMPT, build_agent
from graphwright.engine import GraphIterationLimitError, GraphMutation, NodeResult, PromptGraph, PromptNode, node
from graphwright.engine.nodes import HumanNode
from graphwright.exceptions import ConfigurationError, FeatureOffError, UnknownPatternError
from graphwright.messages import text_of
from graphwright.models.base import ModelCapabilities
from graphwright.testing import ScriptedModel, calls, says

NATIVE = ModelCapabilities(structured_output=True)
ENTRIES = {
    "react": ["reason"],
    "managed": ["reason"],
    "verify": ["reason"],
    "peoatr": ["plan", "act", "think", "reflect", "answer"],
    "research": ["search", "verify", "synthesize"],
    "autonomous": ["agent"],
    "deliberate": ["think", "plan", "act", "observe", "reflect", "answer"],
    "debate": ["proposer", "critic", "judge", "answer"],
}


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def verdict(*, passes: bool) -> Any:
    return says(json.dumps({"passes": passes, "issues": []}))


@pytest.mark.parametrize("name", [name for name in AGENT_PATTERNS if name != "code-action"])
async def test_each_name_makes_its_graph(name: str) -> None:
    agent = await build_agent(model=ScriptedModel(), agent_pattern=name)

    assert agent.graph.name == name
    assert list(agent.graph.nodes) == ENTRIES[name]


async def test_the_names_are_those_of_the_reference_and_the_one_without_a_sandbox_is_off() -> None:
    assert set(AGENT_PATTERNS) == {*ENTRIES, "code-action"}
    with pytest.raises(FeatureOffError, match="'code-action' needs a sandbox"):
        await build_agent(model=ScriptedModel(), agent_pattern="code-action")


async def test_a_pipeline_is_no_name_and_says_what_to_give() -> None:
    with pytest.raises(UnknownPatternError, match=r"agent_pattern=PromptGraph\.pipeline\(first, second\)"):
        await build_agent(model=ScriptedModel(), agent_pattern="pipeline")


async def test_instructions_and_tools_reach_the_stages_of_a_pattern() -> None:
    model = ScriptedModel([calls("look", at="a"), says("a"), verdict(passes=True), says("a!")], capabilities=NATIVE)
    agent = await build_agent(
        model=model,
        agent_pattern="research",
        instructions="You are a pirate.",
        extra_tools=[look],
        graph_blocks=["Be kind."],
    )

    assert (await agent.ainvoke("What is a?")).text == "a!"
    systems = [text_of(messages[0]) for messages in model.inputs]
    assert all(system.startswith("You are a pirate.") and "Be kind." in system for system in systems)
    assert model.tools_seen == [["look"], ["look"], [], []]


async def test_a_prompt_of_one_chat_takes_the_place_of_the_instructions_at_every_stage() -> None:
    model = ScriptedModel([says("a"), verdict(passes=True), says("a!")], capabilities=NATIVE)
    agent = await build_agent(model=model, agent_pattern="research", instructions="You are a pirate.")

    assert await agent.chat("What is a?", session_id="s", system_prompt="You are a judge.") == "a!"
    systems = [text_of(messages[0]) for messages in model.inputs]
    assert all("judge" in system and "pirate" not in system for system in systems)


async def test_critic_and_judge_of_a_debate_are_not_told_who_the_agent_is() -> None:
    mild = says(json.dumps({"weaknesses": [], "improvements": [], "severity": 0.0}))
    model = ScriptedModel([says("a"), mild, verdict(passes=True), says("a!")], capabilities=NATIVE)
    agent = await build_agent(model=model, agent_pattern="debate", instructions="You are a pirate.")

    await agent.ainvoke("What is a?")

    assert ["pirate" in text_of(messages[0]) for messages in model.inputs] == [True, False, False, True]


async def test_a_pattern_may_use_all_its_budgets_when_the_caller_sets_no_limit() -> None:
    model = ScriptedModel([*(calls("look", at=str(index)) for index in range(29)), says("done")], strict=True)
    agent = await build_agent(model=model, agent_pattern="managed", extra_tools=[look])

    assert (await agent.ainvoke("go")).text == "done"
    peoatr = await build_agent(model=ScriptedModel(), agent_pattern="peoatr")
    assert peoatr.max_iterations >= 3 + 12 + 12 + 4 + 1
    assert (await build_agent(model=ScriptedModel(), agent_pattern="react")).max_iterations == 25


async def test_a_limit_of_the_caller_holds_for_a_pattern() -> None:
    model = ScriptedModel([calls("look", at="a"), calls("look", at="b")])
    agent = await build_agent(model=model, agent_pattern="research", extra_tools=[look], max_agent_iterations=2)

    with pytest.raises(GraphIterationLimitError) as caught:
        await agent.ainvoke("go")

    assert caught.value.limit == 2
    verify = await build_agent(model=ScriptedModel(), agent_pattern="verify", max_agent_iterations=9)
    assert verify.graph.get_node("reason").max_iterations == 9


async def test_a_node_pool_makes_an_autonomous_agent() -> None:
    pool = [
        PromptNode("search", instructions="Search.", description="Search.", inject_tools=True),
        PromptNode("write", instructions="Write it down.", description="Write.", is_terminal=True),
    ]
    model = ScriptedModel(
        [
            says('{"next_node": "search", "reason": "first"}'),
            calls("look", at="a"),
            says("a is 1"),
            says('{"next_node": "write", "reason": "done"}'),
            says("It is 1."),
        ]
    )
    agent = await build_agent(model=model, node_pool=pool, instructions="You are a pirate.", extra_tools=[look])

    result = await agent.ainvoke("What is a?")

    model.assert_done()
    assert result.text == "It is 1."
    assert list(agent.graph.nodes) == ["agent"]
    systems = ["\n".join(text_of(m) for m in messages if m.type == "system") for messages in model.inputs]
    assert all("pirate" in system for system in systems)
    assert all(system.count("pirate") == 1 for system in systems)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent_pattern": "react"}, "node_pool= makes an autonomous agent, and agent_pattern is 'react'"),
        ({"agent_pattern": PromptGraph("own")}, "node_pool= makes an autonomous agent"),
        ({"graph_blocks": ["Be kind."]}, "graph_blocks= goes to a named pattern"),
        ({"node_pool": []}, "node_pool is empty"),
        ({"node_pool": "search"}, "node_pool is 'search'"),
        ({"node_pool": [object()]}, "is no node"),
    ],
)
async def test_a_node_pool_excludes_what_does_not_go_with_it(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await build_agent(model=ScriptedModel(), **{"node_pool": [PromptNode("a")], **options})


async def test_a_pool_may_be_given_with_the_name_it_stands_for() -> None:
    agent = await build_agent(model=ScriptedModel(), agent_pattern="autonomous", node_pool=[PromptNode("a")])

    assert agent.graph.name == "autonomous"


async def test_a_graph_of_the_callers_own_is_run_as_written_whatever_its_mode() -> None:
    graph = PromptGraph("own", mode="autonomous")
    graph.add_node(PromptNode("first", default_next="second", is_entry=True))
    graph.add_node(PromptNode("second", is_terminal=True))
    model = ScriptedModel(["one", "two"])
    agent = await build_agent(model=model, agent_pattern=graph, instructions="You are a pirate.")

    result = await agent.ainvoke("go")

    assert agent.graph is graph
    assert result.report.nodes_visited == ["first", "second"]
    assert [text_of(messages[0]) for messages in model.inputs] == ["You are a pirate."] * 2
    assert DEFAULT_SYSTEM_PROMPT not in str(model.inputs)


async def test_the_keywords_for_changes_of_the_graph_reach_the_engine() -> None:
    def graph() -> PromptGraph:
        @node("change", is_entry=True, default_next="end")
        async def change() -> NodeResult:
            return NodeResult(
                graph_mutations=[
                    GraphMutation("add_edge", from_node="change", to_node="end"),
                    GraphMutation("add_edge", from_node="end", to_node="__end__"),
                ]
            )

        @node("end", is_terminal=True)
        async def end() -> str:
            return "done"

        return PromptGraph("own", nodes=[change, end])

    async def made(**options: Any) -> int:
        agent = await build_agent(model=ScriptedModel(), agent_pattern=graph(), **options)
        return (await agent.ainvoke("go")).report.graph_mutations

    assert await made() == 2
    assert await made(max_mutations_per_run=1) == 1
    assert await made(max_mutations_per_run=0) == 0
    assert await made(allow_self_modification=False) == 0
    with pytest.raises(ConfigurationError, match="max_mutations_per_run is -1"):
        await build_agent(model=ScriptedModel(), max_mutations_per_run=-1)


@pytest.mark.parametrize("approved", [True, False])
async def test_the_human_handler_of_an_agent_decides_at_its_human_node(approved: bool) -> None:
    asked: list[str] = []

    def decide(prompt: str, state: Any) -> bool:
        asked.append(prompt)
        return approved

    gate = HumanNode("gate", prompt_template="Send it?", on_approve="yes", on_deny="no", is_entry=True)
    graph = PromptGraph("own", nodes=[gate, PromptNode("yes", is_terminal=True), PromptNode("no", is_terminal=True)])
    agent = await build_agent(model=ScriptedModel(["done"]), agent_pattern=graph, human_handler=decide)

    result = await agent.ainvoke("go")

    assert result.report.nodes_visited == ["gate", "yes" if approved else "no"]
    assert asked == ["Send it?"]


async def test_nodes_of_the_callers_own_pool_get_no_instructions_that_nobody_gave() -> None:
    pool = [PromptNode("write", instructions="Write it down.", is_entry=True, is_terminal=True)]
    model = ScriptedModel(["It is 1."])

    assert (await (await build_agent(model=model, node_pool=pool)).ainvoke("What is a?")).text == "It is 1."
    assert text_of(model.inputs[0][0]) == "Write it down."


@pytest.mark.parametrize("name", ["verify", "research", "debate", "autonomous"])
async def test_the_answer_of_an_agent_with_a_schema_is_data_in_every_pattern(name: str) -> None:
    class Price(BaseModel):
        euros: int

    fields = {
        "Check the findings": '{"passes": true, "issues": []}',
        "Judge the newest": '{"passes": true, "issues": []}',
        "Challenge the newest": '{"weaknesses": [], "improvements": [], "severity": 0}',
        "Gather what is needed": "3 euros",
        "Propose a complete": "3 euros",
        '"next_node"': '{"next_node": "synthesize", "reason": "enough"}',
    }

    def answer(messages: list[Any]) -> str:
        shown = text_of(messages[0]) + text_of(messages[-1])
        return next((text for key, text in fields.items() if key in shown), '{"euros": 3}')

    model = ScriptedModel.answering(answer, capabilities=NATIVE)
    agent = await build_agent(model=model, agent_pattern=name, output_schema=Price)

    result = await agent.ainvoke("What does it cost?")

    model.assert_done()
    assert result.output == Price(euros=3)
