"""The policy, and the requests that it makes."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from graphwright.approval import ApprovalDecision, ApprovalHandler, ApprovalPolicy, ApprovalRequest, as_approvals
from graphwright.approval._denials import Denials
from graphwright.exceptions import ConfigurationError


def test_the_defaults_are_those_of_the_reference() -> None:
    policy = ApprovalPolicy(tools=["delete_*"])

    assert (policy.timeout, policy.on_timeout, policy.include_arguments, policy.redact_sensitive) == (
        300.0,
        "deny",
        True,
        True,
    )
    assert (policy.max_pending, policy.max_retries_after_deny, policy.deny_window, policy.deny_scope) == (
        10,
        3,
        600.0,
        "session",
    )
    assert (policy.sequential, policy.context_messages, policy.metadata, policy.on_decision) == (False, 3, None, None)


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        (["delete_file"], True),
        (["deleted"], False),
        (["Delete_file"], False),
        (["tidy", "delete_all"], True),
        (["send"], True),
        (["resend"], False),
        (["files.rm"], True),
    ],
)
def test_patterns_match_any_name_of_a_tool(names: list[str], needed: bool) -> None:
    assert ApprovalPolicy(tools=["delete_*", "send", "files.?m"]).requires_approval(*names) is needed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": "delete"}, "tools is 'delete'"),
        ({"tools": ["a", ""]}, "tools has '' in it"),
        ({"tools": [3]}, "tools has 3 in it"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": True}, "timeout is True"),
        ({"on_timeout": "ask"}, "on_timeout is 'ask'"),
        ({"deny_scope": "tenant"}, "deny_scope is 'tenant'"),
        ({"deny_window": None}, "deny_window is None"),
        ({"max_pending": 0}, "max_pending is 0"),
        ({"max_retries_after_deny": -1}, "max_retries_after_deny is -1"),
        ({"context_messages": 1.5}, "context_messages is 1.5"),
        ({"metadata": "x"}, "metadata is 'x'"),
        ({"on_decision": 3}, "on_decision is 3"),
        ({"handler": 3}, "the approval handler is 3"),
        ({"handler": ApprovalHandler}, "the approval handler is <class"),
    ],
)
def test_a_value_that_does_not_fit_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ApprovalPolicy(**{"tools": ["x"], **options})


def test_a_list_and_a_dict_become_a_policy_and_a_function_a_handler() -> None:
    def yes(request: ApprovalRequest) -> bool:
        return True

    listed, made, alone = as_approvals({"b", "a"}), as_approvals({"tools": ["x"], "handler": yes}), as_approvals(yes)

    assert listed is not None
    assert (listed.policy, listed.handler) == (ApprovalPolicy(tools=["a", "b"]), None)
    assert made is not None
    assert made.policy is not None
    assert made.handler is made.policy.approval_handler
    assert alone is not None
    assert alone.policy is None
    assert isinstance(alone.handler, ApprovalHandler)
    assert as_approvals(None) is None


def test_a_request_says_what_may_leave_the_process_and_signs_it() -> None:
    request = ApprovalRequest(tool_name="rm", arguments={"b": 1, "a": "é"}, raw_arguments={"secret": "s"})

    assert len(request.request_id) == 32
    int(request.request_id, 16)
    assert set(request.to_dict()) == {
        "request_id",
        "tool_name",
        "arguments",
        "agent_id",
        "caller_user_id",
        "context_summary",
        "timestamp",
        "timeout",
        "metadata",
        "tool_annotations",
    }
    assert json.loads(request.to_bytes()) == request.to_dict()
    assert request.compute_hmac("key") == hmac.new(b"key", request.to_bytes(), hashlib.sha256).hexdigest()
    assert request.compute_hmac("key") == request.compute_hmac(b"key") != request.compute_hmac("other")


def test_the_order_of_arguments_does_not_change_the_signature() -> None:
    common: dict[str, Any] = {"tool_name": "rm", "request_id": "0" * 32, "timestamp": 1.0}

    first = ApprovalRequest(arguments={"a": {"x": 1, "y": 2}, "b": 2}, **common)
    second = ApprovalRequest(arguments={"b": 2, "a": {"y": 2, "x": 1}}, **common)

    assert first.compute_hmac("k") == second.compute_hmac("k")


def test_denials_count_within_their_window_scope_and_tool() -> None:
    now = [0.0]
    denials = Denials(2, 10.0, clock=lambda: now[0])
    denials.add("s", "rm")
    now[0] = 8.0
    denials.add("s", "rm")

    assert "was denied 2 times in the last 10 seconds" in denials.refusal("s", "rm")
    assert denials.refusal("s", "mv") == denials.refusal("t", "rm") == ""

    now[0] = 11.0
    assert denials.refusal("s", "rm") == ""
    denials.add("s", "rm")
    assert denials.refusal("s", "rm") != ""


def test_a_limit_of_none_still_takes_one_denial() -> None:
    denials = Denials(0, 10.0)
    assert denials.refusal("s", "rm") == ""

    denials.add("s", "rm")

    assert denials.refusal("s", "rm") != ""


def test_the_decision_is_that_of_the_interrupts() -> None:
    from graphwright.interrupts import ApprovalDecision as Same

    assert ApprovalDecision is Same
