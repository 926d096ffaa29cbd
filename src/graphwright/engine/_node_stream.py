"""Derive a node's `stream` from its `execute`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Stream
from graphwright.engine._events_view import v2_event
from graphwright.engine.base import context_of
from graphwright.engine.state import GraphState, NodeEvent, NodeResult
from graphwright.run_events import RunEvent, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from graphwright.engine.base import BaseNode

__all__ = ["stream_node"]


async def stream_node(node: BaseNode, state: GraphState, config: Any) -> AsyncIterator[NodeEvent]:
    """Run `node.execute` once and yield what it reports; the last event is `on_node_end` with the result.

    What the node's own context reports to still hears everything.
    """
    context = context_of(config)

    async def run(send: Any) -> NodeResult:
        outer = context.emit

        async def emit(event: RunEvent) -> None:
            if outer is not None:
                await outer(event)
            await send(event)

        inner = context.listening(emit)
        configurable = {**config.get("configurable", {}), "graphwright": inner}
        return await node.execute(state, {**config, "configurable": configurable})

    def view(event: RunEvent) -> Iterable[NodeEvent]:
        return [
            NodeEvent(shown["event"], node.name, {"name": shown["name"], **shown["data"]}) for shown in v2_event(event)
        ]

    def end(result: NodeResult) -> Iterable[NodeEvent]:
        return [NodeEvent("on_node_end", node.name, {"result": result})]

    stream = Stream(run, view, finish=end, may_run_ahead=lambda event: isinstance(event, (TextDelta, ThinkingDelta)))
    try:
        async for event in stream:
            yield event
    finally:
        await stream.aclose()
