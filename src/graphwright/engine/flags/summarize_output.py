"""`summarize_output`: a long output is summarised before anybody uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine.node_result import NodeResult
from graphwright.messages import HumanMessage, SystemMessage
from graphwright.models import call_model
from graphwright.models.base import ModelRequest

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]

_LONG = 1000
SUMMARIZE = (
    "Summarize the text for the next step of the work. Keep names, figures and conclusions. Write only the summary."
)


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Run the visit; put a summary in the place of an output of more than 1,000 characters.

    The reply in the conversation, `output_key` and `{name}_output` hold the summary. Its tokens count.
    """
    state, context = run.state, run.context
    result = await call_next()
    text = result.output if isinstance(result.output, str) else ""
    if result.error is not None or result.tool_calls or len(text) <= _LONG or context.model is None:
        return result
    request = ModelRequest(
        messages=[SystemMessage(content=SUMMARIZE), HumanMessage(content=text)], config=context.caller_config
    )
    reply = await context.once_asked(call_model(context.held(context.model), request))
    if reply.usage is not None:
        context.usage.add(reply.usage)
        result.prompt_tokens += reply.usage.input_tokens or 0
        result.completion_tokens += reply.usage.output_tokens or 0
        result.total_tokens += reply.usage.total_tokens or 0
    if not reply.text.strip():
        return result
    last = state.messages[-1]
    if last.type == "ai" and last.content == text:
        shorter = last.model_copy(update={"content": reply.text})
        state.messages[-1] = shorter
        result.messages_added = [*result.messages_added[:-1], shorter]
    for name, value in list(state.context.items()):
        if value == text and name in (getattr(node, "output_key", None), f"{node.name}_output"):
            state.context[name] = reply.text
    result.output = result.raw_output = reply.text
    return result
