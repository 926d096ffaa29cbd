"""What judges cost, and what is heard of a call whose text is held."""

from __future__ import annotations

from pathlib import Path

from graphwright import OrchestratorBot, SafetyInputGuard
from graphwright.exceptions import ModelError
from graphwright.orchestrator import GuardDecision
from graphwright.testing import ScriptedModel, raises, says

SAFE = '{"severity": "none", "category": "", "reason": ""}'
BAD = '{"severity": "high", "category": "harm", "reason": "no"}'


async def test_tokens_of_the_judges_of_the_input_count_in_the_run(tmp_path: Path) -> None:
    judge = ScriptedModel([says(SAFE)])
    bot = OrchestratorBot(
        ScriptedModel([says("fine")]), None, "x", memory_path=str(tmp_path), input_guards=[SafetyInputGuard(judge)]
    )

    response = await bot.arun("hello")

    assert (response.content, response.token_usage["total_tokens"]) == ("fine", 30)


async def test_tokens_of_the_judge_that_rejected_a_request_are_told(tmp_path: Path) -> None:
    judge, model = ScriptedModel([says(BAD)]), ScriptedModel([])
    bot = OrchestratorBot(model, None, "x", memory_path=str(tmp_path), input_guards=[SafetyInputGuard(judge)])

    response = await bot.arun("hello")

    assert (response.status, response.token_usage["total_tokens"], model.requests) == ("rejected", 15, [])


async def test_a_retry_is_told_at_once_while_the_text_is_held(tmp_path: Path) -> None:
    model = ScriptedModel(
        [raises(ModelError("busy", retryable=True, status=429, retry_after=0.01)), says("the answer")]
    )
    bot = OrchestratorBot(
        model, None, "x", memory_path=str(tmp_path), output_guards=[lambda text: GuardDecision.allow()]
    )

    seen = [item async for item in bot.astream_events("hello", mode="auto")]

    texts = [payload[0].content for mode, payload in seen if mode == "messages"]
    retries = [
        event["type"]
        for mode, payload in seen
        if mode == "updates"
        for event in payload.get("agent", {}).get("status_events", ())
    ]
    assert (texts, retries) == (["the answer"], ["retrying"])
