"""Show a run what was learned from failed tool calls, and learn from those that fail in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from graphwright._internal.clock import wall_time
from graphwright.runtime.layers.prompt import has_prompt
from graphwright.strategy.lessons import Failure

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer
    from graphwright.strategy import AdaptiveStrategyManager

__all__ = ["strategy_layer"]

logger = logging.getLogger(__name__)

_DENIED = ("The call was denied", "A person rejected", "Nobody approved", "This call needs a person's approval")
"""How the answers to calls begin that were not allowed to run."""


def strategy_layer(manager: AdaptiveStrategyManager, tools: Callable[[], Collection[str]], instructions: str) -> Layer:
    """Return the layer. `tools` gives the names of the agent's tools, `instructions` are the agent's."""

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        if not has_prompt(request):
            advice = await _advice(manager, tools())
            if advice:
                own = instructions if request.system_prompt is None else request.system_prompt
                request.system_prompt = "\n\n".join(part for part in (own, advice) if part)
        states = _watched(request)
        paused = False
        try:
            result = await call_next(request)
            paused = result.status == "paused"
            return result
        finally:
            # Once the run has ended: a leg that goes on later has the visits of the earlier ones, too.
            if not paused and (failures := _failures(states)):
                await _recorded(manager, failures, tools())

    return layer


async def _advice(manager: AdaptiveStrategyManager, tools: Collection[str]) -> str:
    try:
        return await manager.prompt(tools)
    except Exception:  # the run goes on without advice
        logger.exception("the lessons could not be read")
        return ""


async def _recorded(manager: AdaptiveStrategyManager, failures: Sequence[Failure], tools: Collection[str]) -> None:
    try:
        await manager.record(failures, tools=tools)
    except Exception:  # the answer is there, and is given
        logger.exception("%d failed tool calls could not be kept", len(failures))


def _watched(request: RunRequest) -> list[GraphState]:
    states: list[GraphState] = []
    before = request.on_state

    def on_state(state: GraphState) -> None:
        states.append(state)
        if before is not None:
            before(state)

    request.on_state = on_state
    return states


def _failures(states: Sequence[GraphState]) -> list[Failure]:
    now = wall_time()
    return [
        Failure.of(
            call["name"],
            call["args"],
            call["result"],
            at=now,
            denied=str(call["result"]).startswith(_DENIED),
        )
        for state in states
        for visit in state.node_history
        for call in visit.tool_calls
        if not call["success"] and not call.get("reused")
    ]
