from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import APPROVAL, QUESTION, Interrupt
from graphwright.orchestrator.response import BotResponse
from graphwright.usage import Usage

NO_TOKENS = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "cached_tokens": 0,
    "reasoning_tokens": 0,
}


def test_an_empty_response_has_a_value_for_every_key() -> None:
    response = BotResponse(success=True)

    assert dict(response) == {
        "content": "",
        "thinking": None,
        "logs": [],
        "tools_executed": [],
        "token_usage": NO_TOKENS,
        "success": True,
        "status": "completed",
        "plan": [],
        "session_id": None,
        "thread_id": None,
        "goal": None,
        "questions": [],
        "needs_input": False,
        "run_id": None,
        "node_trace": [],
        "guard_events": [],
        "pending_approval": None,
        "pending": [],
    }


def test_success_has_to_be_told() -> None:
    with pytest.raises(TypeError, match="success"):
        BotResponse("done")  # type: ignore[call-arg]


def test_every_key_is_a_property_that_cannot_be_assigned() -> None:
    response = BotResponse("hi", success=True, session_id="t1", run_id="r", goal="g", thinking="hm")

    for key, value in response.items():
        assert getattr(response, key) == value
        with pytest.raises(AttributeError):
            setattr(response, key, None)
    with pytest.raises(AttributeError):
        response.something_else = 1  # type: ignore[attr-defined]
    assert response.thread_id == response.session_id == "t1"
    assert response.get("thinking") == "hm"


def test_what_waits_is_read_from_the_pending_items() -> None:
    asked = {"id": "color", "text": "Which?", "type": "text", "options": None, "required": True}
    pending = [
        Interrupt("q1", QUESTION, {"type": "question_request", "questions": [asked], "reason": None}, asked_at=1.0),
        Interrupt("a1", APPROVAL, {"type": "permission_request", "tool": "rm", "params": {"path": "x"}}, asked_at=2.0),
    ]

    response = BotResponse(success=False, pending=pending)

    assert response.status == "paused"
    assert response.questions == [asked]
    assert response.needs_input is True
    assert response.pending_approval == {"type": "permission_request", "tool": "rm", "params": {"path": "x"}}
    assert [(item["id"], item["kind"], item["asked_at"]) for item in response.pending] == [
        ("q1", "question", 1.0),
        ("a1", "approval", 2.0),
    ]


def test_an_approval_alone_needs_no_input() -> None:
    response = BotResponse(success=False, pending=[Interrupt("a1", APPROVAL, {"tool": "rm"})])

    assert (response.status, response.needs_input, response.questions) == ("paused", False, [])


@pytest.mark.parametrize("status", ["paused", "aborted", "limit", "rejected", "failed"])
def test_only_a_completed_run_can_be_a_success(status: Any) -> None:
    assert BotResponse(success=False, status=status).status == status
    with pytest.raises(ConfigurationError, match=f"a run that is '{status}' did not answer its goal"):
        BotResponse(success=True, status=status)


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'done' is no status of a run; there are completed, paused"):
        BotResponse(success=False, status="done")  # type: ignore[arg-type]


def test_usage_that_a_provider_did_not_tell_counts_as_none() -> None:
    usage = Usage(input_tokens=3, output_tokens=None, cached_tokens=2)

    assert BotResponse(success=True, token_usage=usage).token_usage == {
        **NO_TOKENS,
        "prompt_tokens": 3,
        "cached_tokens": 2,
    }
    assert BotResponse(success=True, token_usage={"total_tokens": 5}).token_usage["total_tokens"] == 5


def test_a_response_shares_nothing_with_what_it_was_made_of() -> None:
    record: dict[str, Any] = {"tool_name": "a", "args": {"x": [1]}, "status": "success", "output": "1"}

    response = BotResponse(success=True, tools_executed=[record])
    record["args"]["x"].append(2)

    assert response.tools_executed[0]["args"] == {"x": [1]}


def test_values_that_json_does_not_know_become_text() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    nested: list[Any] = []
    nested.append(nested)
    response = BotResponse(
        success=True, tools_executed=[{"tool_name": "a", "args": {1: (2, Broken()), "set": {3}, "self": nested}}]
    )

    read = json.loads(json.dumps(response))

    assert read["tools_executed"][0]["args"]["1"] == [2, "[a Broken]"]
    assert read["tools_executed"][0]["args"]["set"] == [3]


@pytest.mark.parametrize("content", [None, "", "x" * 500, ["a", 1], {"a": 1}, "\ud800", 7, object()])
def test_a_response_can_be_shown_whatever_its_content_is(content: Any) -> None:
    text = repr(BotResponse(content, success=False, thinking="t", tools_executed=[{"tool_name": "a"}]))

    assert text.startswith("BotResponse(status='failed', content=")
    assert text.endswith(", tools=1, thinking=yes)")
    assert len(text) < 250


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.text(), args=st.dictionaries(st.text(max_size=3), plain, max_size=3), thread=st.none() | st.text())
def test_a_response_comes_back_from_json_from_pickle_and_from_a_copy(
    content: str, args: dict[str, Any], thread: str | None
) -> None:
    response = BotResponse(content, success=True, session_id=thread, tools_executed=[{"tool_name": "t", "args": args}])

    for again in (
        BotResponse.from_dict(json.loads(json.dumps(response))),
        pickle.loads(pickle.dumps(response)),
        copy.deepcopy(response),
        copy.copy(response),
    ):
        assert type(again) is BotResponse
        assert again == response
        assert again.tools_executed == response.tools_executed
