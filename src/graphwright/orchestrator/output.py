"""Hold what the model wrote until the output guards have seen it: before it is shown, kept or said again."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from graphwright.engine.state import GraphState
from graphwright.models.base import ModelReply
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.guards import evaluate_io_guards
from graphwright.usage import Usage

__all__ = ["WITHHELD", "held_reply", "verdict_in"]

WITHHELD = "This answer was withheld by {guard}: {reason}"

_KEY = "graphwright_output_guard"


async def held_reply(setup: BotSetup, asking: Awaitable[ModelReply], state: GraphState) -> ModelReply:
    """Return the reply with the guards' verdict in its metadata; a text that is not to be seen is taken out.

    With `annotate` only a guard that could not judge takes the text out.
    """
    reply = await asking
    if not reply.text.strip():
        return reply
    used = Usage()
    verdict = await evaluate_io_guards(setup.output_guards, reply.text, stage="output", usage=used)
    if used != Usage():
        if reply.usage is not None:
            used.add(reply.usage)
        reply.usage = used
    if verdict.allowed and not verdict.events:
        return reply
    action = setup.output_guard_action
    hides = not verdict.allowed and (action != "annotate" or verdict.failed)
    message = reply.message
    note = {
        "allowed": verdict.allowed,
        "hidden": hides,
        "guard": verdict.guard,
        "reason": verdict.reason,
        "events": [dict(event) for event in verdict.events],
    }
    if not hides:
        metadata = {**message.response_metadata, _KEY: note}
        reply.message = message.model_copy(update={"response_metadata": metadata})
        return reply
    # What the provider says of single words, such as their probabilities, holds the text as well.
    metadata = {key: value for key, value in message.response_metadata.items() if _tells_no_text(key, value)} | {
        _KEY: note
    }
    text = WITHHELD.format(guard=verdict.guard, reason=verdict.reason)
    reply.message = message.model_copy(update={"content": text, "response_metadata": metadata, "additional_kwargs": {}})
    reply.text = text
    if reply.refusal is not None:
        reply.refusal = text
    return reply


def _tells_no_text(key: str, value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str)) or key.startswith("graphwright")


def verdict_in(message: Any) -> dict[str, Any] | None:
    """Return what the output guards said of a message; `None` when they had nothing against it."""
    note = message.response_metadata.get(_KEY)
    return note if isinstance(note, dict) else None
