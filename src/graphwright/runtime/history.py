"""What the rows of a run, or of the runs of a thread, amount to: a conversation, and what is still asked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphwright.interrupts import Interrupt
from graphwright.messages import AIMessage, ToolMessage, repair_pairs

if TYPE_CHECKING:
    from graphwright.runlog.base import Row, RunInfo, RunStatus

__all__ = ["conversation_of", "ended_as", "has_ended", "is_expired", "pending_of", "settled", "thread_conversation"]

CUT_OFF = "The run was cut off before this call had a result; whether it took effect is not known."


def has_ended(rows: Iterable[Row]) -> bool:
    """Return whether there is nothing to go on with; where a run is paused or was cut off there is.

    A run that was cut off before its input was written has come to nothing, so nobody has to wait for it.
    """
    kinds = {row.kind for row in rows}
    return "end" in kinds or "input" not in kinds


def ended_as(rows: Iterable[Row]) -> RunStatus | None:
    """Return how a run ended; `None` where it wrote no end."""
    return next((row.data["status"] for row in rows if row.kind == "end"), None)


def pending_of(rows: Iterable[Row]) -> list[Interrupt]:
    """Return what a run still waits for, in the order in which it was asked."""
    rows = list(rows)
    if has_ended(rows):
        return []
    answered = {row.key for row in rows if row.kind == "answer"}
    done = {(row.frame, row.key) for row in rows if row.kind == "outcome"}
    finished = {row.frame for row in rows if row.kind == "delta"}
    pending = []
    for row in rows:
        if row.kind != "interrupt" or row.data["item"].id in answered or (row.frame, row.key) in done:
            continue
        if not any(row.frame == frame or row.frame.startswith(f"{frame}/") for frame in finished):
            pending.append(row.data["item"])
    return pending


def is_expired(item: Interrupt) -> bool:
    """Return whether no answer to it is taken any more."""
    return item.expires_at is not None and time.time() > item.expires_at


def conversation_of(rows: Sequence[Row], before: Sequence[Any] = ()) -> list[Any]:
    """Return the conversation as a run left it, from what was there before it."""
    held = {(row.kind, row.frame, row.key): row.data for row in rows if row.kind in ("reply", "outcome")}
    messages = list(before)
    for row in rows:
        if row.kind == "input" or row.kind == "end" or (row.kind == "delta" and "/" not in row.frame):
            added = [held[tuple(entry)]["message"] if type(entry) is list else entry for entry in row.data.get("m", ())]
            messages = added if row.data.get("all") else [*messages, *added]
    return messages


def thread_conversation(runs: Iterable[tuple[RunInfo, Sequence[Row]]]) -> list[Any]:
    """Return the conversation of a thread, fit for a provider."""
    messages: list[Any] = []
    for info, rows in runs:
        if info.status != "rejected":
            messages = conversation_of(rows, messages)
    return repair_pairs(messages)


def settled(messages: Sequence[Any], text: str = CUT_OFF) -> list[Any]:
    """Return results for the calls at the end of a conversation that have none."""
    answered = set()
    for message in reversed(messages):
        if message.type == "tool":
            answered.add(message.tool_call_id)
            continue
        if isinstance(message, AIMessage):
            return [
                ToolMessage(content=text, tool_call_id=call["id"] or "", name=call["name"], status="error")
                for call in message.tool_calls
                if call["id"] not in answered
            ]
        break
    return []
