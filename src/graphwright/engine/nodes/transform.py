"""The node that works on the state without a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine.base import BaseNode
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["TransformNode"]


class TransformNode(BaseNode):
    """Calls `transform(state)`, sync or async, and keeps what it returns in the context under `output_key`."""

    node_type = "transform"
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        transform: Callable[[GraphState], Any] | None = None,
        output_key: str = "transform_result",
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well."""
        super().__init__(name, **base)
        if not callable(transform):
            raise ConfigurationError(
                f"transform of node {name!r} is {transform!r}; give a function that takes the state"
            )
        self.transform = transform
        self.output_key = output_key

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Call the function and store its value."""
        value = await call_maybe_async(self.transform, state)
        state.context[self.output_key] = value
        return NodeResult(self.name, "transform", output=value, raw_output=value if isinstance(value, str) else "")
