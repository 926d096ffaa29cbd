"""Show the events of a run as the bot's stream is documented: `(mode, payload)` pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphwright.messages import AIMessage, AIMessageChunk
from graphwright.orchestrator.outcome import trace_entry, update_of
from graphwright.run_events import NodeFinished, Restarted, Retrying, RunEvent, RunPaused, RunStarted, TextDelta

__all__ = ["BotView"]

RETRACTED = "the text shown since the last update is void, the model starts again"


class BotView:
    """Shows one leg of a run."""

    def __init__(self, topology: dict[str, Any], thread_id: str, *, is_new: bool) -> None:
        self._topology = topology
        self._thread_id = thread_id
        self._is_new = is_new
        self._thinking = ""
        self._spoken = False
        self._step = 0

    def __call__(self, event: RunEvent) -> Iterable[tuple[str, Any]]:
        """Return what one event shows."""
        if type(event) is TextDelta:
            if event.path or event.node != "agent":
                return ()
            self._spoken = True
            chunk = event.chunk if event.chunk is not None else AIMessageChunk(content=event.text, id=event.call_id)
            return (("messages", (chunk, self._metadata("agent"))),)
        match event:
            case RunStarted() if self._is_new and not event.path:
                return (("graph", {"type": "graph_topology", "run_id": event.run_id, **self._topology}),)
            case NodeFinished() if not event.path:
                return list(self._finished(event))
            case Retrying() if event.node == "agent":
                return (_status("retrying", event.reason, event.attempt, round(event.wait_s, 1)),)
            case Restarted() if event.node == "agent":
                return (_status("warning", RETRACTED, 0, 0.0),)
            case RunPaused():
                return (("updates", {"__interrupt__": tuple(event.pending)}),)
        return ()

    def _finished(self, event: NodeFinished) -> Iterator[tuple[str, Any]]:
        output, added = event.result.output, event.result.messages_added
        self._step += 1
        spoken, self._spoken = self._spoken, False
        if event.node == "agent":
            for message in added:
                if isinstance(message, AIMessage) and not spoken and message.text:
                    yield "messages", (message, self._metadata("agent"))
        invoked = {"type": "node_invoked", **trace_entry(event.node, output, event.run_id)}
        yield "graph", invoked
        update = update_of(event.node, output, added, event.run_id)
        if event.node == "agent":
            self._thinking += update.get("thinking", "")
            update["thinking"] = self._thinking
        yield "updates", {event.node: update}

    def _metadata(self, node: str) -> dict[str, Any]:
        return {"thread_id": self._thread_id, "langgraph_node": node, "langgraph_step": self._step + 1}


def _status(kind: str, reason: str, attempt: int, wait_s: float) -> tuple[str, Any]:
    event = {"type": kind, "reason": reason, "attempt": attempt, "wait_s": wait_s}
    return "updates", {"agent": {"status_events": [event]}}
