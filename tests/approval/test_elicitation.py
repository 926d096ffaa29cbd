"""Servers that ask for a yes or a no, answered by an approval handler."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from graphwright.approval import ApprovalDecision, ApprovalRequest, approval_elicitation_callback, is_yes_no_form
from graphwright.caller import CallerContext, calling_as
from graphwright.exceptions import ConfigurationError, FeatureOffError

BOOLEAN = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
WITH_REASON = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


@pytest.mark.parametrize(
    ("schema", "is_one"),
    [
        ({"type": "object", "properties": {}}, True),
        ({}, True),
        (BOOLEAN, True),
        (WITH_REASON, True),
        ({"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}, False),
        ({"properties": {"name": {"type": "string"}}, "required": ["name"]}, False),
        ({"properties": {"ok": {"type": "boolean"}, "name": {"type": "string"}}, "required": ["name"]}, False),
        ({"properties": {"ok": {"type": "boolean"}, "age": {"type": "integer"}}}, False),
        ({"url": "https://example.com"}, False),
    ],
)
def test_what_counts_as_a_question_for_yes_or_no(schema: dict[str, Any], is_one: bool) -> None:
    assert is_yes_no_form(schema) is is_one


async def test_a_yes_fills_the_form_and_the_request_says_what_the_server_is_about() -> None:
    asked: list[ApprovalRequest] = []

    async def yes(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(True, reason="fine")

    ask = approval_elicitation_callback(
        yes, in_flight=lambda: ("drop", {"table": "t", "password": "hunter22"}), timeout=5
    )

    with calling_as(CallerContext(user_id="ann")):
        answer = await ask("db", "Drop it?", WITH_REASON)

    assert answer == {"action": "accept", "content": {"approved": True, "reason": "fine"}}
    [request] = asked
    assert (request.tool_name, request.caller_user_id, request.context_summary) == ("drop", "ann", "Drop it?")
    assert request.arguments == {"table": "t", "password": "[redacted]"}
    assert request.metadata == {"server": "db", "source": "elicitation"}
    assert await ask("db", "ok?", {}) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    "answer",
    [False, "yes", None, RuntimeError("down"), ApprovalDecision(True, modified_arguments={"table": "other"})],
    ids=repr,
)
async def test_anything_but_a_plain_yes_declines(answer: Any) -> None:
    async def says(request: ApprovalRequest) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await approval_elicitation_callback(says)("db", "Drop it?", BOOLEAN) == {"action": "decline"}


async def test_no_answer_in_time_cancels_and_a_real_form_reaches_no_handler() -> None:
    calls = 0

    async def waits(request: ApprovalRequest) -> bool:
        nonlocal calls
        calls += 1
        await asyncio.Event().wait()
        return True

    ask = approval_elicitation_callback(waits, timeout=0.01)

    assert await ask("db", "Drop it?", BOOLEAN) == {"action": "cancel"}
    assert await ask("db", "Your name?", {"properties": {"n": {"type": "string"}}, "required": ["n"]}) is None
    assert await ask("db", "Visit", {"url": "https://example.com"}) is None
    assert calls == 1


async def test_the_sdk_gets_a_result_of_its_own() -> None:
    pytest.importorskip("mcp_types", reason="mcp is not installed; uv pip install 'mcp>=2'")

    async def yes(request: ApprovalRequest) -> bool:
        return request.metadata["server"] == "db"

    ask = approval_elicitation_callback(yes, server_name="db")

    accepted = await ask(None, SimpleNamespace(message="ok?", requested_schema=BOOLEAN))
    declined = await ask(None, SimpleNamespace(message="visit", url="https://example.com"))

    assert (accepted.action, accepted.content) == ("accept", {"approved": True})
    assert declined.action == "decline"


def test_what_cannot_be_a_handler_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the approval handler is 3"):
        approval_elicitation_callback(3)
    with pytest.raises(FeatureOffError, match="event_notifier"):
        approval_elicitation_callback(print, event_notifier=object())
