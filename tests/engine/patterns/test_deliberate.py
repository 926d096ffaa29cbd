"""Think, plan, act, observe, reflect, answer: every way through it."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import PromptGraph
from graphwright.engine.prebuilts import PeoatrPlan, PeoatrReflection
from graphwright.testing import calls, says

PLAN = {"subgoals": ["find a", "find b"], "active_subgoal": "find a", "quality_score": 4}


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def seen(what: str, *, complete: bool = True) -> dict[str, Any]:
    return {"summary": what, "entities": [], "facts": [what], "key_findings": [], "subgoal_complete": complete}


def reflection(route: str) -> dict[str, Any]:
    return {"progress": "good", "mistake": "", "correction": "", "confidence": 0.9, "route": route}


def test_the_stages_have_the_documented_names_schemas_and_budgets() -> None:
    graph = PromptGraph.deliberate()

    assert list(graph.nodes) == ["think", "plan", "act", "observe", "reflect", "answer"]
    assert [graph.get_node(name).max_iterations for name in ("plan", "act", "reflect")] == [3, 12, 4]
    assert graph.get_node("act").inject_tools
    assert graph.get_node("plan").output_schema is PeoatrPlan
    assert graph.get_node("reflect").output_schema is PeoatrReflection
    assert graph.validate() == []


async def test_every_stage_has_its_turn_until_all_subgoals_are_complete(staged: Any) -> None:
    world = staged(
        "deliberate",
        think={"reasoning": "They want a and b."},
        plan=PLAN,
        act=[calls("look", at="a"), says("a is 1"), says("b is 2")],
        observe=[seen("a is 1"), seen("b is 2")],
        reflect=[reflection("continue"), reflection("answer")],
        answer="a is 1 and b is 2",
    )

    result = await world.run(PromptGraph.deliberate([look], "You are a pirate.", blocks=["Be kind."]))

    assert result.text == "a is 1 and b is 2"
    assert " ".join(world.asked) == "think plan act act observe reflect act observe reflect answer"
    assert world.state.completed == ["find a", "find b"]
    assert world.state.all_subgoals_complete
    assert "They want a and b." in world.systems["act"][0]
    assert "b is 2" in world.systems["answer"][0]
    for systems in world.systems.values():
        assert systems[0].startswith("You are a pirate.")
        assert "Be kind." in systems[0]


async def test_an_open_subgoal_stays_open(staged: Any) -> None:
    world = staged(
        "deliberate",
        think={"reasoning": "hm"},
        plan=PLAN,
        act="nothing found",
        observe=seen("nothing", complete=False),
        reflect=[reflection("replan"), reflection("answer")],
        answer="I could not find it.",
    )

    result = await world.run(PromptGraph.deliberate())

    assert result.text == "I could not find it."
    assert " ".join(world.asked) == "think plan act observe reflect plan act observe reflect answer"
    assert world.state.completed == []
    assert not world.state.all_subgoals_complete


async def test_used_up_budgets_lead_to_a_written_answer(staged: Any) -> None:
    endless = staged("deliberate", think={"reasoning": "hm"}, plan=PLAN, act=calls("look", at="a"), answer="a is 1")
    restless = staged(
        "deliberate",
        think={"reasoning": "hm"},
        plan=PLAN,
        act="more",
        observe=seen("x"),
        reflect=reflection("continue"),
        answer="ok",
    )

    first = await endless.run(PromptGraph.deliberate([look], max_act_steps=2))
    second = await restless.run(PromptGraph.deliberate())

    assert first.text == "a is 1"
    assert endless.asked == ["think", "plan", "act", "act", "answer"]
    assert second.text == "ok"
    assert restless.asked.count("reflect") == 4


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="max_steps"):
        PromptGraph.deliberate(max_steps=3)  # type: ignore[call-arg]
