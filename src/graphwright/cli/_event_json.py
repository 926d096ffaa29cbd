"""The JSON form of what a run reports: one flat object an event."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from graphwright.messages import text_of
from graphwright.run_events import (
    GraphMutated,
    ModelFinished,
    NodeFailed,
    NodeFinished,
    RunEvent,
    RunFinished,
    RunPaused,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)

__all__ = ["as_json", "event_dict"]

_COMMON = ("seq", "at", "run_id", "path")
_NOT_OWN = (*_COMMON, "agent_id", "chunk")
_FIGURES = (
    "iteration",
    "duration_ms",
    "llm_duration_ms",
    "tool_duration_ms",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "transition_reason",
)
_DEEPEST = 50


def event_dict(event: RunEvent) -> dict[str, Any]:
    """Return an event as a dict: `type`, `seq`, `at`, `run_id`, `path`, then its own fields."""
    common = {"type": _type_of(event), **{name: getattr(event, name) for name in _COMMON}}
    if event.agent_id:
        common["agent_id"] = event.agent_id
    return {**common, **_fields_of(event)}


def as_json(value: Any) -> str:
    """Return `value` as one line of ASCII that every JSON parser reads; what JSON does not know is its `str`."""
    return json.dumps(_plain(value, 0), allow_nan=False)


def _type_of(event: RunEvent) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def _fields_of(event: RunEvent) -> dict[str, Any]:
    match event:
        case NodeFinished() | NodeFailed():
            figures = {name: getattr(event.result, name, None) for name in _FIGURES}
            error = {"error": event.error} if isinstance(event, NodeFailed) else {}
            return {"node": event.node, **error, **figures}
        case ModelFinished():
            calls = [
                {"id": call["id"], "name": call["name"], "args": call["args"]} for call in event.message.tool_calls
            ]
            usage = event.usage.as_dict() if event.usage is not None else None
            text = text_of(event.message)
            return {"node": event.node, "call_id": event.call_id, "text": text, "tool_calls": calls, "usage": usage}
        case ToolStarted():
            call = event.call
            return {"node": event.node, "index": event.index, "id": call.id, "name": call.name, "args": call.args}
        case ToolProgress():
            told = {"progress": event.progress, "total": event.total, "message": event.message}
            return {"node": event.node, "id": event.call.id, "name": event.call.name, **told}
        case ToolFinished():
            result = event.result
            return {
                "node": event.node,
                "index": event.index,
                "id": event.call.id,
                "name": event.call.name,
                "args": result.args,
                "success": result.success,
                "duration_ms": result.duration_ms,
                "content": result.message.content,
            }
        case GraphMutated():
            own = {"applied": event.applied, "reason": event.reason}
            return {"node": event.node, "mutation": asdict(event.mutation), **own}
        case RunPaused():
            return {"pending": [asdict(item) for item in event.pending]}
        case RunFinished():
            return {"report": asdict(event.report)}
    return {part.name: getattr(event, part.name) for part in fields(event) if part.name not in _NOT_OWN}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if depth == _DEEPEST:
        return _shown(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(entry, depth + 1) for entry in value]
    return _dumped(value, depth)


def _dumped(value: Any, depth: int) -> Any:
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return _shown(value)
    try:
        return _plain(dump(mode="json"), depth + 1)
    except Exception:  # a model of the user's that cannot be written as JSON
        return _shown(value)


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # the value's own code
        return f"<{type(value).__name__}>"
