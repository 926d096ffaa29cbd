"""A long tool loop is compacted in every pattern that calls tools."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.exceptions import GraphExecutionError
from graphwright.testing import ScriptedModel, calls, says

ROUNDS = 10
PLAN = calls("final_answer", subgoals=["look"], active_subgoal="look", quality_score=5)


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


@pytest.mark.parametrize("pattern", ["react", "verify", "managed"])
@pytest.mark.parametrize("compaction", [None, False])
async def test_the_view_of_a_long_loop_is_short_unless_that_is_off(pattern: str, compaction: bool | None) -> None:
    asked = 0

    def answer(messages: Any) -> Any:
        nonlocal asked
        asked += 1
        return calls("look", at=str(asked)) if asked <= ROUNDS else says("done")

    model = ScriptedModel.answering(answer)
    agent = await build_agent(
        model=model,
        extra_tools=[look],
        agent_pattern=pattern,
        context_compaction=compaction,
        max_agent_iterations=60,
    )
    result = await agent.ainvoke("go")
    assert result.text == "done"
    assert len(result.messages) == 2 * ROUNDS + 2
    shown = max(len(given) for given in model.inputs)
    if compaction is None:
        assert shown < 18
    else:
        assert shown == 2 * ROUNDS + 2


@pytest.mark.parametrize("pattern", ["research", "debate", "peoatr", "deliberate", "autonomous"])
@pytest.mark.parametrize("compaction", [None, False])
async def test_a_stage_that_calls_tools_is_shown_a_short_view_unless_that_is_off(
    pattern: str, compaction: bool | None
) -> None:
    asked = 0

    def answer(messages: Any) -> Any:
        nonlocal asked
        if not model.requests[-1].tools:
            return says('{"next_node": "reason", "reason": "look"}')
        if "look" not in model.tools_seen[-1]:
            return PLAN if pattern in ("peoatr", "deliberate") else says("ok")
        asked += 1
        return calls("look", at=str(asked)) if asked <= ROUNDS else says("found")

    model = ScriptedModel.answering(answer)
    agent = await build_agent(
        model=model, extra_tools=[look], agent_pattern=pattern, context_compaction=compaction, max_agent_iterations=60
    )
    with contextlib.suppress(GraphExecutionError):
        # What the other stages make of the same reply is not what this is about.
        await agent.ainvoke("go")
    loop = [request for request in model.requests if any(spec.name == "look" for spec in request.tools)]
    shown = max(len(request.messages) for request in loop[: ROUNDS + 1])
    assert len(loop) > ROUNDS
    assert shown < 18 if compaction is None else shown >= 2 * ROUNDS
