"""What the flags of a node do around one visit: one behaviour a file, applied in one order.

A node whose flags change nothing about its visit never comes here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from graphwright.engine.flags import (
    cacheable,
    isolated_context,
    no_history,
    observable,
    readonly,
    requires_human,
    retryable,
    summarize_output,
    validate_output,
)
from graphwright.engine.node_result import NodeResult
from graphwright.engine.state import NodeFlag

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun

__all__ = ["ACTIVE", "Visit", "execute"]

Visit = Callable[[], Awaitable[NodeResult]]

_AROUND: tuple[tuple[NodeFlag, Callable[[GraphRun, Any, Visit], Awaitable[NodeResult]]], ...] = (
    (NodeFlag.REQUIRES_HUMAN, requires_human.around),  # outermost: nothing at all happens before the decision
    (NodeFlag.OBSERVABLE, observable.around),
    (NodeFlag.CACHEABLE, cacheable.around),  # keeps what the inner ones made, a summary for one
    (NodeFlag.RETRYABLE, retryable.around),
    (NodeFlag.SUMMARIZE_OUTPUT, summarize_output.around),
    (NodeFlag.VALIDATE_OUTPUT, validate_output.around),
    (NodeFlag.READONLY, readonly.around),
    (NodeFlag.ISOLATED_CONTEXT, isolated_context.around),
    (NodeFlag.NO_HISTORY, no_history.around),
)

ACTIVE = frozenset(flag for flag, _ in _AROUND)
"""The flags that change a visit."""


async def execute(run: GraphRun, node: Any) -> NodeResult:
    """Run `node.execute` with what the node's flags put around it."""

    async def visit() -> NodeResult:
        result: NodeResult = await node.execute(run.state, run.config)
        return result

    for flag, around in reversed(_AROUND):
        if flag in node.flags:
            visit = _wrapped(around, run, node, visit)
    return await visit()


def _wrapped(around: Any, run: GraphRun, node: Any, call_next: Visit) -> Any:
    return lambda: around(run, node, call_next)
