"""What a test of an agent needs: a scripted model, checks of conversations, and a switch that forbids real requests."""

from __future__ import annotations

from graphwright.testing.assertions import assert_valid_conversation
from graphwright.testing.contracts import (
    conversation_store_contract,
    large_conversation_contract,
    model_contract,
    run_log_contract,
    tool_contract,
)
from graphwright.testing.echo import EchoToolsModel
from graphwright.testing.examples import NoExampleError, example_of
from graphwright.testing.guard import (
    RealRequestForbidden,
    allow_real_requests,
    forbid_real_requests,
    no_real_requests,
    real_requests_are_forbidden,
)
from graphwright.testing.scripted import ScriptedModel, ScriptError
from graphwright.testing.steps import (
    ScriptedCall,
    Step,
    call,
    calls,
    calls_many,
    delayed,
    empty,
    malformed,
    raises,
    raises_midstream,
    refuses,
    says,
    truncated,
    waits_for,
)

__all__ = [
    "EchoToolsModel",
    "NoExampleError",
    "RealRequestForbidden",
    "ScriptError",
    "ScriptedCall",
    "ScriptedModel",
    "Step",
    "allow_real_requests",
    "assert_valid_conversation",
    "call",
    "calls",
    "calls_many",
    "conversation_store_contract",
    "delayed",
    "empty",
    "example_of",
    "forbid_real_requests",
    "large_conversation_contract",
    "malformed",
    "model_contract",
    "no_real_requests",
    "raises",
    "raises_midstream",
    "real_requests_are_forbidden",
    "refuses",
    "run_log_contract",
    "says",
    "tool_contract",
    "truncated",
    "waits_for",
]
