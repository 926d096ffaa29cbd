"""`readonly`: the node's own code may read the state and not write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.node_result import NodeResult
from graphwright.engine.state import GraphState
from graphwright.exceptions import GraphwrightError

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]

_FIELDS = ("plan", "completed", "reflections")


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit on a copy, refuse what the node wrote, and let the engine store the output itself.

    The output goes under `output_key` and `{name}_output`; the replies of a prompt node stay, since the engine wrote
    them.
    """
    from graphwright.engine._children import copy_state

    state = run.state
    real = dict(state.__dict__)
    stored = {getattr(node, "output_key", None), f"{node.name}_output"}
    seen = copy_state(state)
    state.context = copy_state(state).context
    state.messages = list(state.messages)
    for name in _FIELDS:
        setattr(state, name, list(getattr(state, name)))
    try:
        result = await call_next()
        written = _written(state, seen, stored, keeps_messages=getattr(node, "keeps_messages", False))
        outputs = {name: value for name, value in state.context.items() if name in stored}
        added = state.messages[len(seen.messages) :]
    finally:
        state.context, state.messages = real["context"], real["messages"]
        for name in _FIELDS:
            setattr(state, name, real.get(name, []))
    if written:
        raise GraphwrightError(
            f"node {node.name!r} is readonly and wrote {', '.join(written)}; take the flag off, or return the value"
        )
    state.messages.extend(added)
    if getattr(node, "keeps_messages", False):
        state._checked = len(state.messages)
    state.context.update(outputs)
    if result.error is None and result.output is not None and f"{node.name}_output" not in outputs:
        state.context[f"{node.name}_output"] = result.output
        key = getattr(node, "output_key", None)
        if key:
            state.context[key] = result.output
    return result


def _written(state: GraphState, before: GraphState, stored: set[Any], *, keeps_messages: bool) -> list[str]:
    found = [f"context[{name!r}]" for name in state.context if name not in stored and _differs(state, before, name)]
    found += [f"context[{name!r}]" for name in before.context if name not in state.context]
    if not keeps_messages and state.messages != before.messages:
        found.append("messages")
    return found + [name for name in _FIELDS if getattr(state, name) != getattr(before, name)]


def _differs(state: GraphState, before: GraphState, name: str) -> bool:
    return name not in before.context or bool(state.context[name] != before.context[name])
