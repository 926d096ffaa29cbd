"""The graph behind `agent_pattern` and `node_pool`, and the limits that fit it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphwright.agent._options import GraphOptions
from graphwright.engine import prebuilts
from graphwright.engine.graph import PromptGraph
from graphwright.engine.nodes import AutonomousNode

__all__ = ["graph_of", "node_limit", "run_limit"]

_DEFAULT_RUN = 25
_DEFAULT_NODE = 25

_ONE_NODE: dict[str, tuple[Callable[..., PromptGraph], int]] = {
    "react": (prebuilts.build_react_graph, 15),
    "verify": (prebuilts.build_verify_graph, 6),
    "managed": (prebuilts.build_managed_graph, 30),
}
"""Patterns whose one node may run as often as the caller allows for the run, and its own limit."""

_STAGES: dict[str, Callable[..., PromptGraph]] = {
    "peoatr": prebuilts.build_peoatr_graph,
    "research": prebuilts.build_research_graph,
    "autonomous": prebuilts.build_autonomous_graph,
    "deliberate": prebuilts.build_deliberate_graph,
    "debate": prebuilts.build_debate_graph,
}


def graph_of(options: GraphOptions) -> PromptGraph:
    """Return the graph that the options name: a graph of the caller's own as it is, else a new one.

    Raises:
        FeatureOffError: the pattern needs something this release does not have.
    """
    pattern = options.agent_pattern
    if isinstance(pattern, PromptGraph):
        return pattern
    if options.node_pool is not None:
        return prebuilts.build_autonomous_graph(options.node_pool, output_schema=options.output_schema)
    if pattern == "code-action":
        return prebuilts.build_code_action_graph()
    given: dict[str, Any] = {"blocks": options.graph_blocks, "output_schema": options.output_schema}
    if pattern in _STAGES:
        return _STAGES[pattern](**given)
    build, own = _ONE_NODE[pattern or "react"]
    return build(max_node_iterations=max(own, options.iterations or 0), **given)


def run_limit(options: GraphOptions, graph: PromptGraph) -> int:
    """Return the most node executions of a run.

    Where the caller gives none, it lets a pattern use all the budgets of its stages, so that it reaches its answer.
    """
    if options.iterations is not None:
        return options.iterations
    if graph is options.agent_pattern:
        return _DEFAULT_RUN
    return max(_DEFAULT_RUN, sum(_budget(node) for node in graph.nodes.values()))


def node_limit(options: GraphOptions, graph: PromptGraph) -> int:
    """Return the engine's ceiling for one node: 25, or more where the caller or the pattern asks for more."""
    own: list[int] = [] if graph is options.agent_pattern else [node.max_iterations for node in graph.nodes.values()]
    return max(_DEFAULT_NODE, options.iterations or 0, *own)


def _budget(node: Any) -> int:
    """Return how many executions a node can make, the steps inside it among them."""
    if not isinstance(node, AutonomousNode):
        return int(node.max_iterations)
    # The answer may be one step more than the choice allows.
    return 1 + (node.max_steps + 1) * max(int(getattr(step, "max_iterations", 10)) for step in node.node_pool)
