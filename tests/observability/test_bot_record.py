from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphwright import OrchestratorBot
from graphwright.events import AgentEvent, CallbackSink, EventNotifier
from graphwright.exceptions import FeatureOffError
from graphwright.testing import ScriptedModel, calls, says


def price_of(fruit: str) -> float:
    """Return the price of one fruit."""
    return 1.9


@pytest.mark.parametrize("how", ["arun", "astream_events"])
async def test_a_bot_is_recorded_and_told_of_like_an_agent(how: str, tmp_path: Path) -> None:
    told: list[AgentEvent] = []
    model = ScriptedModel([calls("price_of", fruit="mango"), says("1.90")])
    bot = OrchestratorBot(
        model,
        tools=[price_of],
        observe={"transporters": ["json"], "output_dir": tmp_path},
        events=EventNotifier([CallbackSink(told.append)]),
    )

    if how == "arun":
        await bot.arun("What does a mango cost?")
    else:
        async for _ in bot.astream_events("What does a mango cost?", mode="auto"):
            pass
    await bot.aclose()

    assert bot.collector is not None
    kinds = [entry.event_type for entry in bot.collector.get_timeline()]
    assert kinds == ["run.start", "model.call", "tool.call", "model.call", "run.end"]
    assert bot.get_stats()["tools"]["price_of"]["calls"] == 1
    assert [event.event_type for event in told] == ["invocation.start", "invocation.complete"]
    report = tmp_path / "report.html"
    assert bot.generate_report(report) == str(report)
    assert report.read_text().startswith("<!doctype html>")
    assert (tmp_path / f"graphwright-{bot.collector.record_id}.json").exists()


async def test_a_bot_that_is_not_observed_has_no_figures_and_no_report(tmp_path: Any) -> None:
    bot = OrchestratorBot(ScriptedModel([says("hi")]))
    await bot.arun("hi")
    assert (bot.collector, bot.get_stats()) == (None, {})
    with pytest.raises(FeatureOffError, match="observe=True"):
        bot.generate_report(tmp_path / "report.html")
    await bot.aclose()
