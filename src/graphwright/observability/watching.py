"""Put together what watches an agent, from what the front door was given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphwright._internal.redact import redact
from graphwright.exceptions import ConfigurationError, FeatureOffError
from graphwright.observability.base import RunWatcher, Transporter, TransporterType
from graphwright.observability.collector import ObservabilityCollector
from graphwright.observability.config import ObservabilityConfig
from graphwright.observability.recorder import Recorder

__all__ = ["Watch", "watch_of"]


@dataclass(frozen=True, slots=True)
class Watch:
    """What watches one agent: a record with its transporters, spans, and the events for the world around it."""

    watchers: tuple[RunWatcher, ...]
    collector: ObservabilityCollector | None = None
    transporters: tuple[Transporter, ...] = ()
    """Those that belong to this agent alone, and end with it."""
    notifier: Any = None
    agent_id: str = ""
    """Who is named in what is recorded; empty leaves it to the agent."""

    def get_stats(self) -> dict[str, Any]:
        """Return the figures of the record; empty without one."""
        return {} if self.collector is None else self.collector.get_stats()

    def report(self, path: str | Path, title: str) -> str:
        """Write the record as a page, and return where it is.

        Raises:
            FeatureOffError: nothing is recorded.
        """
        if self.collector is None:
            raise FeatureOffError(NO_RECORD)
        from graphwright.observability.transporters.files import html_page, write_text

        write_text(Path(path), html_page(self.collector, title))
        return str(path)

    async def close(self) -> None:
        """Flush and close what belongs to this agent, and deliver its events."""
        if self.collector is not None:
            await self.collector.flush()
            await self.collector.close(self.transporters)
        if self.notifier is not None:
            await self.notifier.stop()


NO_RECORD = "generate_report() needs recorded events, and this agent records none; build it with observe=True"


def watch_of(
    *, observe: Any = None, observer: Any = None, observer_agent_id: Any = None, events: Any = None
) -> Watch | None:
    """Return what watches an agent, from the keywords of its front door; `None` where nothing does.

    Raises:
        ConfigurationError: one of them does not fit.
        MissingExtraError: a transporter needs a package that is not installed.
    """
    if observer is not None and not isinstance(observer, ObservabilityCollector):
        raise ConfigurationError(f"observer is {observer!r}; give an ObservabilityCollector")
    if observer_agent_id is not None and (not isinstance(observer_agent_id, str) or not observer_agent_id):
        raise ConfigurationError(f"observer_agent_id is {observer_agent_id!r}; give a name")
    if events is not None and not callable(getattr(events, "begin", None)):
        raise ConfigurationError(f"events is {events!r}; give an EventNotifier")
    config = ObservabilityConfig.coerce(observe)
    if config is None and observer is not None and observe is None:
        config = ObservabilityConfig(transporters=())
    if config is None and events is None:
        return None
    watchers: list[RunWatcher] = []
    collector: ObservabilityCollector | None = None
    transporters: list[Transporter] = []
    if config is not None:
        collector = observer if observer is not None else _collector(config)
        watchers.append(Recorder(collector, config))
        for kind in config.transporters:
            transporters.append(_transporter(kind, collector, config, watchers))
        for transporter in transporters:
            collector.add_transporter(transporter)
    if events is not None:
        watchers.append(events)
    return Watch(tuple(watchers), collector, tuple(transporters), events, observer_agent_id or "")


def _collector(config: ObservabilityConfig) -> ObservabilityCollector:
    sanitizer = redact if config.redact_sensitive else None
    return ObservabilityCollector(config.session_name, config.max_entries, sanitizer)


def _transporter(
    kind: TransporterType | Transporter,
    collector: ObservabilityCollector,
    config: ObservabilityConfig,
    watchers: list[RunWatcher],
) -> Transporter:
    if isinstance(kind, Transporter):
        return kind
    from graphwright.observability.transporters import transporter_of

    made = transporter_of(kind, collector, config)
    if made is not None:
        return made
    from graphwright.observability.tracing import Tracing, otlp_provider

    tracing = Tracing(
        otlp_provider(config.otlp_endpoint) if config.otlp_endpoint else None,
        owns_provider=config.otlp_endpoint is not None,
        keeps_prompts=config.keeps_prompts,
        keeps_tool_io=config.keeps_tool_io,
        redacts=config.redact_sensitive,
    )
    watchers.append(tracing)
    return tracing
