"""Put the layers of a context engine behind the instructions, and bound the conversation by what they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphwright.engine.compaction import ContextCompaction
from graphwright.runtime.layers.prompt import has_prompt

if TYPE_CHECKING:
    from graphwright.context import ContextEngine
    from graphwright.engine.execution import PromptGraphEngine
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["context_layer"]


def context_layer(
    context: ContextEngine, engine: Callable[[], PromptGraphEngine], instructions: str, compaction: Any
) -> Layer:
    """Return the layer. `instructions` are the agent's, `compaction` is how the user wants tool loops compacted."""
    settings = ContextCompaction.coerce(compaction)

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        runs = engine()
        own = instructions if request.system_prompt is None else request.system_prompt
        if has_prompt(request):
            # The layers are in the prompt that is kept; the bound is worked out anew, from nothing but the window.
            limit = context.limit(runs.tools.specs, runs.model)
        else:
            values = dict(request.context or {})
            if isinstance(request.input, dict):
                values = {**dict(request.input.get("context") or {}), **values}
            assembled = await context.assemble(values, instructions=own, tools=runs.tools.specs, model=runs.model)
            request.system_prompt = "\n\n".join(part for part in (own, assembled.text) if part)
            limit = assembled.max_tokens
        if settings.enabled:
            request.compaction = settings.with_budget(limit, context.counter(runs.model))
        return await call_next(request)

    return layer
