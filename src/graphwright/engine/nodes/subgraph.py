"""The node that runs a whole graph."""

from __future__ import annotations

from typing import Any

from graphwright.engine import _topology
from graphwright.engine._children import run_child_graph, take_figures
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.graph import PromptGraph
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError, GraphInvalidError

__all__ = ["SubgraphNode"]


class SubgraphNode(BaseNode):
    """Runs a graph to its end as one step, inside the run: with its hooks, budgets, limits and events.

    With `inherit_state` the graph works on the state of the run: messages, context, plan and observations. Without,
    it starts with nothing but the question, and only its answer is added to the conversation. An error inside keeps
    its class.
    """

    node_type = "subgraph"
    reenterable = True
    may_mutate = False

    def __init__(self, name: str, *, subgraph: Any = None, inherit_state: bool = True, **base: Any) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well."""
        super().__init__(name, **base)
        if not isinstance(subgraph, PromptGraph):
            raise ConfigurationError(f"subgraph of node {name!r} is {subgraph!r}; give a PromptGraph")
        self.subgraph = subgraph
        self.inherit_state = inherit_state

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run the graph to its end."""
        context = context_of(config)
        self._check(context)
        if self.inherit_state:
            ended = await run_child_graph(self.subgraph, state, context, config, name=self.name)
            added: list[Any] = []
        else:
            fresh = GraphState.of_run([state.turn_question], {}, state.graph)
            try:
                ended = await run_child_graph(self.subgraph, fresh, context, config, name=self.name)
            finally:
                take_figures(state, fresh)
            added = _answer_of(ended["messages"])
            state.messages.extend(added)
        result = NodeResult(self.name, "subgraph", messages_added=added)
        if ended.text:
            result.output = {"messages": list(ended["messages"]), "output": ended.output}
        result.raw_output = ended.text
        state.context[f"{self.name}_output"] = ended.text or ended.output
        return result

    def _check(self, context: NodeContext) -> None:
        key = (self, "checked")
        if context.prepared.get(key) is self.subgraph._version:
            return
        problems = _topology.errors(self.subgraph)
        if problems:
            raise GraphInvalidError(self.subgraph.name, problems)
        context.prepared[key] = self.subgraph._version


def _answer_of(messages: list[Any]) -> list[Any]:
    """Return the assistant messages that close the conversation."""
    start = len(messages)
    while start > 0 and messages[start - 1].type == "ai" and not messages[start - 1].tool_calls:
        start -= 1
    return messages[start:]
