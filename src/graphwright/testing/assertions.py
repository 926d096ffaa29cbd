"""Checks that say what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphwright.messages import problem_in, text_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["assert_valid_conversation"]


def assert_valid_conversation(messages: Sequence[BaseMessage]) -> None:
    """Fail unless a strict provider accepts the conversation.

    Each tool call has exactly one result right after its message, there is no other result and no empty assistant
    turn, and a user turn is present.
    """
    problem = problem_in(messages)
    if problem is None:
        return
    lines = [f"{index:>3} {_line(message)}" for index, message in enumerate(messages)]
    raise AssertionError("\n".join([f"a strict provider rejects this conversation: {problem}", *lines]))


def _line(message: BaseMessage) -> str:
    text = text_of(message).replace("\n", " ")
    parts = [message.type, repr(text if len(text) <= 60 else text[:57] + "...")]
    calls = getattr(message, "tool_calls", [])
    if calls:
        parts.append("calls " + ", ".join(f"{call['name']}={call['id']!r}" for call in calls))
    if message.type == "tool":
        parts.append(f"answers {getattr(message, 'tool_call_id', None)!r}")
    return " ".join(parts)
