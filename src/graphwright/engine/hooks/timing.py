"""Mark nodes that take longer than they may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState, NodeResult

__all__ = ["TimingHook"]


class TimingHook:
    """Writes a remark to `NodeResult.error` when one visit of a node took longer than its budget.

    The run goes on: over the node's `on_error` edge where it has one, else as usual, with the remark in the report.
    The time is the one that the engine measured for the visit, so runs at the same time never mix.
    """

    def __init__(self, default_budget_ms: float = 30000, per_node_budgets: Mapping[str, float] | None = None) -> None:
        """Allow `default_budget_ms` milliseconds a visit; `per_node_budgets` has other budgets by name of the node.

        Raises:
            ConfigurationError: a budget is not above 0.
        """
        self.default_budget_ms = default_budget_ms
        self.per_node_budgets = dict(per_node_budgets or {})
        for name, budget in [("default_budget_ms", default_budget_ms), *self.per_node_budgets.items()]:
            if isinstance(budget, bool) or not budget > 0:
                raise ConfigurationError(f"the time budget {name!r} is {budget!r}; give milliseconds above 0")

    async def pre_node(self, node: Any, state: GraphState) -> None:
        """Do nothing: the engine starts the clock."""

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        """Write the remark; the error of a node that failed is left as it is."""
        budget = self.per_node_budgets.get(node.name, self.default_budget_ms)
        if result.duration_ms > budget and result.error is None:
            result.error = f"node {node.name!r} took {result.duration_ms:.1f} ms, over its budget of {budget:g} ms"
