"""Plan, act, think, reflect, answer: every way through it."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import PromptGraph
from graphwright.engine.prebuilts import PeoatrPlan, PeoatrReflection, PeoatrThought
from graphwright.testing import calls, says

PLAN = {"subgoals": ["find a", "find b"], "active_subgoal": "find a", "quality_score": 4}
POOR = {**PLAN, "quality_score": 1}


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def thought(*, complete: bool, route: str) -> dict[str, Any]:
    return {"analysis": "fine", "subgoal_complete": complete, "route": route}


def reflection(route: str, mistake: str = "") -> dict[str, Any]:
    return {
        "progress": "good",
        "mistake": mistake,
        "correction": mistake and "Do b.",
        "confidence": 0.9,
        "route": route,
    }


def test_the_stages_have_the_documented_names_schemas_and_budgets() -> None:
    graph = PromptGraph.peoatr(max_act_steps=7)

    assert {name: node.max_iterations for name, node in graph.nodes.items() if name != "answer"} == {
        "plan": 3,
        "act": 7,
        "think": 12,
        "reflect": 4,
    }
    assert list(graph.nodes) == ["plan", "act", "think", "reflect", "answer"]
    assert graph.get_node("plan").output_schema is PeoatrPlan
    assert graph.get_node("think").output_schema is PeoatrThought
    assert graph.get_node("reflect").output_schema is PeoatrReflection
    assert graph.entry == "plan"
    assert graph.validate() == []


async def test_the_subgoals_are_worked_off_one_after_another_until_all_are_complete(staged: Any) -> None:
    world = staged(
        "peoatr",
        plan=PLAN,
        act=[calls("look", at="a"), says("a is 1"), says("b is 2")],
        think=[thought(complete=True, route="continue"), thought(complete=True, route="reflect")],
        reflect=reflection("answer"),
        answer="a is 1 and b is 2",
    )

    result = await world.run(PromptGraph.peoatr([look]))

    assert result.text == "a is 1 and b is 2"
    assert world.asked == ["plan", "act", "act", "think", "act", "think", "reflect", "answer"]
    assert world.state.plan == ["find a", "find b"]
    assert world.state.completed == ["find a", "find b"]
    assert world.state.all_subgoals_complete
    assert "→ find a" in world.systems["act"][0]
    assert "→ find b" in world.systems["act"][2]


async def test_a_poor_plan_is_made_again_and_a_third_poor_one_is_used(staged: Any) -> None:
    scripts = {"act": "done", "think": thought(complete=True, route="reflect"), "reflect": reflection("answer")}
    better = staged("peoatr", plan=[POOR, PLAN], answer="ok", **scripts)
    never = staged("peoatr", plan=POOR, answer="ok", **scripts)

    await better.run(PromptGraph.peoatr())
    await never.run(PromptGraph.peoatr())

    assert better.asked == ["plan", "plan", "act", "think", "reflect", "answer"]
    assert never.asked == ["plan", "plan", "plan", "act", "think", "reflect", "answer"]


async def test_reflect_leads_back_to_the_plan_or_to_the_work(staged: Any) -> None:
    world = staged(
        "peoatr",
        plan=PLAN,
        act="done",
        think=thought(complete=True, route="reflect"),
        reflect=[reflection("replan", "Looked at a."), reflection("continue"), reflection("answer")],
        answer="ok",
    )

    await world.run(PromptGraph.peoatr())

    assert " ".join(world.asked) == ("plan act think reflect plan act think reflect act think reflect answer")
    assert "Looked at a." in world.systems["act"][1]


async def test_used_up_budgets_lead_to_a_written_answer(staged: Any) -> None:
    endless = staged("peoatr", plan=PLAN, act=calls("look", at="a"), answer="a is 1")
    thinking = staged(
        "peoatr",
        plan=PLAN,
        act="more",
        think=thought(complete=False, route="continue"),
        reflect=reflection("continue"),
        answer="enough",
    )

    first = await endless.run(PromptGraph.peoatr([look], max_act_steps=2))
    second = await thinking.run(PromptGraph.peoatr(max_act_steps=25))

    assert first.text == "a is 1"
    assert endless.asked == ["plan", "act", "act", "answer"]
    assert second.text == "enough"
    assert {stage: thinking.asked.count(stage) for stage in ("plan", "think", "reflect", "answer")} == {
        "plan": 1,
        "think": 12,
        "reflect": 4,
        "answer": 1,
    }


async def test_the_texts_reach_the_stages_they_are_for(staged: Any) -> None:
    world = staged(
        "peoatr",
        plan=PLAN,
        act="done",
        think=thought(complete=True, route="reflect"),
        reflect=reflection("answer"),
        answer="ok",
    )
    graph = PromptGraph.peoatr(
        system_prompt="You are a pirate.",
        planning_instructions="Plan short.",
        acting_instructions="Act fast.",
        thinking_instructions="Think hard.",
        reflecting_instructions="Reflect long.",
        blocks=["Be kind."],
    )

    await world.run(graph)

    own = {"plan": "Plan short.", "act": "Act fast.", "think": "Think hard.", "reflect": "Reflect long."}
    for stage, systems in world.systems.items():
        assert systems[0].startswith("You are a pirate.")
        assert "Be kind." in systems[0]
        assert [name for name, text in own.items() if text in systems[0]] == [name for name in own if name == stage]


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="max_act_step'"):
        PromptGraph.peoatr(max_act_step=3)  # type: ignore[call-arg]
