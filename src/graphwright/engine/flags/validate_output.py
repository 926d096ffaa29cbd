"""`validate_output`: an output that does not fit the node's schema fails the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.answer_schema import AnswerSchema, Unfit
from graphwright.engine.node_result import NodeResult
from graphwright.exceptions import ConfigurationError, OutputSchemaError

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit and check what comes out of it, after post-processing; nothing of a wrong output is kept.

    The schema is the node's `output_schema`, or `metadata["output_schema"]`.
    """
    wanted = getattr(node, "output_schema", None) or node.metadata.get("output_schema")
    if wanted is None:
        raise ConfigurationError(
            f"node {node.name!r} has the flag validate_output and no output_schema to check against"
        )
    state = run.state
    before, context = len(state.messages), dict(state.context)
    result = await call_next()
    if result.error is not None or result.tool_calls or result.transition_reason:
        return result
    schema = AnswerSchema(wanted)
    try:
        schema.parse_text(result.output) if isinstance(result.output, str) else schema.parse(result.output)
    except Unfit as problem:
        state.messages = state.messages[:before]
        state.context = context
        raise OutputSchemaError(
            f"the output of node {node.name!r} does not fit {schema.type.__name__}: {problem}", raw=str(result.output)
        ) from None
    return result
