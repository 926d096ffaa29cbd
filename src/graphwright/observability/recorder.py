"""Write down runs: the events of a run become entries of a record, as many as the level asks for."""

from __future__ import annotations

import time
from typing import Any

from graphwright.messages import text_of
from graphwright.observability.base import ObserveLevel, RunInfo, RunOutcome, TimelineEntry, agent_of
from graphwright.observability.collector import ObservabilityCollector
from graphwright.observability.config import ObservabilityConfig
from graphwright.run_events import (
    ConversationNotSaved,
    GraphMutated,
    GuardDecided,
    ModelFinished,
    ModelStarted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    Retrying,
    RunEvent,
    RunPaused,
    ToolFinished,
    ToolStarted,
    ViewChanged,
)
from graphwright.usage import Usage

__all__ = ["Recorder", "figures_of"]


class Recorder:
    """Records the runs of one agent in a collector."""

    def __init__(self, collector: ObservabilityCollector, config: ObservabilityConfig) -> None:
        self.collector = collector
        self.subject: object = collector
        self.config = config

    def begin(self, run: RunInfo) -> _RunRecord:
        """Record that a run begins, and return what records the rest."""
        record = _RunRecord(self.collector, self.config, run)
        record.add("run.start", is_part=run.is_part, is_resumed=run.is_resumed)
        return record


