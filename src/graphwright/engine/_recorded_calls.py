"""Model calls of a run that has a log: a reply that is in it is not asked for again."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from graphwright.messages import text_of
from graphwright.models import calls_of
from graphwright.models.base import ModelReply
from graphwright.usage import Usage

if TYPE_CHECKING:
    from graphwright.engine.journal import Frame

__all__ = ["recorded_reply"]


async def recorded_reply(frame: Frame, asking: Awaitable[ModelReply]) -> ModelReply:
    """Return the reply that the log has for this place in the visit, else the one that `asking` gives."""
    number = str(frame.next("reply"))
    found = frame.journal.find("reply", frame.path, number)
    if found is None:
        try:
            reply = await asking
        except BaseException:
            # What asks once more instead is the same place in the code for whoever reads the log.
            frame.give_back("reply", int(number))
            raise
        frame.journal.put("reply", frame.path, number, _row_of(reply))
    else:
        close = getattr(asking, "close", None)
        if close is not None:
            close()
        reply = _reply_of(found)
    frame.made[id(reply.message)] = ["reply", frame.path, number]
    return reply


def _row_of(reply: ModelReply) -> dict[str, Any]:
    row: dict[str, Any] = {"message": reply.message}
    if reply.refusal is not None:
        row["refusal"] = reply.refusal
    if reply.usage is not None and reply.usage != Usage.from_metadata(reply.message.usage_metadata):
        row["usage"] = reply.usage
    return row


def _reply_of(row: dict[str, Any]) -> ModelReply:
    message = row["message"]
    usage = row.get("usage") or Usage.from_metadata(message.usage_metadata)
    return ModelReply(message, calls_of(message), text_of(message), usage, row.get("refusal"))
