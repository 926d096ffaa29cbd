"""`observable`: an extra event with the figures of each visit."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphwright.engine.node_result import NodeResult
from graphwright.run_events import NodeMetrics

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit and report what it took."""
    started = perf_counter()
    result = await call_next()
    context = run.context
    if context.emit is not None:
        metrics = {
            "duration_ms": (perf_counter() - started) * 1000,
            "llm_duration_ms": result.llm_duration_ms,
            "tool_duration_ms": result.tool_duration_ms,
            "prompt_tokens": result.prompt_tokens,
            "completion_tokens": result.completion_tokens,
            "total_tokens": result.total_tokens,
            "tool_calls": len(result.tool_calls),
            "tool_calls_failed": result.tool_calls_failed,
        }
        await context.emit(NodeMetrics(node.name, metrics, run_id=context.run_id, path=context.path))
    return result
