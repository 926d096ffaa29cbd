"""A long tool loop is compacted in the patterns that are one loop."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.testing import ScriptedModel, calls, says

ROUNDS = 10


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
