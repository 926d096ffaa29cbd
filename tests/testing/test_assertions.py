"""The check of a conversation says what is wrong and shows the conversation."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graphwright.testing import assert_valid_conversation

CALL = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1", "type": "tool_call"}])


def test_a_conversation_that_a_provider_accepts_passes() -> None:
    assert_valid_conversation([HumanMessage("hi"), CALL, ToolMessage("r", tool_call_id="c1"), AIMessage("done")])


def test_one_that_it_rejects_fails_with_the_reason_and_a_line_for_each_message() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_valid_conversation([HumanMessage("x" * 80), CALL, ToolMessage("r", tool_call_id="c2")])

    lines = str(failure.value).splitlines()
    assert "message 2 is a result for 'c2'" in lines[0]
    assert lines[1:] == [f"  0 human '{'x' * 57}...'", "  1 ai '' calls look='c1'", "  2 tool 'r' answers 'c2'"]
