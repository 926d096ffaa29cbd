"""The node that repeats another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine._children import run_child
from graphwright.engine.base import BaseNode, context_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError

__all__ = ["LoopNode"]


class LoopNode(BaseNode):
    """Runs `body_node` until `condition(state)` is true, and at most `max_loop_iterations` times.

    The condition, sync or async, is asked before each pass, so the body may run no time at all. The output of the
    latest pass is in the context under `loop_result`.
    """

    node_type = "loop"
    reenterable = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        body_node: BaseNode | None = None,
        condition: Callable[[GraphState], Any] | None = None,
        max_loop_iterations: int = 5,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well. Without a condition every pass is run."""
        super().__init__(name, **base)
        if isinstance(body_node, type) or not hasattr(body_node, "execute"):
            raise ConfigurationError(f"body_node of node {name!r} is {body_node!r}; give the node to repeat")
        if condition is not None and not callable(condition):
            raise ConfigurationError(f"condition {condition!r} of node {name!r} is not callable")
        if isinstance(max_loop_iterations, bool) or not isinstance(max_loop_iterations, int) or max_loop_iterations < 1:
            raise ConfigurationError(
                f"max_loop_iterations of node {name!r} is {max_loop_iterations!r}; give a whole number of at least 1"
            )
        self.body_node = body_node
        self.condition = condition
        self.max_loop_iterations = max_loop_iterations

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run the body until the condition is met."""
        context = context_of(config)
        result = NodeResult(self.name, "loop", transition_reason="loop used its passes")
        for _ in range(self.max_loop_iterations):
            if self.condition is not None and await call_maybe_async(self.condition, state):
                result.transition_reason = "loop condition met"
                break
            passed = await run_child(self.body_node, state, context, config, name=self.name)
            if context.spent.stop is not None:
                break
            if passed.error is not None:
                result.error = passed.error
                if passed.cause is not None:
                    result.blame(passed.cause)
                break
            state.context["loop_result"] = result.output = passed.output
            result.raw_output = passed.raw_output
        return result
