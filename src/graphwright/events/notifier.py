"""Tell the world around an agent what happens: one queue for each sink, and an account at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphwright._internal.outbox import Outbox
from graphwright._internal.redact import redact
from graphwright.events.base import AgentEvent, EventSink
from graphwright.events.following import Invocation
from graphwright.exceptions import ConfigurationError
from graphwright.observability.base import RunInfo

__all__ = ["Delivery", "EventNotifier"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What became of the events of a notifier."""

    undelivered: Mapping[str, list[AgentEvent]] = field(default_factory=dict)
    """The events that a sink did not take, by the sink's name: those it raised for, and those still queued."""

    refused: Mapping[str, int] = field(default_factory=dict)
    """How many events found the queue of a sink full, by the sink's name."""

    @property
    def complete(self) -> bool:
        """Whether every event arrived."""
        return not self.undelivered and not self.refused


class EventNotifier:
    """Hands events to sinks, in the background. A run never waits for a sink.

    Each sink has a queue of `max_queue_size`. A full queue refuses what is new: what was taken is delivered, or
    reported by `stop` as not delivered. Credentials are taken out of an event before it is queued.
    """

    def __init__(
        self,
        sinks: Iterable[EventSink] = (),
        *,
        max_queue_size: int = 1000,
        shutdown_timeout: float = 10.0,
        slow_tool_threshold: float = 5.0,
    ) -> None:
        """Tell `sinks`. `shutdown_timeout` is how many seconds `stop` waits for each of them.

        A tool call that took `slow_tool_threshold` seconds or more is told of as `tool.slow`; 0 tells of none.
        """
        if isinstance(sinks, EventSink):
            sinks = (sinks,)
        if isinstance(max_queue_size, bool) or not isinstance(max_queue_size, int) or max_queue_size < 1:
            raise ConfigurationError(f"max_queue_size is {max_queue_size!r}; give a whole number above 0")
        for name, value in (("shutdown_timeout", shutdown_timeout), ("slow_tool_threshold", slow_tool_threshold)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise ConfigurationError(f"{name} is {value!r}; give seconds, 0 or more")
        self.slow_tool_threshold = slow_tool_threshold
        self.subject: object = self
        self._max_queue_size = max_queue_size
        self._shutdown_timeout = shutdown_timeout
        self._stopped = False
        self._queues: list[tuple[EventSink, Outbox[AgentEvent]]] = []
        for sink in sinks:
            self.add_sink(sink)

    def add_sink(self, sink: EventSink) -> None:
        """Tell `sink` of later events too.

        Raises:
            ConfigurationError: it is none.
        """
        if not isinstance(sink, EventSink):
            raise ConfigurationError(f"sink is {sink!r}; give a WebhookSink, CallbackSink, LogSink or EventBusSink")

        async def deliver(events: list[AgentEvent]) -> None:
            for event in events:
                await sink.deliver(event)

        queue = Outbox(f"the event sink {sink.name!r}", deliver, max_size=self._max_queue_size)
        self._queues = [*self._queues, (sink, queue)]

    async def emit(self, event: AgentEvent) -> bool:
        """Queue an event and return at once; False when a sink had no room, or the notifier is stopped."""
        return self.emit_sync(event)

    def emit_sync(self, event: AgentEvent) -> bool:
        """Do what `emit` does, from sync code and from any thread."""
        if self._stopped:
            return False
        event.data, event.metadata = _cleaned(event.data), _cleaned(event.metadata)
        taken = True
        for sink, queue in self._queues:
            try:
                wanted = sink.wants(event)
            except Exception:  # the other sinks get it all the same
                logger.exception("the event sink %r failed to say whether it wants an event", sink.name)
                continue
            if wanted and not queue.put(event):
                taken = False
        return taken

    async def start(self) -> None:
        """Take events, also after a `stop`. A new notifier has been started."""
        self._stopped = False

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until every sink has what was queued, or has failed to take it; False after `timeout` seconds."""
        return all(await asyncio.gather(*(queue.drain(timeout) for _, queue in self._queues)))

    async def stop(self) -> Delivery:
        """Deliver what is queued, close the sinks, and return what did not arrive; that is logged too."""
        self._stopped = True
        left = await asyncio.gather(*(queue.close(self._shutdown_timeout) for _, queue in self._queues))
        undelivered: dict[str, list[AgentEvent]] = {}
        refused: dict[str, int] = {}
        for (sink, queue), events in zip(self._queues, left, strict=True):
            if events:
                undelivered.setdefault(sink.name, []).extend(events)
                logger.warning("%d events were not delivered to the event sink %r", len(events), sink.name)
            if queue.refused:
                refused[sink.name] = refused.get(sink.name, 0) + queue.refused
                logger.warning("%d events found the queue of the sink %r full", queue.refused, sink.name)
                queue.refused = 0
            try:
                await sink.close()
            except Exception:  # the other sinks are closed all the same
                logger.exception("the event sink %r could not be closed", sink.name)
        return Delivery(undelivered=undelivered, refused=refused)

    def begin(self, run: RunInfo) -> Invocation:
        """Tell that a run begins, and return what tells of the rest."""
        return Invocation(run, self.emit_sync, slow_tool_ms=self.slow_tool_threshold * 1000)


def _cleaned(data: dict[str, Any]) -> dict[str, Any]:
    try:
        cleaned: dict[str, Any] = redact(data)
    except Exception:  # what could not be cleaned is not sent
        logger.exception("an event could not be cleaned, so its data was left out")
        return {"left_out": "it could not be cleaned"}
    return cleaned
