"""The node that sends each of several nodes its own question, at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphwright.engine._children import copy_state, run_child, together
from graphwright.engine.base import BaseNode, NodeContext
from graphwright.engine.nodes._merging import Child
from graphwright.engine.nodes.parallel import ParallelNode
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.messages import HumanMessage, as_message

__all__ = ["FanOutNode"]

_QUESTION = "question"
_MISSING = object()


class FanOutNode(ParallelNode):
    """Runs branches at the same time, each a node with its own question and context values.

    A branch is `(node, overrides)`. The overrides are context values that only this branch sees; `question` among
    them, or a text in place of the dict, is what the branch is asked, and `messages` replaces its conversation. The
    same node can be in several branches: the second is called `name_2` in the output. All else is as in
    `ParallelNode`: copies of the state, merging, and what becomes of failures.
    """

    node_type = "fan_out"

    def __init__(
        self,
        name: str,
        branches: Iterable[tuple[BaseNode, Mapping[str, Any] | str | None]] | None = None,
        *,
        merge_strategy: str = "concatenate",
        merge_fn: Callable[[dict[str, NodeResult]], Any] | None = None,
        max_concurrency: int = 8,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well. `max_concurrency` branches run at once.

        Raises:
            ConfigurationError: a branch is no `(node, overrides)`, or another value does not fit.
        """
        self.branches = [_branch(name, branch) for branch in branches or ()]
        nodes = {node.name: node for node, _ in self.branches}
        super().__init__(
            name,
            nodes=nodes.values(),
            merge_strategy=merge_strategy,
            merge_fn=merge_fn,
            max_concurrency=max_concurrency,
            **base,
        )

    async def _run_all(self, state: GraphState, context: NodeContext, config: Any) -> list[Child]:
        slots = asyncio.Semaphore(self.max_concurrency)

        async def run(name: str, node: BaseNode, twin: GraphState, overrides: dict[str, Any]) -> Child:
            asked = _override(twin, overrides)
            async with slots:
                result = await run_child(node, twin, context, config, name=self.name)
            _take_back(twin, state, overrides, asked)
            return Child(name, twin, result)

        copies = [copy_state(state) for _ in self.branches]
        return await together(
            run(name, node, twin, overrides)
            for name, (node, overrides), twin in zip(self._names(), self.branches, copies, strict=True)
        )

    def _names(self) -> list[str]:
        names: list[str] = []
        for node, _ in self.branches:
            name, count = node.name, 1
            while name in names:
                count += 1
                name = f"{node.name}_{count}"
            names.append(name)
        return names


def _branch(name: str, branch: Any) -> tuple[BaseNode, dict[str, Any]]:
    node, overrides = branch if isinstance(branch, (tuple, list)) and len(branch) == 2 else (None, None)
    if isinstance(overrides, str):
        overrides = {_QUESTION: overrides}
    if node is None or not callable(getattr(node, "execute", None)) or not isinstance(overrides, (Mapping, type(None))):
        raise ConfigurationError(
            f"branch {branch!r} of node {name!r} is no (node, overrides); give a node with a dict or a question"
        )
    return node, dict(overrides or {})


def _override(twin: GraphState, overrides: dict[str, Any]) -> list[Any]:
    """Write the overrides into the copy; return the messages that only this branch sees."""
    asked: list[Any] = []
    values = dict(overrides)
    if "messages" in values:
        asked = [as_message(message) for message in values.pop("messages")]
        twin.messages = list(asked)
    twin.context.update(values)
    question = values.get(_QUESTION)
    if isinstance(question, str) and question:
        asked.append(HumanMessage(content=question))
        twin.messages.append(asked[-1])
    if asked:
        twin._checked = 0
        twin.turn_question = next((message for message in reversed(asked) if message.type == "human"), None)
    return asked


def _take_back(twin: GraphState, state: GraphState, overrides: dict[str, Any], asked: list[Any]) -> None:
    """Take out what only the branch was to see, so that it is not merged as something that the branch wrote."""
    gone = {id(message) for message in asked}
    twin.messages = [message for message in twin.messages if id(message) not in gone]
    for key, value in overrides.items():
        if key in twin.context and twin.context[key] is value:
            del twin.context[key]
            if (earlier := state.context.get(key, _MISSING)) is not _MISSING:
                twin.context[key] = earlier
