"""A run that has used its budget asks for more."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright import GraphBudgetExceededError, build_agent
from graphwright.engine.hooks import BudgetHook
from graphwright.exceptions import InterruptError
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says


async def look(what: str) -> str:
    """Look something up."""
    return what


async def agent_with(log: MemoryRunLog | None, *, steps: int = 3, **limits: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel([*(calls("look", what=str(n)) for n in range(steps)), says("done")])
    hook = BudgetHook(on_exceeded="ask", **limits)
    return await build_agent(model=model, extra_tools=[look], hooks=[hook], runlog=log), model


async def test_a_run_over_its_budget_pauses_with_what_was_done_kept_and_goes_on_with_more() -> None:
    log = MemoryRunLog()
    agent, model = await agent_with(log, max_tokens=20)
    paused = await agent.ainvoke("go", session_id="s")
    asked = paused.pending[0]

    result = await agent.resume("s", {"tokens": 1000})

    assert (paused.status, asked.kind, asked.value["tokens"]) == ("paused", "budget", 30)
    assert (result.text, len(model.requests), result.usage.total_tokens) == ("done", 4, 60)


async def test_yes_grants_as_much_again_and_the_next_excess_is_asked_for_again() -> None:
    agent, model = await agent_with(MemoryRunLog(), max_tokens=20)
    first = await agent.ainvoke("go", session_id="s")

    second = await agent.resume("s", True)
    result = await agent.resume("s", True)

    assert [first.status, second.status, result.status] == ["paused", "paused", "completed"]
    assert second.pending[0].value["tokens"] == 45
    assert len(model.requests) == 4


async def test_no_ends_the_run_as_a_budget_does() -> None:
    agent, model = await agent_with(MemoryRunLog(), max_tokens=20)
    await agent.ainvoke("go", session_id="s")

    with pytest.raises(GraphBudgetExceededError, match="Token budget exceeded: 30/20"):
        await agent.resume("s", False)

    assert len(model.requests) == 2


async def test_without_a_log_nobody_can_be_asked_and_the_run_ends() -> None:
    agent, _ = await agent_with(None, max_tokens=20)

    with pytest.raises(GraphBudgetExceededError):
        await agent.ainvoke("go")


@pytest.mark.parametrize("answer", ["yes", 5, {"tokens": -1}, {"tokens": True}, {"euros": 5}, {}, None])
async def test_an_answer_that_grants_nothing_clear_is_refused_and_the_run_waits(answer: Any) -> None:
    agent, model = await agent_with(MemoryRunLog(), max_tokens=20)
    await agent.ainvoke("go", session_id="s")

    with pytest.raises(InterruptError, match="no answer to a budget"):
        await agent.resume("s", answer)

    assert len(model.requests) == 2
    assert (await agent.resume("s", True)).status == "paused"
