"""The node that runs others side by side and merges what they did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine._children import copy_state, run_child, take_figures, together
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.nodes._merging import Child, as_text, concatenated, failure_of, merge_states, outputs_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import Interrupted
from graphwright.messages import AIMessage

__all__ = ["ParallelNode"]

_STRATEGIES = ("concatenate", "dict", "custom")


class ParallelNode(BaseNode):
    """Runs child nodes at the same time, each with its whole tool loop on its own copy of the state.

    What they did comes back in the order of `nodes`: context, observations, their tool exchanges, and one reply with
    the merged output. The output is their texts (`"concatenate"`), `{name: output}` (`"dict"`), or what
    `merge_fn({name: NodeResult})` returns (`"custom"`). A child that failed is named in the output and makes the node
    fail, unless `merge_fn` takes it.
    """

    node_type = "parallel"
    reenterable = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        nodes: Iterable[BaseNode] | None = None,
        merge_strategy: str = "concatenate",
        merge_fn: Callable[[dict[str, NodeResult]], Any] | None = None,
        max_concurrency: int = 8,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well. `max_concurrency` children run at once."""
        super().__init__(name, **base)
        self.nodes = list(nodes or ())
        self.merge_strategy = merge_strategy
        self.merge_fn = merge_fn
        self.max_concurrency = max_concurrency
        names = [getattr(child, "name", None) for child in self.nodes]
        if not names or None in names or len(set(names)) < len(names):
            raise ConfigurationError(f"nodes of node {name!r} are {names!r}; give at least one, each with its own name")
        if merge_strategy not in _STRATEGIES:
            raise ConfigurationError(
                f"merge_strategy {merge_strategy!r} of node {name!r} is unknown; use one of {', '.join(_STRATEGIES)}"
            )
        if (merge_strategy == "custom") != callable(merge_fn):
            raise ConfigurationError(
                f"node {name!r} has merge_strategy={merge_strategy!r} and merge_fn={merge_fn!r}; "
                "a merge function and 'custom' go together"
            )
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
            raise ConfigurationError(
                f"max_concurrency of node {name!r} is {max_concurrency!r}; give a whole number of at least 1"
            )

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run every child and merge."""
        context = context_of(config)
        children = await self._run_all(state, context, config)
        result = NodeResult(self.name, "parallel")
        added, replied = merge_states(state, children, parent=self.name)
        result.messages_added = added
        if context.spent.stop is not None:
            return result
        await self._merge(children, result)
        if result.error is None and replied and (text := result.raw_output):
            result.messages_added = [*added, AIMessage(content=text)]
        state.context[f"{self.name}_output"] = result.output
        return result

    async def _run_all(self, state: GraphState, context: NodeContext, config: Any) -> list[Child]:
        slots = asyncio.Semaphore(self.max_concurrency)

        async def run(child: BaseNode, twin: GraphState) -> Child:
            async with slots:
                return Child(child.name, twin, await run_child(child, twin, context, config, name=self.name))

        # Every copy is made before the first child runs.
        copies = [copy_state(state) for _ in self.nodes]
        try:
            return await together(run(child, twin) for child, twin in zip(self.nodes, copies, strict=True))
        except Interrupted:
            raise
        except BaseException:
            for twin in copies:
                take_figures(state, twin)
            raise

    async def _merge(self, children: list[Child], result: NodeResult) -> None:
        if self.merge_fn is not None:
            result.output = await call_maybe_async(self.merge_fn, {child.name: child.result for child in children})
        else:
            result.error, cause = failure_of(children)
            if cause is not None:
                result.blame(cause)
            result.output = outputs_of(children) if self.merge_strategy == "dict" else concatenated(children)
        result.raw_output = as_text(result.output)
