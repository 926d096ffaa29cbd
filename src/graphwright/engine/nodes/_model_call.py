"""Ask a node's model: what it is shown, and under which settings."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from graphwright.engine.base import NodeContext
from graphwright.engine.nodes._binding import NodeRun
from graphwright.engine.state import GraphState
from graphwright.messages import SystemMessage, problem_in, repair_pairs, text_of
from graphwright.models import call_model
from graphwright.models.base import ModelReply, ModelRequest

if TYPE_CHECKING:
    from graphwright.engine.compaction.view import ContextView
    from graphwright.engine.nodes.prompt import PromptNode

__all__ = ["ask", "provider_view"]

logger = logging.getLogger(__name__)


def ask(node: PromptNode, run: NodeRun, view: list[Any], context: NodeContext) -> Awaitable[ModelReply]:
    """Ask the node's model with the conversation `view`. What is awaited raises `ModelError`, also after retries."""
    binding = run.binding
    choice = node.tool_choice
    if choice not in ("auto", "none") and run.tools_used:
        choice = "auto"
    request = ModelRequest(
        messages=view,
        tools=binding.specs if run.offer is None else run.offer.specs,
        tool_choice=choice,
        output_schema=node.output_schema if binding.schema_is_native else None,
        temperature=node.temperature,
        max_tokens=node.max_tokens,
        config=context.caller_config,
    )
    # A text that guards may refuse is not shown before they have seen it.
    emit = None if node.guards else context.emit
    asking: Awaitable[ModelReply]
    if binding.verbose:
        asking = _told(node, request, emit, run, context)
    elif emit is None:
        asking = call_model(context.held(binding.model), request)
    else:
        model = context.held(binding.model)
        asking = call_model(model, request, node=node.name, path=context.path, run_id=context.run_id, emit=emit)
    return asking if context.journal is None else context.once_asked(asking)


async def _told(node: PromptNode, request: ModelRequest, emit: Any, run: NodeRun, context: NodeContext) -> ModelReply:
    """Ask for a node that is flagged `verbose`: the whole prompt and the whole response go to the log."""
    model = context.held(run.binding.model)
    prompt = "\n".join(f"{message.type}: {text_of(message)}" for message in request.messages)
    logger.info("node %r asks model %r:\n%s", node.name, model.name, prompt)
    reply = await call_model(model, request, node=node.name, path=context.path, run_id=context.run_id, emit=emit)
    calls = "".join(f"\ncall {call.name}({call.args})" for call in reply.calls)
    logger.info("node %r got from model %r:\n%s%s", node.name, model.name, reply.text, calls)
    return reply


def provider_view(system: SystemMessage | None, state: GraphState, compacted: ContextView | None = None) -> list[Any]:
    """Return what the model is shown: one system message, then the conversation as a strict provider accepts it.

    With `compacted`, that view of the conversation is shown in its place.
    """
    messages = state.messages
    if state._checked != len(messages):
        _check_new(state)
        messages = state.messages
    if compacted is not None:
        messages = compacted.show(state, system)
    if system is None:
        return messages[:]
    if messages[0].type != "system":
        return [system, *messages]
    return _with_callers_system_text(system, messages)


def mark_checked(state: GraphState) -> None:
    """Note that everything in the conversation is well formed, so that it is not looked at again."""
    state._checked = len(state.messages)


def _check_new(state: GraphState) -> None:
    """Look at what was added since the last look, by whatever node, and repair it where needed."""
    messages, checked = state.messages, state._checked
    start = checked if 0 < checked < len(messages) and messages[checked].type != "tool" else 0
    if problem_in(messages, start=start) is not None:
        state.messages = repair_pairs(messages)
    mark_checked(state)


def _with_callers_system_text(system: SystemMessage, messages: list[Any]) -> list[Any]:
    """Join the system messages that open the caller's conversation to the node's own, in one place."""
    count = next((index for index, message in enumerate(messages) if message.type != "system"), len(messages))
    texts = [text_of(system), *(text_of(message) for message in messages[:count])]
    joined = SystemMessage(content="\n\n".join(text for text in texts if text))
    return [joined, *messages[count:]]
