"""`isolated_context`: the node sees the context keys that it asks for, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.node_result import NodeResult

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit with `input_keys` alone; of what it writes, only its output comes back."""
    state = run.state
    outer = state.context
    state.context = {name: outer[name] for name in getattr(node, "input_keys", ()) if name in outer}
    try:
        result = await call_next()
        inner = state.context
    finally:
        state.context = outer
    for name in (getattr(node, "output_key", None), f"{node.name}_output"):
        if name is not None and name in inner:
            outer[name] = inner[name]
    return result