class _RunRecord:
    """Records one run."""

    def __init__(self, collector: ObservabilityCollector, config: ObservabilityConfig, run: RunInfo) -> None:
        self._collector = collector
        self._run = run
        self._full = config.level is ObserveLevel.FULL
        self._rich = config.level is not ObserveLevel.BASIC
        self._prompts = config.keeps_prompts
        self._tool_io = config.keeps_tool_io
        self._extra = {"correlation_id": config.correlation_id} if config.correlation_id else {}
        self._begun = time.time()
        self._models: dict[str, ModelStarted] = {}
        self._prompt_of: dict[str, list[Any]] = {}
        self._tools: dict[tuple[str, str, str, int], float] = {}
        self._nodes: dict[tuple[str, str], float] = {}

    def add(self, event_type: str, event: Any = None, **fields: Any) -> None:
        """Record one thing; keywords that are no fields of an entry are its data."""
        run = self._run
        given = {name: fields.pop(name) for name in ("at", "duration_ms", "error") if name in fields}
        given.setdefault("at", event.at if event is not None else time.time())
        self._collector.record_event(
            TimelineEntry(
                event_type=event_type,
                agent_id=run.agent_id if event is None else agent_of(event, run.agent_id),
                run_id=(event.run_id if event is not None else "") or run.run_id,
                caller_key=str(run.caller_key),
                session_id=run.session_id,
                path=event.path if event is not None else "",
                node=getattr(event, "node", ""),
                data={**self._extra, **fields},
                **given,
            )
        )

    def take(self, event: RunEvent) -> None:
        """Note one event."""
        if event.run_id and not self._run.run_id:
            self._run.run_id = event.run_id
        match event:
            case ModelStarted():
                self._models[event.call_id] = event
                if self._prompts:
                    self._prompt_of[event.call_id] = [_shown(message) for message in event.messages]
            case ModelFinished():
                self._model_call(event)
            case ToolStarted():
                self._tools[event.path, event.node, event.call.id, event.index] = event.at
            case ToolFinished():
                self._tool_call(event)
            case NodeStarted() if self._full:
                self._nodes[event.path, event.node] = event.at
            case NodeFailed():
                self._lost_calls(event)
                self.add("node.error", event, error=event.error, duration_ms=self._node_ms(event))
            case NodeFinished() if self._full:
                self.add("node.visit", event, at=event.at, duration_ms=self._node_ms(event))
            case Retrying():
                self.add("model.retry", event, error=event.reason, attempt=event.attempt, wait_s=event.wait_s)
            case RunPaused():
                self.add("run.paused", event, pending=[self._asked(item) for item in event.pending])
            case ConversationNotSaved():
                self.add("conversation.not_saved", event, error=event.error)
            case GuardDecided() if self._rich:
                data = {"seam": event.seam, "action": event.action, "guard": event.guard, "reason": event.reason}
                self.add("guard", event, **data, labels=list(event.labels), tool=event.tool_name, failed=event.failed)
            case GraphMutated() if self._full:
                self.add("graph.mutated", event, applied=event.applied, reason=event.reason)
            case ViewChanged() if self._full:
                self.add("view.changed", event, left_out=event.left_out, facts=event.facts, tokens=event.tokens)

    def end(self, outcome: RunOutcome) -> None:
        """Record how the run ended."""
        if outcome.run_id:
            self._run.run_id = outcome.run_id
        self._lost_calls(None)
        error = outcome.error
        data: dict[str, Any] = {"status": outcome.status, "is_part": self._run.is_part, "cache_hit": outcome.cache_hit}
        if outcome.usage is not None:
            data["usage"] = figures_of(outcome.usage)
        elif getattr(error, "report", None) is not None:
            data["usage"] = {"total_tokens": error.report.total_tokens}  # type: ignore[union-attr]
        if self._prompts and outcome.text:
            data["answer"] = outcome.text
        said = f"{type(error).__name__}: {error}" if error is not None else ""
        self.add("run.end", duration_ms=(time.time() - self._begun) * 1000, error=said, **data)

    def _model_call(self, event: ModelFinished) -> None:
        started = self._models.pop(event.call_id, None)
        message, begun = event.message, started.at if started is not None else event.at
        notes = message.response_metadata
        data: dict[str, Any] = {
            "model": notes.get("model_name") or notes.get("model") or self._run.model_name,
            "call_id": event.call_id,
            "tool_calls": [call["name"] for call in message.tool_calls],
        }
        if event.usage is not None:
            data["usage"] = figures_of(event.usage)
        if self._prompts:
            data["prompt"] = self._prompt_of.pop(event.call_id, [])
            data["reply"] = _shown(message)
        self.add("model.call", event, at=begun, duration_ms=(event.at - begun) * 1000, **data)

    def _lost_calls(self, failed: NodeFailed | None) -> None:
        """Record the model calls that a failure or the end of the run left without an answer."""
        for call_id, started in list(self._models.items()):
            if failed is None or (started.path, started.node) == (failed.path, failed.node):
                del self._models[call_id]
                self._prompt_of.pop(call_id, None)
                error = failed.error if failed is not None else "it had no answer when the run ended"
                took = (time.time() - started.at) * 1000
                self.add("model.call", started, duration_ms=took, error=error, call_id=call_id)

    def _tool_call(self, event: ToolFinished) -> None:
        begun = self._tools.pop((event.path, event.node, event.call.id, event.index), event.at)
        result = event.result
        said = text_of(result.message)
        data: dict[str, Any] = {"tool": event.call.name, "call_id": event.call.id, "success": result.success}
        if result.reused:
            data["reused"] = True
        if result.verdict:
            data["verdict"] = result.verdict
        if self._rich and result.notes:
            data["notes"] = result.notes
        if self._tool_io:
            data |= {"arguments": result.args or event.call.args, "result": said}
        failure = "" if result.success else (said if self._tool_io else result.verdict or "the tool failed")
        self.add("tool.call", event, at=begun, duration_ms=result.duration_ms, error=failure, **data)

    def _node_ms(self, event: NodeFinished | NodeFailed) -> float | None:
        begun = self._nodes.pop((event.path, event.node), None)
        return None if begun is None else (event.at - begun) * 1000

    def _asked(self, item: Any) -> dict[str, Any]:
        shown = {"id": item.id, "kind": item.kind}
        return {**shown, "value": item.value} if self._tool_io else shown


def figures_of(usage: Usage) -> dict[str, int | None]:
    """Return the tokens of a usage by their names; parts are not added to what holds them."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _shown(message: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.type, "text": text_of(message)}
    calls = getattr(message, "tool_calls", None)
    if calls:
        shown["tool_calls"] = [{"name": call["name"], "args": call["args"]} for call in calls]
    return shown
