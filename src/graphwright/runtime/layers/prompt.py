"""Keep the system prompt of a run with its log, so that the run has the same one when it goes on later."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from graphwright.messages import as_messages

if TYPE_CHECKING:
    from graphwright.engine.journal import Journal
    from graphwright.messages import BaseMessage
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler

__all__ = ["has_prompt", "messages_of", "prompt_layer"]

_KEY = "system_prompt"


def prompt_layer(request: RunRequest, call_next: Handler) -> Awaitable[Any]:
    """Run the rest with the system prompt that the log has, or write down the one that the outer layers made."""
    journal, frame = _place(request)
    if journal is not None:
        kept = journal.find("once", frame, _KEY)
        if kept is not None:
            request.system_prompt = kept["text"]
            request.notes = dict(kept.get("notes", {}))
        elif request.system_prompt is not None and not journal.found_in("input", frame):
            # Queued ahead of the input: a run whose input is in the log has its prompt there too.
            kept = {"text": request.system_prompt, **({"notes": request.notes} if request.notes else {})}
            journal.put("once", frame, _KEY, kept)
    return call_next(request)


def has_prompt(request: RunRequest) -> bool:
    """Return whether the run goes on with a prompt that was made for it before, so that none is to be made."""
    journal, frame = _place(request)
    return journal is not None and journal.find("once", frame, _KEY) is not None


def messages_of(request: RunRequest) -> list[BaseMessage]:
    """Return the messages that a request came with, without what was said before on its thread."""
    given = request.input
    if isinstance(given, dict) and "messages" in given:
        given = given["messages"]
    return as_messages(given)


def _place(request: RunRequest) -> tuple[Journal | None, str]:
    """Return the log of the run, and where in it the run begins."""
    if request.inside is not None:
        return request.inside.journal, request.inside.frame
    return request.journal, ""
