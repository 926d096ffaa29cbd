"""Bring what children did on copies of a state back into the state, in the order in which they were declared."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._children import take_figures
from graphwright.engine.state import GraphState, NodeResult
from graphwright.messages import HumanMessage, problem_in, repair_pairs

__all__ = ["Child", "as_text", "concatenated", "failure_of", "merge_states", "outputs_of"]

logger = logging.getLogger(__name__)

_NOTES = ("plan", "completed", "observations", "reflections")
_ABSENT = object()


@dataclass(slots=True)
class Child:
    """A child that has run: its name, the copy it worked on, and its result."""

    name: str
    state: GraphState
    result: NodeResult

    @property
    def text(self) -> str:
        """What the child said, or that it failed."""
        if self.result.error is not None:
            return f"{self.name} failed: {self.result.error}"
        return self.result.raw_output or as_text(self.result.output)


def merge_states(state: GraphState, children: Sequence[Child], *, parent: str) -> tuple[list[Any], bool]:
    """Bring context, notes and figures of the children into `state`.

    Returns the messages to add, without the closing replies, and whether a child wrote such a reply. A key that two
    children wrote has the value of the later one. A child that failed adds no message and no context.
    """
    before = dict(state.context)
    known = {id(message) for message in state.messages}
    writers: dict[str, str] = {}
    added: list[Any] = []
    replied = False
    for child in children:
        take_figures(state, child.state)
        if child.result.error is not None:
            continue
        _merge_context(state, child, before, writers, parent)
        _merge_notes(state, child.state)
        own = [message for message in child.state.messages if id(message) not in known]
        if own and own[-1].type == "ai" and not own[-1].tool_calls:
            replied = True
            own.pop()
        if problem_in([HumanMessage(content="?"), *own]) is not None:
            own = repair_pairs(own)
        added += own
    return added, replied


def outputs_of(children: Sequence[Child]) -> dict[str, Any]:
    """Return the output of each child by name; that of one that failed is `{"error": ...}`."""
    return {
        child.name: child.result.output if child.result.error is None else {"error": child.result.error}
        for child in children
    }


def concatenated(children: Sequence[Child]) -> str:
    """Return what the children said, one paragraph each."""
    return "\n\n".join(text for child in children if (text := child.text))


def failure_of(children: Sequence[Child]) -> tuple[str | None, BaseException | None]:
    """Return what to report when children failed, and the first exception."""
    failed = [child.result for child in children if child.result.error is not None]
    if not failed:
        return None, None
    named = "; ".join(f"{child.name!r}: {child.result.error}" for child in children if child.result.error is not None)
    cause = next((result.cause for result in failed if result.cause is not None), None)
    return f"{len(failed)} of {len(children)} children failed: {named}", cause


def as_text(value: Any) -> str:
    """Return a value as a model or a reader is shown it."""
    if value is None or isinstance(value, str):
        return value or ""
    return dumps(value) if isinstance(value, (Mapping, list, tuple)) else str(value)


def _merge_context(
    state: GraphState, child: Child, before: Mapping[str, Any], writers: dict[str, str], parent: str
) -> None:
    for key, value in child.state.context.items():
        if _same(value, before.get(key, _ABSENT)):
            continue
        if key in writers:
            logger.warning(
                "node %r: %r and %r both wrote the context key %r; the value of %r is kept",
                parent,
                writers[key],
                child.name,
                key,
                child.name,
            )
        writers[key] = child.name
        state.context[key] = value


def _same(value: Any, earlier: Any) -> bool:
    if value is earlier:
        return True
    try:
        return bool(value == earlier)
    except Exception:  # values of the user's; what cannot be compared counts as written
        return False


def _merge_notes(state: GraphState, child: GraphState) -> None:
    for name in _NOTES:
        theirs = child.__dict__.get(name)
        if not theirs:
            continue
        ours: list[Any] = getattr(state, name)
        known = {id(note) for note in ours}
        ours.extend(note for note in theirs if id(note) not in known and not (isinstance(note, str) and note in ours))
    del state.observations[:-50]
    del state.reflections[:-5]
