"""Search, verify, synthesize: every way through it."""

from __future__ import annotations

from typing import Any

from graphwright.engine import PromptGraph
from graphwright.engine.prebuilts import ResearchVerdict
from graphwright.testing import calls, says

GOOD = {"passes": True, "issues": []}
BAD = {"passes": False, "issues": ["No source for b."]}


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def cite(source: str) -> str:
    """Cite a source."""
    return f"[{source}]"


def test_the_stages_have_the_documented_names_schemas_and_budgets() -> None:
    graph = PromptGraph.research()

    assert list(graph.nodes) == ["search", "verify", "synthesize"]
    assert [graph.get_node(name).max_iterations for name in ("search", "verify")] == [12, 2]
    assert graph.get_node("verify").output_schema is ResearchVerdict
    assert graph.validate() == []
    assert list(PromptGraph.research(verify=False).nodes) == ["search", "synthesize"]
    assert PromptGraph.research(verify=False).validate() == []


async def test_a_failed_check_goes_back_to_search_with_its_issues(staged: Any) -> None:
    world = staged(
        "research",
        search=[calls("look", at="a"), says("a is 1"), says("b is 2")],
        verify=[BAD, GOOD],
        synthesize="a is 1 and b is 2",
    )

    result = await world.run(PromptGraph.research([look], None, "You are a pirate.", blocks=["Be kind."]))

    assert result.text == "a is 1 and b is 2"
    assert world.asked == ["search", "search", "verify", "search", "verify", "synthesize"]
    assert "No source for b." not in world.systems["search"][0]
    assert "No source for b." in world.systems["search"][2]
    assert "seen a" in world.systems["verify"][0]
    for systems in world.systems.values():
        assert systems[0].startswith("You are a pirate.")
        assert "Be kind." in systems[0]


async def test_a_check_that_never_passes_ends_in_an_answer_after_its_rounds(staged: Any) -> None:
    world = staged("research", search="a is 1", verify=BAD, synthesize="a is 1, unconfirmed")

    result = await world.run(PromptGraph.research(max_verify_rounds=2))

    assert result.text == "a is 1, unconfirmed"
    assert world.asked == ["search", "verify", "search", "verify", "search", "synthesize"]
    assert "No source for b." in world.systems["synthesize"][0]


async def test_a_search_that_uses_its_budget_ends_in_an_answer(staged: Any) -> None:
    world = staged("research", search=calls("look", at="a"), synthesize="a is 1")

    result = await world.run(PromptGraph.research([look], max_search_steps=2))

    assert result.text == "a is 1"
    assert world.asked == ["search", "search", "synthesize"]


async def test_each_stage_has_its_own_tools_and_only_search_gets_the_agents(staged: Any) -> None:
    world = staged("research", search="a", verify=GOOD, synthesize=[calls("cite", source="x"), says("a [x]")])

    result = await world.run(PromptGraph.research(None, [cite]), tools=[look])

    assert result.text == "a [x]"
    assert [seen for seen in world.model.tools_seen if seen != ["final_answer"]] == [["look"], [], ["cite"], ["cite"]]
