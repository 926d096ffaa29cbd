"""The agent that chooses its steps: the default pool, and pools of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.engine import PromptGraph, PromptNode
from graphwright.engine.prebuilts import autonomous
from graphwright.exceptions import ConfigurationError
from graphwright.messages import AIMessage, HumanMessage
from graphwright.testing import calls, says


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def choose(step: str) -> Any:
    return says(f'{{"next_node": "{step}", "reason": "it fits"}}')


async def test_the_default_pool_reasons_with_tools_and_ends_with_a_synthesis(staged: Any) -> None:
    world = staged(
        "autonomous",
        planner=[choose("reason"), choose("analyze"), choose("synthesize")],
        reason=[calls("look", at="a"), says("a is 1")],
        analyze="That is enough.",
        synthesize="It is 1.",
    )

    result = await world.run(PromptGraph.autonomous(None, "You are a pirate.", tools=[look], blocks=["Be kind."]))

    assert result.text == "It is 1."
    assert " ".join(world.asked) == "planner reason reason planner analyze planner synthesize"
    assert all(system.count("pirate") == 1 for systems in world.systems.values() for system in systems)
    assert [stage for stage, systems in world.systems.items() if "Be kind." not in systems[0]] == ["planner"]


async def test_who_finishes_without_a_synthesis_gets_one(staged: Any) -> None:
    world = staged("autonomous", planner=[choose("reason"), choose("done")], reason="a is 1", synthesize="It is 1.")
    limit = staged("autonomous", planner=choose("reason"), reason="a is 1", synthesize="It is 1.")

    assert (await world.run(PromptGraph.autonomous())).text == "It is 1."
    assert (await limit.run(PromptGraph.autonomous(max_steps=2))).text == "It is 1."

    assert world.asked == ["planner", "reason", "planner", "synthesize"]
    assert limit.asked == ["planner", "reason", "planner", "reason", "synthesize"]


async def test_one_reason_step_has_its_own_budget(staged: Any) -> None:
    world = staged(
        "autonomous", planner=[choose("reason"), choose("done")], reason=calls("look", at="a"), synthesize="It is 1."
    )

    result = await world.run(PromptGraph.autonomous(tools=[look], max_tool_rounds=2))

    assert result.text == "It is 1."
    assert world.asked == ["planner", "reason", "reason", "planner", "synthesize"]


async def test_a_pool_of_ones_own_starts_at_its_entry_and_ends_at_its_terminal(staged: Any) -> None:
    pool = [
        PromptNode("first", instructions="Gather first.", is_entry=True),
        PromptNode("last", instructions="Write last.", is_terminal=True),
    ]
    world = staged("autonomous", planner=["a is 1", choose("last"), "It is 1."])

    result = await world.run(PromptGraph.autonomous(pool))

    assert result.text == "It is 1."
    assert [type(message) for message in result["messages"]] == [HumanMessage, AIMessage, AIMessage]
    assert "Gather first." in world.systems["planner"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": [look]}, "tools= is for the default pool"),
        ({"blocks": ["x"]}, "blocks= is for the default pool"),
    ],
)
def test_what_is_for_the_default_pool_is_refused_with_another(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PromptGraph.autonomous([PromptNode("a")], **options)


@pytest.mark.parametrize(("pool", "message"), [([], "node_pool is empty"), ([3], "3 in node_pool is no node")])
def test_a_pool_without_nodes_is_refused(pool: list[Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PromptGraph.autonomous(pool)


@pytest.mark.parametrize("own", [True, False])
async def test_with_a_schema_what_was_found_becomes_data(staged: Any, own: bool) -> None:
    class Price(BaseModel):
        euros: int

    pool = [PromptNode("synthesize", instructions=autonomous.SYNTHESIZE_PROMPT, is_terminal=True)] if own else None
    world = staged("autonomous", planner=choose("synthesize"), synthesize="It costs 3 euros.", answer={"euros": 3})

    result = await world.run(PromptGraph.autonomous(pool, output_schema=Price))

    assert result.output == {"euros": 3}
    assert world.asked == ["planner", "synthesize", "answer"]
