"""What stays in memory: nothing of a run, of a stream, or of an agent that is gone."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.testing import ScriptedModel, calls, says


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def answering() -> ScriptedModel:
    model = ScriptedModel.answering(
        lambda messages: says("done") if messages[-1].type == "tool" else calls("look", at="x"), strict=False
    )
    return model


@pytest.mark.slow
async def test_two_thousand_runs_of_one_agent_leave_nothing_behind() -> None:
    model = answering()
    agent = await build_agent(model=model, extra_tools=[look])

    async def runs(count: int) -> None:
        for number in range(count):
            await agent.chat("go", session_id=f"session {number}")
            model.requests.clear()

    await runs(200)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await runs(2000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000


async def test_an_agent_is_freed_although_its_results_are_kept() -> None:
    kept: list[Any] = []
    gone = []
    for _ in range(20):
        agent = await build_agent(model=answering(), extra_tools=[look])
        kept.append(await agent.ainvoke("go"))
        run = agent.start("go")
        kept.append(await run.result())
        gone += [weakref.ref(agent), weakref.ref(agent._engine)]
        await agent.shutdown()
    del agent, run
    await asyncio.sleep(0)
    gc.collect()
    assert [ref() for ref in gone if ref() is not None] == []
    assert len(kept) == 40
