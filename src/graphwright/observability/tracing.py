"""Turn runs into OpenTelemetry spans, by the conventions for generative AI: agents, model calls, tool calls.

Only the API package is needed. Without a provider that the program or `otlp_endpoint` sets up, spans go nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphwright._internal.optional import is_installed
from graphwright._internal.redact import redact
from graphwright.exceptions import MissingExtraError
from graphwright.messages import text_of
from graphwright.observability.base import RunInfo, RunOutcome, Transporter, agent_of
from graphwright.run_events import (
    ModelFinished,
    ModelStarted,
    NodeFailed,
    RunEvent,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    from graphwright.usage import Usage

__all__ = ["Tracing", "otlp_provider"]

_SECONDS = 10.0


class Tracing(Transporter):
    """Makes spans of the runs of an agent; a watcher, and a transporter only in that it is flushed and closed."""

    name = "otlp"

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        owns_provider: bool = False,
        keeps_prompts: bool = False,
        keeps_tool_io: bool = False,
        redacts: bool = True,
    ) -> None:
        """Use `tracer_provider`, else the one that the program has set up.

        Raises:
            MissingExtraError: `opentelemetry-api` is not installed.
        """
        if not is_installed("opentelemetry.trace"):
            raise MissingExtraError("OpenTelemetry spans", extra="otel", package="opentelemetry-api")
        from opentelemetry import trace

        self._provider = tracer_provider
        self.subject: object = tracer_provider or trace
        self._owns = owns_provider
        self.tracer = trace.get_tracer("graphwright", tracer_provider=tracer_provider)
        self.keeps_prompts = keeps_prompts
        self.keeps_tool_io = keeps_tool_io
        self.redacts = redacts

    def begin(self, run: RunInfo) -> _RunSpans:
        """Begin the span of a run, under the span that is current here, and return what makes the others."""
        return _RunSpans(self, run)

    async def flush(self) -> None:
        """Bring finished spans to their place, where the provider is our own."""
        from graphwright._internal.threads import run_in_thread

        flush = getattr(self._provider, "force_flush", None)
        if self._owns and flush is not None:
            await run_in_thread(lambda: flush(int(_SECONDS * 1000)))

    async def close(self) -> None:
        """Flush, and shut the provider down where it is our own."""
        from graphwright._internal.threads import run_in_thread

        await self.flush()
        shutdown = getattr(self._provider, "shutdown", None)
        if self._owns and shutdown is not None:
            self._owns = False
            await run_in_thread(shutdown)


def otlp_provider(endpoint: str) -> TracerProvider:
    """Return a provider that sends spans to `endpoint` by OTLP over HTTP, in batches.

    Raises:
        MissingExtraError: the SDK or its exporter is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        package = "opentelemetry-exporter-otlp-proto-http"
        raise MissingExtraError("otlp_endpoint", extra="otel", package=package) from error
    # A program that names its service by OTEL_SERVICE_NAME keeps that name.
    provider = SdkProvider(resource=Resource.create({}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider


@dataclass(slots=True, eq=False)
class _Open:
    """A span inside of which other spans are made."""

    span: Span
    kind: str
    key: Any
    token: Any
    """Takes it off again as the current span."""
    outer: _Open | None


_inner: ContextVar[_Open | None] = ContextVar("graphwright_open_span", default=None)
"""The innermost open span of the run that is going on here. Each parallel call has its own, as its task has."""


@dataclass(slots=True)
class _RunSpans:
    """The spans of one run."""

    tracing: Tracing
    run: RunInfo
    root: _Open = field(init=False)
    models: dict[str, tuple[Span, ModelStarted]] = field(default_factory=dict)
    left_open: list[_Open] = field(default_factory=list)
    """Spans of tools and peers; those that are still open at the end are ended then."""

    def __post_init__(self) -> None:
        run = self.run
        attributes = _known(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": run.agent_id,
                "gen_ai.agent.id": run.agent_id,
                "gen_ai.conversation.id": run.session_id,
                "gen_ai.request.model": run.model_name,
                "graphwright.run.id": run.run_id,
                "graphwright.run.resumed": run.is_resumed or None,
            }
        )
        self.root = self._open(f"invoke_agent {run.agent_id}", "run", None, attributes)

    def take(self, event: RunEvent) -> None:
        """Begin or end what an event tells of."""
        match event:
            case ModelStarted():
                attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": self.run.model_name}
                name = f"chat {self.run.model_name}".strip()
                span = self.tracing.tracer.start_span(name, kind=_kinds().CLIENT, attributes=_at(event, attributes))
                self.models[event.call_id] = (span, event)
            case ModelFinished():
                self._model_ended(event)
            case ToolStarted():
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.call.name,
                    "gen_ai.tool.call.id": event.call.id,
                    "gen_ai.tool.type": "function",
                }
                self._open(f"execute_tool {event.call.name}", "tool", event.call.id, _at(event, attributes))
            case ToolFinished():
                self._tool_ended(event)
            case RunStarted() if event.path:  # a peer's; that of the run itself has begun
                agent = agent_of(event, event.graph)
                attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
                self._open(f"invoke_agent {agent}", "peer", event.path, _at(event, attributes))
            case RunFinished() if event.path:
                self._close("peer", event.path)
            case NodeFailed():
                for call_id, (span, started) in list(self.models.items()):
                    if (started.path, started.node) == (event.path, event.node):
                        del self.models[call_id]
                        _fail(span, event.error, "error", redacts=self.tracing.redacts)
                        span.end()

    def end(self, outcome: RunOutcome) -> None:
        """End the span of the run, and before it all that the run left open."""
        error = outcome.error
        said = str(error) if error is not None else f"the run ended: {outcome.status}"
        kind = type(error).__qualname__ if error is not None else outcome.status
        hide = self.tracing.redacts
        for span, _ in self.models.values():
            _fail(span, said, kind, redacts=hide)
            span.end()
        for left in reversed(self.left_open):
            if outcome.status != "paused":
                _fail(left.span, said, kind, redacts=hide)
            left.span.end()
        span = self.root.span
        span.set_attributes(_known({"graphwright.run.id": outcome.run_id, "graphwright.run.status": outcome.status}))
        # What the whole run used, its parts included: the spans inside say who used it and are not added to it.
        if outcome.usage is not None:
            span.set_attributes(_tokens(outcome.usage))
        if outcome.status not in ("completed", "paused"):
            _fail(span, said, kind, redacts=hide)
        self._leave(self.root)
        span.end()

    def _model_ended(self, event: ModelFinished) -> None:
        span, started = self.models.pop(event.call_id, (None, None))
        if span is None:
            return
        notes: Mapping[str, Any] = event.message.response_metadata
        model = notes.get("model_name") or notes.get("model")
        reason = next((notes[key] for key in ("finish_reason", "stop_reason", "done_reason") if notes.get(key)), None)
        attributes = {
            "gen_ai.provider.name": notes.get("model_provider"),
            "gen_ai.response.model": model,
            "gen_ai.response.id": notes.get("id") or event.message.id,
            "gen_ai.response.finish_reasons": [str(reason)] if reason else None,
        }
        if self.tracing.keeps_prompts and started is not None:
            asked = [{"role": message.type, "content": text_of(message)} for message in started.messages]
            attributes["gen_ai.input.messages"] = self._text(asked)
            attributes["gen_ai.output.messages"] = self._text([{"role": "ai", "content": text_of(event.message)}])
        span.set_attributes({**_known(attributes), **_tokens(event.usage)})
        span.end()

    def _tool_ended(self, event: ToolFinished) -> None:
        result = event.result
        closed = self._close("tool", event.call.id, failed=None if result.success else text_of(result.message))
        if closed is None:
            return
        span = closed.span
        if self.tracing.keeps_tool_io:
            span.set_attribute("gen_ai.tool.call.arguments", self._text(result.args or event.call.args))
            span.set_attribute("gen_ai.tool.call.result", self._text(text_of(result.message)))
        if result.verdict:
            span.set_attribute("graphwright.tool.verdict", result.verdict)
        if not result.success:
            said = text_of(result.message) if self.tracing.keeps_tool_io else ""
            _fail(span, said, result.verdict or "tool_error", redacts=self.tracing.redacts)
        span.end()

    def _open(self, name: str, kind: str, key: Any, attributes: dict[str, Any]) -> _Open:
        from opentelemetry import context, trace

        # The parent is the span that is current in the task that reports, which is right where calls run side by side.
        span = self.tracing.tracer.start_span(name, kind=_kinds().INTERNAL, attributes=attributes)
        opened = _Open(span, kind, key, context.attach(trace.set_span_in_context(span)), _inner.get())
        _inner.set(opened)
        if kind != "run":
            self.left_open.append(opened)
        return opened

    def _close(self, kind: str, key: Any, *, failed: str | None = None) -> _Open | None:
        """Take a span off as the current one, with what was left open inside of it; a tool's is ended by the caller."""
        found = _inner.get()
        while found is not None and (found.kind, found.key) != (kind, key):
            found = found.outer if found is not self.root else None
        if found is None:
            return None
        inside = _inner.get()
        while inside is not None and inside is not found:
            self.left_open.remove(inside)
            _fail(inside.span, failed or "it did not end", "error", redacts=self.tracing.redacts)
            inside.span.end()
            inside = inside.outer
        self.left_open.remove(found)
        self._leave(found)
        if kind == "peer":
            found.span.end()
        return found

    def _leave(self, opened: _Open) -> None:
        from opentelemetry import context

        context.detach(opened.token)
        _inner.set(opened.outer)

    def _text(self, value: Any) -> str:
        shown = redact(value) if self.tracing.redacts else value
        return shown if isinstance(shown, str) else json.dumps(shown, default=str, ensure_ascii=False)


def _kinds() -> Any:
    from opentelemetry.trace import SpanKind

    return SpanKind


def _at(event: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    place = "/".join(part for part in (event.path, getattr(event, "node", "")) if part)
    return _known({**attributes, "graphwright.node": place})


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value not in (None, "", [])}


def _tokens(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    # Cached tokens are a part of the input and reasoning of the output; they are told of, and never added.
    return _known(
        {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
    )


def _fail(span: Span, said: str, kind: str, *, redacts: bool) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, str(redact(said)) if redacts else said))
