"""`requires_human`: a person decides before the node runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine._transition import SAME_NODE
from graphwright.engine.node_result import NodeResult
from graphwright.exceptions import GraphwrightError

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]

QUESTION = "Run the step {name!r}?"


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Ask the engine's human handler, and run the node only when it says yes; without a handler, refuse.

    The visits of one tool loop, corrections included, are one step, and are asked for once.
    """
    from graphwright.engine.nodes.human import ask_person

    state = run.state
    last = state.node_history[-1] if state.node_history else None
    inside_loop = last is not None and last.node_name == node.name and last.transition_reason in SAME_NODE
    if not inside_loop:
        prompt = QUESTION.format(name=node.name)
        if node.description:
            prompt += f" {node.description}"
        decision, reason = await ask_person(run.context, prompt, state, asked_by=node.name)
        if decision != "approved":
            told = f": {reason}" if reason else ""
            raise GraphwrightError(f"step {node.name!r} was not approved ({decision}){told}")
    return await call_next()
