"""Ask a model for nodes that are no prompt nodes, and count what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphwright.engine.base import BaseNode, NodeContext
from graphwright.engine.state import NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.models import as_model, call_model
from graphwright.models.base import ModelReply, ModelRequest

if TYPE_CHECKING:
    from graphwright.models.base import ChatModel

__all__ = ["ask_model", "model_of"]


def model_of(node: BaseNode, override: Any, context: NodeContext) -> ChatModel:
    """Return the model of a node: its own, made once for each engine, else the engine's."""
    if override is None:
        if context.model is None:
            raise ConfigurationError(f"node {node.name!r} needs a model; give one to the engine")
        chosen = context.model_for(node)
        assert chosen is not None
        return chosen
    key = (node, "model")
    model: ChatModel | None = context.prepared.get(key)
    if model is None:
        model = context.prepared[key] = as_model(override)
    return model


async def ask_model(
    node: BaseNode,
    model: ChatModel,
    messages: Sequence[Any],
    context: NodeContext,
    result: NodeResult,
    *,
    shown: bool = False,
) -> ModelReply:
    """Ask `model` without tools and add what it cost to the run and to `result`; a listener sees it when `shown`."""
    request = ModelRequest(messages=messages, config=context.caller_config)
    started = perf_counter()
    model = context.held(model)
    if shown and context.emit is not None:
        asking = call_model(model, request, node=node.name, path=context.path, run_id=context.run_id, emit=context.emit)
    else:
        asking = call_model(model, request)
    reply = await context.once_asked(asking)
    result.llm_duration_ms += (perf_counter() - started) * 1000
    usage = reply.usage
    if usage is not None:
        context.usage.add(usage)
        result.prompt_tokens += usage.input_tokens or 0
        result.completion_tokens += usage.output_tokens or 0
        result.total_tokens += usage.total_tokens or 0
    return reply
