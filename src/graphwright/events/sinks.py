"""Where events go: a webhook, a function, the log, a bus."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from graphwright._internal.posting import Poster
from graphwright.events.base import AgentEvent, EventSink
from graphwright.exceptions import ConfigurationError

__all__ = ["CallbackSink", "EventBusSink", "LogSink", "WebhookSink"]

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.CRITICAL}


class _ChosenSink(EventSink):
    """A sink that takes events of some types only."""

    def __init__(self, events: Iterable[str] | None) -> None:
        if isinstance(events, str):
            raise ConfigurationError(f"events is {events!r}; give a list of patterns such as ['tool.*']")
        self._patterns = None if events is None else tuple(events)

    def wants(self, event: AgentEvent) -> bool:
        """Return whether the type of the event fits one of the patterns."""
        return self._patterns is None or any(fnmatchcase(event.event_type, pattern) for pattern in self._patterns)


class WebhookSink(_ChosenSink):
    """Posts each event as JSON to `url`.

    With a `secret` the header `X-Webhook-Signature` is `v1=` and an HMAC with SHA-256 over `id.timestamp.body`; the
    headers `X-Webhook-Id` and `X-Webhook-Timestamp` are always there. A repeat has the same id. Hosts of private
    networks are refused unless `allow_private_networks`.
    """

    name = "webhook"

    def __init__(
        self,
        url: str,
        *,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        events: Iterable[str] | None = None,
        timeout: float = 10.0,
        attempts: int = 4,
        first_wait: float = 0.5,
        allow_private_networks: bool = False,
    ) -> None:
        """Post to `url`, each event up to `attempts` times; `timeout` and `first_wait` are seconds."""
        super().__init__(events)
        self._poster = Poster(
            url,
            asked_by="WebhookSink",
            secret=secret,
            headers=headers,
            timeout=timeout,
            attempts=attempts,
            first_wait=first_wait,
            allow_private_networks=allow_private_networks,
        )

    async def deliver(self, event: AgentEvent) -> None:
        """Post one event."""
        await self._poster.post(event.to_dict(), message_id=event.event_id)


class CallbackSink(_ChosenSink):
    """Calls a function, sync or async, with each event, in the event loop of the agent."""

    name = "callback"

    def __init__(self, callback: Callable[[AgentEvent], Any], *, events: Iterable[str] | None = None) -> None:
        super().__init__(events)
        if not callable(callback):
            raise ConfigurationError(f"callback is {callback!r}; give a function that takes an AgentEvent")
        self._callback = callback

    async def deliver(self, event: AgentEvent) -> None:
        """Call the function."""
        answer = self._callback(event)
        if inspect.isawaitable(answer):
            await answer


class LogSink(_ChosenSink):
    """Writes each event to a logger, with its fields as `extra`, at the level of its severity."""

    name = "log"

    def __init__(self, logger: logging.Logger | str = "graphwright.events", *, events: Iterable[str] | None = None):
        super().__init__(events)
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    async def deliver(self, event: AgentEvent) -> None:
        """Log one event."""
        fields = " ".join(f"{key}={value!r}" for key, value in event.data.items())
        shown = {"event_type": event.event_type, "agent_id": event.agent_id, "event": event.to_dict()}
        text = "event=%s agent=%s user=%s %s"
        level = _LEVELS[event.severity]
        self._logger.log(level, text, event.event_type, event.agent_id, event.user_id, fields, extra=shown)


class EventBusSink(_ChosenSink):
    """Hands each event to a bus: an object with `publish(topic, event)` or `emit(topic, event)`, sync or async."""

    name = "event bus"

    def __init__(self, bus: Any, *, prefix: str = "", events: Iterable[str] | None = None) -> None:
        """Publish to `bus` under the event's type, after `prefix`."""
        super().__init__(events)
        publish = getattr(bus, "publish", None) or getattr(bus, "emit", None)
        if not callable(publish):
            raise ConfigurationError(f"bus is {bus!r}; give an object with publish(topic, event) or emit(topic, event)")
        self._publish = publish
        self._prefix = prefix

    async def deliver(self, event: AgentEvent) -> None:
        """Publish one event."""
        answer = self._publish(self._prefix + event.event_type, event.to_dict())
        if inspect.isawaitable(answer):
            await answer
