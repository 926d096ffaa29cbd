"""`no_history`: the node sees the question and its own tool exchange, and nothing of what was said before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine._transition import SAME_NODE
from graphwright.engine.node_result import NodeResult

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit on a short conversation; what it adds joins the whole one."""
    state, scratch = run.state, run.context.scratch
    whole, checked = state.messages, state._checked
    own: list[Any] = scratch.get((node, "exchange"), [])
    question = [state.turn_question] if state.turn_question is not None else []
    shown = [*question, *own]
    state.messages, state._checked = list(shown), len(shown)
    try:
        result = await call_next()
    finally:
        added = state.messages[len(shown) :]
        state.messages, state._checked = whole, checked
        state.messages.extend(added)
        if checked == len(whole) - len(added):
            state._checked = len(state.messages)
    scratch[(node, "exchange")] = [*own, *added] if result.transition_reason in SAME_NODE else []
    return result
