"""`cacheable`: a visit that reads the same as an earlier one of the run gives the same, without running."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright.engine.node_result import NodeResult
from graphwright.engine.state import GraphState, NodeFlag

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]

_MOST_KEPT = 64


@dataclass(slots=True)
class _Kept:
    result: NodeResult
    messages: list[Any]
    context: dict[str, Any]
    read: list[Any]
    """The messages that the key names by identity; kept, so that no other can take their place."""


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Return what an equal visit gave, or run and keep it. Tool turns, failures and stateful nodes are never kept."""
    if NodeFlag.STATEFUL in node.flags:
        return await call_next()
    state = run.state
    kept: dict[str, _Kept] = run.context.scratch.setdefault((node, "cache"), {})
    read = _messages_read(node, state)
    values = _values_read(node, state)
    if values is None:
        return await call_next()
    key = f"{[id(message) for message in read]} {values}"
    found = kept.get(key)
    if found is not None:
        state.messages.extend(found.messages)
        state.context.update(found.context)
        result = copy(found.result)
        result.total_tokens = result.prompt_tokens = result.completion_tokens = 0
        result.llm_duration_ms = 0.0
        return result
    before, context = len(state.messages), dict(state.context)
    result = await call_next()
    if result.error is None and not result.tool_calls and result.transition_reason == "":
        written = {name: value for name, value in state.context.items() if context.get(name, kept) is not value}
        if len(kept) >= _MOST_KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = _Kept(copy(result), state.messages[before:], written, read)
    return result


def _messages_read(node: Any, state: GraphState) -> list[Any]:
    if NodeFlag.NO_HISTORY in node.flags:
        return [state.turn_question]
    return list(state.messages)


def _values_read(node: Any, state: GraphState) -> str | None:
    """Return everything else that the node can read, as text that is equal only where it is equal.

    `None` where that cannot be told: an object that is no plain data can change and look the same.
    """
    values = dict(state.context)
    if NodeFlag.ISOLATED_CONTEXT in node.flags:
        values = {name: values[name] for name in getattr(node, "input_keys", ()) if name in values}
    try:
        return json.dumps([values, state.plan, state.completed, state.reflections, state.observations], sort_keys=True)
    except (TypeError, ValueError):
        return None
