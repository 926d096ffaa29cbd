"""The parts of an agent that make the system prompt of each run: its flow, its lessons, its context engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.engine.execution import PromptGraphEngine
    from graphwright.runtime import Layer
    from graphwright.runtime.layers.flow import Flows
    from graphwright.runtime.layers.memory import Memories
    from graphwright.strategy import AdaptiveStrategyManager

__all__ = ["Shaping", "shaping_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shaping:
    """What makes the system prompt, where it is not the same in every run."""

    layers: Sequence[Layer]
    flows: Flows | None = None
    memories: Memories | None = None
    strategy: AdaptiveStrategyManager | None = None


def shaping_of(
    engine: PromptGraphEngine,
    *,
    flow: Any,
    memory: Mapping[str, Any] | None,
    adaptive: Any,
    context_engine: Any,
    compaction: Any,
    given: str,
    instructions: str,
) -> Shaping | None:
    """Return what the keywords of `build_agent` ask for; `None` where that is nothing.

    `instructions` are those of the agent, `given` what the user gave of them.

    Raises:
        ConfigurationError: one of the keywords does not fit.
    """
    layers: list[Layer] = []
    flows = strategy = memories = None
    if flow is not None:
        from graphwright.prompts.flows import as_flow_source
        from graphwright.runtime.layers.flow import Flows

        flows = Flows(as_flow_source(flow), given)
        layers.append(flows.layer)
    if memory is not None:
        from graphwright.runtime.layers.memory import Memories

        memories = Memories(instructions=instructions, **memory)
        layers.append(memories.layer)
    if adaptive is not None and adaptive is not False:
        from graphwright.runtime.layers.strategy import strategy_layer
        from graphwright.strategy import AdaptiveStrategyConfig, AdaptiveStrategyManager

        config = AdaptiveStrategyConfig.coerce(adaptive)
        if config is not None:
            strategy = AdaptiveStrategyManager(config, model=engine.model)
            layers.append(strategy_layer(strategy, lambda: engine.tools.names, instructions))
    if context_engine is not None:
        from graphwright.context import ContextEngine
        from graphwright.runtime.layers.context import context_layer

        if not isinstance(context_engine, ContextEngine):
            raise ConfigurationError(f"context_engine is {context_engine!r}; give a ContextEngine")
        # Innermost: what it shares out is what everything before it has left.
        layers.append(context_layer(context_engine, lambda: engine, instructions, compaction))
    return Shaping(layers=layers, flows=flows, memories=memories, strategy=strategy) if layers else None
