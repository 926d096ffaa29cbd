"""The events of `Agent.astream_with_tools`."""

from graphwright.agent.stream_events import (
    DoneEvent,
    ErrorEvent,
    InterruptEvent,
    RestartEvent,
    RetryEvent,
    StreamEvent,
    TokenEvent,
    ToolEndEvent,
    ToolStartEvent,
)

__all__ = [
    "DoneEvent",
    "ErrorEvent",
    "InterruptEvent",
    "RestartEvent",
    "RetryEvent",
    "StreamEvent",
    "TokenEvent",
    "ToolEndEvent",
    "ToolStartEvent",
]
