"""Events of an agent for the world around it: what runs, what fails, what waits for a person."""

from graphwright.events.base import EVENT_TYPES, AgentEvent, EventSink
from graphwright.events.notifier import Delivery, EventNotifier
from graphwright.events.sinks import CallbackSink, EventBusSink, LogSink, WebhookSink

__all__ = [
    "EVENT_TYPES",
    "AgentEvent",
    "CallbackSink",
    "Delivery",
    "EventBusSink",
    "EventNotifier",
    "EventSink",
    "LogSink",
    "WebhookSink",
]
