"""Show the events of a run as LangChain's v2 event dicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.messages import AIMessageChunk
from graphwright.run_events import (
    GraphMutated,
    NodeFailed,
    NodeFinished,
    NodeMetrics,
    NodeStarted,
    Restarted,
    Retrying,
    RunEvent,
    RunPaused,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    ViewChanged,
)

__all__ = ["v2_event"]


def v2_event(event: RunEvent) -> Iterable[dict[str, Any]]:
    """Return the dicts for one event: none or one."""
    name, kind, data = _shape(event)
    if not kind:
        return ()
    shown = {"event": kind, "name": name, "run_id": event.run_id, "data": data}
    if event.agent_id:
        shown["metadata"] = {"agent_id": event.agent_id}
    return (shown,)


def _shape(event: RunEvent) -> tuple[str, str, dict[str, Any]]:
    match event:
        case TextDelta():
            chunk = event.chunk if event.chunk is not None else AIMessageChunk(content=event.text)
            return event.node, "on_chat_model_stream", {"chunk": chunk, "run_id": event.call_id}
        case NodeStarted():
            return event.node, "on_node_start", {"node_type": event.node_type}
        case NodeFinished():
            result = event.result
            data = {"duration_ms": result.duration_ms, "tokens": result.total_tokens, "result": result}
            return event.node, "on_node_end", data
        case NodeMetrics():
            return event.node, "on_node_metrics", dict(event.metrics)
        case NodeFailed():
            return event.node, "on_node_error", {"error": event.error}
        case ToolStarted():
            return event.call.name, "on_tool_start", {"input": event.call.args, "run_id": event.call.id}
        case ToolProgress():
            data = {"progress": event.progress, "total": event.total, "message": event.message}
            return event.call.name, "on_tool_progress", {**data, "run_id": event.call.id}
        case ToolFinished():
            return _tool_end(event)
        case Retrying():
            data = {"attempt": event.attempt, "wait_s": event.wait_s, "reason": event.reason}
            return event.node, "on_chat_model_retry", data
        case Restarted():
            return event.node, "on_chat_model_restart", {"run_id": event.call_id, "dropped": event.dropped}
        case GraphMutated():
            data = {"mutation": event.mutation, "applied": event.applied, "reason": event.reason}
            return event.node, "on_graph_mutation", data
        case ViewChanged():
            data = {"scope": event.scope, "left_out": event.left_out, "facts": event.facts, "tokens": event.tokens}
            return event.node, "on_view_changed", data
        case RunPaused():
            return "", "on_interrupt", {"pending": list(event.pending)}
    return "", "", {}


def _tool_end(event: ToolFinished) -> tuple[str, str, dict[str, Any]]:
    result = event.result
    data: dict[str, Any] = {"output": result.message, "run_id": event.call.id, "duration_ms": result.duration_ms}
    if result.reused:
        data["reused"] = True
    if result.raised:
        return event.call.name, "on_tool_error", {**data, "error": result.message.content, "status": "error"}
    return event.call.name, "on_tool_end", {**data, "status": "success" if result.success else "error"}
