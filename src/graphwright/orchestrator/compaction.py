"""Put a summary in the place of what was said long ago, so that a thread can go on for ever."""

from __future__ import annotations

from typing import Any

from graphwright.engine.base import NodeContext
from graphwright.engine.state import GraphState
from graphwright.messages import HumanMessage, SystemMessage, text_of
from graphwright.models import call_model
from graphwright.models.base import ModelRequest
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.prompts import COMPACT

__all__ = ["compacted", "estimated_tokens", "is_summary"]

_NAME = "conversation_summary"
_MESSAGE_CHARS = 2000
_IMAGE_TOKENS = 1000


def is_summary(message: Any) -> bool:
    """Return whether a message of the conversation is the summary of what was before it."""
    return bool(message.type == "system" and message.name == _NAME)


def estimated_tokens(messages: list[Any]) -> int:
    """Return about how many tokens messages have: a quarter of their characters, and a fixed number an image."""
    total = 0
    for message in messages:
        total += len(text_of(message)) // 4
        if isinstance(message.content, list):
            total += _IMAGE_TOKENS * sum(
                isinstance(block, dict) and str(block.get("type", "")).startswith("image") for block in message.content
            )
        for call in getattr(message, "tool_calls", None) or ():
            total += len(str(call["args"])) // 4
    return total


async def compacted(setup: BotSetup, state: GraphState, context: NodeContext) -> dict[str, Any]:
    """Compact the conversation where it is too long, and return what the streams show of it.

    The goal, the newest messages and whole tool rounds stay. When the summary cannot be had, everything stays.
    """
    messages = state.messages
    tokens = estimated_tokens(messages)
    if tokens < setup.compaction_threshold:
        return {}
    start = 1 if is_summary(messages[0]) else 0
    boundary = max(start, len(messages) - setup.compaction_keep)
    while boundary > start and messages[boundary].type == "tool":
        boundary -= 1
    old = [message for message in messages[start:boundary] if message is not state.turn_question]
    if not old:
        return {}
    earlier = str(messages[0].content) if start else ""
    summary = await _summary(setup, context, earlier, old)
    if not summary:
        return {}
    kept = messages[boundary:]
    goal = state.turn_question
    if goal is not None and not any(message is goal for message in kept):
        kept = [goal, *kept]
    state.messages = [SystemMessage(content=summary, name=_NAME), *kept]
    reason = f"history of about {tokens} tokens; {len(old)} messages summarized, {len(kept)} kept"
    event = {"type": "compacted", "reason": reason, "attempt": 0, "wait_s": 0.0}
    return {"history_summary": summary, "status_events": [event]}


async def _summary(setup: BotSetup, context: NodeContext, earlier: str, old: list[Any]) -> str:
    lines = [f"Summary of what was before: {earlier}"] if earlier else []
    lines += [_line(message) for message in old]
    request = ModelRequest(
        messages=[SystemMessage(content=COMPACT), HumanMessage(content="\n".join(lines))],
        config=context.caller_config,
    )
    try:
        reply = await context.once_asked(call_model(setup.strong, request))
    except Exception:  # the run goes on with everything that was said
        setup.logger.warning("the conversation could not be summarized; it goes on whole", exc_info=True)
        return ""
    if reply.usage is not None:
        context.usage.add(reply.usage)
    return reply.text.strip()


def _line(message: Any) -> str:
    text = text_of(message)
    for call in getattr(message, "tool_calls", None) or ():
        text += f"\n[calls {call['name']}({call['args']})]"
    if len(text) > _MESSAGE_CHARS:
        text = text[:_MESSAGE_CHARS] + "..."
    return f"{message.type}: {text}"
