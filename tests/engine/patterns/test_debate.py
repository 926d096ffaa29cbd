"""Proposer, critic, judge, answer: every way through it."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import PromptGraph
from graphwright.engine.prebuilts import DebateCritique, DebateVerdict
from graphwright.testing import calls

MILD = {"weaknesses": ["a little long"], "improvements": [], "severity": 0.2}
GRAVE = {"weaknesses": ["b is missing"], "improvements": ["Add b."], "severity": 0.8}
GOOD = {"passes": True, "issues": []}
BAD = {"passes": False, "issues": ["Still no b."]}


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def test_the_stages_have_the_documented_names_schemas_and_budgets() -> None:
    graph = PromptGraph.debate()

    assert list(graph.nodes) == ["proposer", "critic", "judge", "answer"]
    assert [graph.get_node(name).max_iterations for name in ("proposer", "critic", "judge")] == [12, 3, 3]
    assert graph.get_node("critic").output_schema is DebateCritique
    assert graph.get_node("judge").output_schema is DebateVerdict
    assert graph.get_node("critic").severity_threshold == 0.3
    assert graph.validate() == []


async def test_a_grave_weakness_and_a_failed_verdict_send_the_proposal_back(staged: Any) -> None:
    world = staged(
        "debate",
        proposer=["a", "a, maybe b", "a and b"],
        critic=[GRAVE, MILD, MILD],
        judge=[BAD, GOOD],
        answer="It is a and b.",
    )

    result = await world.run(PromptGraph.debate())

    assert result.text == "It is a and b."
    assert " ".join(world.asked) == "proposer critic proposer critic judge proposer critic judge answer"
    assert "Add b." in world.systems["proposer"][1]
    assert "Still no b." in world.systems["proposer"][2]


async def test_endless_strife_ends_in_a_written_answer(staged: Any) -> None:
    critic = staged("debate", proposer="a", critic=GRAVE, judge=GOOD, answer="a")
    judge = staged("debate", proposer="a", critic=MILD, judge=BAD, answer="a")
    proposer = staged("debate", proposer=calls("look", at="a"), answer="a")

    for world in (critic, judge):
        assert (await world.run(PromptGraph.debate(max_rounds=2))).text == "a"
    assert (await proposer.run(PromptGraph.debate(tools=[look], max_proposer_steps=2))).text == "a"

    assert " ".join(critic.asked) == "proposer critic proposer critic proposer judge answer"
    assert " ".join(judge.asked) == "proposer critic judge proposer critic judge proposer answer"
    assert proposer.asked == ["proposer", "proposer", "answer"]


async def test_critic_and_judge_look_from_outside(staged: Any) -> None:
    world = staged("debate", proposer="a", critic=MILD, judge=GOOD, answer="a")

    await world.run(PromptGraph.debate("You are a pirate.", blocks=["Be kind."]))

    assert [stage for stage, systems in world.systems.items() if "pirate" in systems[0]] == ["proposer", "answer"]
    assert all("Be kind." in systems[0] for systems in world.systems.values())


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="rounds"):
        PromptGraph.debate(rounds=3)  # type: ignore[call-arg]
