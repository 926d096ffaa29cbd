"""What holds for every pattern: it ends in a written answer, whichever stage fails."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.agent import build_agent
from graphwright.engine import GraphExecutionError, PromptGraph, PromptGraphEngine, PromptNode, prebuilts
from graphwright.exceptions import ConfigurationError, FeatureOffError
from graphwright.messages import HumanMessage, ToolMessage
from graphwright.models.base import ModelCapabilities
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, empty, raises, says

PLAN = {"subgoals": ["find a"], "active_subgoal": "find a", "quality_score": 5}
REFLECTION = {"progress": "good", "mistake": "", "correction": "", "confidence": 0.9, "route": "answer"}
SMOOTH: dict[str, dict[str, Any]] = {
    "peoatr": {
        "plan": PLAN,
        "act": "a is 1",
        "think": {"analysis": "fine", "subgoal_complete": True, "route": "reflect"},
        "reflect": REFLECTION,
        "answer": "one",
    },
    "deliberate": {
        "think": {"reasoning": "hm"},
        "plan": PLAN,
        "act": "a is 1",
        "observe": {"summary": "a is 1", "entities": [], "facts": [], "key_findings": [], "subgoal_complete": True},
        "reflect": REFLECTION,
        "answer": "one",
    },
    "research": {"search": "a is 1", "verify": {"passes": True, "issues": []}, "synthesize": "one"},
    "debate": {
        "proposer": "a is 1",
        "critic": {"weaknesses": [], "improvements": [], "severity": 0.0},
        "judge": {"passes": True, "issues": []},
        "answer": "one",
    },
}
STAGES = [(pattern, stage) for pattern, stages in SMOOTH.items() for stage in stages]
LAST = {"answer", "synthesize"}


@pytest.mark.parametrize("pattern", SMOOTH)
async def test_the_smooth_way_visits_each_stage_once_and_ends_in_the_answer(staged: Any, pattern: str) -> None:
    world = staged(pattern, **SMOOTH[pattern])

    result = await world.run(getattr(PromptGraph, pattern)())

    assert result.text == "one"
    assert world.asked == list(SMOOTH[pattern])
    assert_valid_conversation(result["messages"])


@pytest.mark.parametrize(("pattern", "stage"), [way for way in STAGES if way[1] not in LAST])
@pytest.mark.parametrize("failure", ["provider", "form", "nothing"])
async def test_whichever_stage_fails_the_run_ends_in_a_written_answer(
    staged: Any, pattern: str, stage: str, failure: str
) -> None:
    broken = {"provider": raises(ValueError("no")), "form": says("}{"), "nothing": empty()}[failure]
    world = staged(pattern, **{**SMOOTH[pattern], stage: broken})

    result = await world.run(getattr(PromptGraph, pattern)())

    assert result.text == "one"
    assert_valid_conversation(result["messages"])


@pytest.mark.parametrize("pattern", SMOOTH)
async def test_an_answer_that_cannot_be_written_is_an_error(staged: Any, pattern: str) -> None:
    last = list(SMOOTH[pattern])[-1]
    world = staged(pattern, **{**SMOOTH[pattern], last: raises(ValueError("no"))})

    with pytest.raises(GraphExecutionError) as caught:
        await world.run(getattr(PromptGraph, pattern)())

    assert caught.value.node_name == last


@pytest.mark.parametrize("pattern", SMOOTH)
async def test_with_a_schema_the_answer_is_data(staged: Any, pattern: str) -> None:
    class Price(BaseModel):
        euros: int

    last = list(SMOOTH[pattern])[-1]
    world = staged(pattern, **{**SMOOTH[pattern], last: {"euros": 3}})

    result = await world.run(getattr(PromptGraph, pattern)(output_schema=Price))

    assert result.output == {"euros": 3}


@pytest.mark.parametrize("pattern", ["react", "verify", "managed"])
async def test_a_pattern_of_one_node_calls_tools_and_answers(pattern: str) -> None:
    def look(at: str) -> str:
        """Look at something."""
        return f"seen {at}"

    graph = getattr(PromptGraph, pattern)([look], "You are a pirate.", blocks=["Be kind."])
    with ScriptedModel([calls("look", at="a"), says("a is 1")]) as model:
        result = await PromptGraphEngine(graph, model).ainvoke("What is a?")

    system = str(model.inputs[0][0].content)
    assert result.text == "a is 1"
    assert [type(message) for message in result["messages"]][:1] == [HumanMessage]
    assert isinstance(result["messages"][2], ToolMessage)
    assert system.startswith("You are a pirate.")
    assert "Be kind." in system
    assert ("Check: test the result" in system) is (pattern == "verify")
    assert {node.max_iterations for node in graph.nodes.values()} == {
        {"react": 15, "verify": 6, "managed": 30}[pattern]
    }


def test_the_long_runner_keeps_its_facts_in_a_ledger() -> None:
    assert PromptGraph.managed().get_node("reason").context_scope == "ledger"


def test_the_program_writing_pattern_says_that_it_is_off() -> None:
    with pytest.raises(FeatureOffError, match="'code-action' needs a sandbox"):
        PromptGraph.code_action()


@pytest.mark.parametrize("name", [name for name in prebuilts.__all__ if name.startswith("build_")])
def test_every_factory_is_a_method_of_the_graph_with_the_same_signature(name: str) -> None:
    method = getattr(PromptGraph, name.removeprefix("build_").removesuffix("_graph"))
    factory = getattr(prebuilts, name)

    def shape(function: Any) -> list[tuple[str, Any, Any]]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    assert shape(method) == shape(factory)


async def test_a_pipeline_runs_its_nodes_in_order_and_the_last_one_answers() -> None:
    graph = PromptGraph.pipeline(PromptNode("draft"), PromptNode("mend", instructions="Mend the draft."))
    with ScriptedModel(["a draft", "mended"]) as model:
        result = await PromptGraphEngine(graph, model).ainvoke("Write.")

    assert result.text == "mended"
    assert result.report.nodes_visited == ["draft", "mend"]
    assert graph.validate() == []


def test_a_pipeline_of_nothing_or_of_twins_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no nodes"):
        PromptGraph.pipeline()
    with pytest.raises(ConfigurationError, match="more than one node named 'a'"):
        PromptGraph.pipeline(PromptNode("a"), PromptNode("a"))
    with pytest.raises(ConfigurationError, match="'a' is no node"):
        PromptGraph.pipeline("a")


async def test_a_model_without_structured_output_takes_the_same_way() -> None:
    def answer(messages: list[Any]) -> Any:
        system = str(messages[0].content)
        if "Plan how" in system:
            return calls("final_answer", **PLAN)
        if "newest results" in system:
            return calls("final_answer", **SMOOTH["peoatr"]["think"])
        if "Review the work" in system:
            return calls("final_answer", **REFLECTION)
        return "one"

    model = ScriptedModel.answering(answer, capabilities=ModelCapabilities())
    result = await PromptGraphEngine(PromptGraph.peoatr(), model).ainvoke("What is a?")

    model.assert_done()
    assert result.text == "one"
    assert result.report.nodes_visited == ["plan", "act", "think", "reflect", "answer"]


PAGE = Path(__file__).parents[3] / "docs" / "patterns.md"


@pytest.mark.parametrize(
    "pattern", ["react", "verify", "managed", "peoatr", "research", "autonomous", "deliberate", "debate"]
)
def test_the_page_draws_each_pattern_as_it_is(pattern: str) -> None:
    section = re.search(
        rf"^## `{pattern}`\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert section is not None
    drawings = re.findall(r"^```mermaid\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)

    assert drawings == [getattr(PromptGraph, pattern)().to_mermaid() + "\n"]


@pytest.mark.parametrize("pattern", SMOOTH)
async def test_no_stage_asks_a_model_to_continue_its_own_turn_and_the_conversation_shows_none_of_it(
    staged: Any, pattern: str
) -> None:
    again = {"research": {"verify": [{"passes": False, "issues": ["why?"]}, SMOOTH["research"].get("verify")]}}
    world = staged(pattern, **{**SMOOTH[pattern], **again.get(pattern, {})})

    result = await world.run(getattr(PromptGraph, pattern)())

    assert [messages[-1].type for messages in world.model.inputs] == ["human"] * len(world.asked)
    assert [message.type for message in result["messages"]].count("human") == 1
    assert {message.type for message in result["messages"]} == {"human", "ai"}
    assert "{" not in "".join(str(message.content) for message in result["messages"])


async def test_a_pattern_in_a_stream_shows_the_texts_and_not_the_fields(staged: Any) -> None:
    world = staged("research", **SMOOTH["research"])
    agent = await build_agent(model=world.model, agent_pattern="research")

    events = [event async for event in agent.astream_with_tools("What is a?")]

    assert "".join(event.text for event in events if event.type == "token") == "a is 1one"
    assert events[-1].full_response == "one"


@pytest.mark.parametrize("pattern", ["react", "verify", "managed", "autonomous", *SMOOTH])
async def test_a_pattern_can_be_written_down_and_read_back(staged: Any, pattern: str) -> None:
    allowed = ["graphwright.engine.prebuilts.*"]
    graph = getattr(PromptGraph, pattern)(system_prompt="You are a pirate.")

    back = PromptGraph.from_config(graph.to_config(allow_imports=allowed), allow_imports=allowed)

    assert back.to_mermaid() == graph.to_mermaid()
    assert back.to_config(allow_imports=allowed) == graph.to_config(allow_imports=allowed)
    if pattern in SMOOTH:
        world = staged(pattern, **SMOOTH[pattern])
        assert (await world.run(back)).text == "one"
        assert world.asked == list(SMOOTH[pattern])
