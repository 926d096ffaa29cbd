"""End a run that has used its tokens or its money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from graphwright.engine.base import NodeContext
from graphwright.engine.edges import END
from graphwright.engine.hooks._memory import memory_of
from graphwright.engine.hooks._prices import check_price
from graphwright.engine.hooks._spending import Spending
from graphwright.exceptions import ConfigurationError, GraphBudgetExceededError
from graphwright.run_scope import current_run

if TYPE_CHECKING:
    from graphwright.engine.graph import PromptGraph
    from graphwright.engine.state import GraphState, NodeResult
    from graphwright.models.base import ChatModel

__all__ = ["BudgetHook"]

_MORE = "_budget_granted"
"""The context key of what was granted beyond the limits: tokens and US dollars."""


class BudgetHook:
    """Ends each run that goes over a number of tokens or of US dollars; every run has the whole budget.

    All model calls of a run count, whoever makes them: prompt nodes, routers, summaries, children, subgraphs. A run
    whose last node answered returns that answer, with the reason in its report; one without an answer raises
    `GraphBudgetExceededError`. The budget is looked at between nodes, so one visit can go over it.
    """

    stop_error = GraphBudgetExceededError
    """What a run raises that this hook ended before there was an answer."""

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        cost_per_1k_tokens: float | None = None,
        on_exceeded: Literal["stop", "ask"] = "stop",
    ) -> None:
        """Set the limits; `None` is no limit.

        With `on_exceeded="ask"` a run with a log pauses when it is over, with an interrupt of kind `budget`. The answer
        is `{"tokens": 5000}` or `{"usd": 0.5}` for that much more, True for as much again, or False to end the run.

        `cost_per_1k_tokens` is one rate for all tokens. Without it, each model's prices come from the table of
        `genai-prices` (the extra `prices`), which has separate ones for input, cached input and output.

        Raises:
            ConfigurationError: a limit is not above 0.
        """
        given = {"max_tokens": max_tokens, "max_cost_usd": max_cost_usd}
        for name, limit in given.items():
            if limit is not None and (isinstance(limit, bool) or not limit > 0):
                raise ConfigurationError(f"{name} is {limit!r}; give a limit above 0, or None for no limit")
        if cost_per_1k_tokens is not None and not cost_per_1k_tokens >= 0:
            raise ConfigurationError(f"cost_per_1k_tokens is {cost_per_1k_tokens!r}; give US dollars, or None")
        if on_exceeded not in ("stop", "ask"):
            raise ConfigurationError(f"on_exceeded is {on_exceeded!r}; use 'stop' or 'ask'")
        self.on_exceeded = on_exceeded
        self.max_tokens = max_tokens
        self.max_cost_usd = max_cost_usd
        self.cost_per_1k_tokens = cost_per_1k_tokens
        self.tokens_used = 0
        """Tokens of the run that was looked at last, as of then."""
        self.cost_used = 0.0
        """US dollars of the same run; 0 when neither a rate nor a cost limit was given."""

    @property
    def _needs_prices(self) -> bool:
        return self.max_cost_usd is not None and self.cost_per_1k_tokens is None

    def check_engine(self, graph: PromptGraph, model: ChatModel | None) -> None:
        """Make sure that every model of an engine has a price, where prices are needed.

        Raises:
            ConfigurationError: one has none, so a cost limit could not hold.
            MissingExtraError: the price table is not installed.
        """
        if not self._needs_prices:
            return
        if model is not None:
            check_price(model.name)
        for node in graph.nodes.values():
            if (name := _own_model(node)) is not None:
                check_price(name)

    async def pre_node(self, node: Any, state: GraphState) -> None:
        """End the run in place of a node when the budget is used up.

        Raises:
            ConfigurationError: the model of the node has no price.
        """
        if self._needs_prices and (model := _model_of(node)):
            check_price(model)
        spending = memory_of(self, state, Spending)
        spending.enter(node, state)
        reason = self._over(spending, state)
        if reason is not None and self.on_exceeded == "ask" and self._granted(reason, state):
            reason = self._over(spending, state)
        self._end(reason, state)

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        """Count what the node used, and end the run when it is over budget; `result.error` then says why."""
        spending = memory_of(self, state, Spending)
        spending.take(node, state, result, _model_of(node) if self._needs_prices else "")
        reason = self._over(spending, state)
        if self.on_exceeded == "ask" and _can_ask():
            return  # asked before the next node, where the run can pause with everything that was done kept
        self._end(reason, state)
        if reason is not None and result.error is None:
            result.error = reason

    def _granted(self, reason: str, state: GraphState) -> bool:
        """Ask for more, and return whether there is more. The run pauses here when nobody has answered yet."""
        if not _can_ask():
            return False
        from graphwright.engine.interrupt import BUDGET, ask_in

        run = current_run()
        assert isinstance(run, NodeContext)
        shown = {"reason": reason, "tokens": self.tokens_used, "usd": self.cost_used}
        answer = ask_in(run, [(BUDGET, BUDGET, shown, None)])[0]
        more_tokens, more_usd = state.context.get(_MORE, (0, 0.0))
        if answer is True:
            more_tokens += self.max_tokens or 0
            more_usd += self.max_cost_usd or 0.0
        elif isinstance(answer, Mapping):
            more_tokens += answer.get("tokens") or 0
            more_usd += answer.get("usd") or 0.0
        else:
            return False
        state.context[_MORE] = (more_tokens, more_usd)
        return True

    def _over(self, spending: Spending, state: GraphState) -> str | None:
        more_tokens, more_usd = state.context.get(_MORE, (0, 0.0))
        tokens = self.tokens_used = spending.tokens
        if self.cost_per_1k_tokens is not None:
            self.cost_used = tokens / 1000 * self.cost_per_1k_tokens
        elif self._needs_prices:
            self.cost_used = spending.cost(_run_model())
        cost = self.cost_used
        if self.max_tokens is not None and tokens > self.max_tokens + more_tokens:
            return f"Token budget exceeded: {tokens}/{self.max_tokens + more_tokens} tokens"
        if self.max_cost_usd is not None and cost > self.max_cost_usd + more_usd:
            return f"Cost budget exceeded: ${cost:.6g}/${self.max_cost_usd + more_usd:.6g}"
        return None

    def _end(self, reason: str | None, state: GraphState) -> None:
        if reason is not None:
            state._stop_reason = reason
            state.current_node = END


def _can_ask() -> bool:
    run = current_run()
    return isinstance(run, NodeContext) and run.journal is not None


def _own_model(node: Any) -> str | None:
    override = getattr(node, "model_override", None)
    if override is None or isinstance(override, str):
        return override
    from graphwright.models import as_model

    return as_model(override).name


def _run_model() -> str:
    model = getattr(current_run(), "model", None)
    return model.name if model is not None else ""


def _model_of(node: Any) -> str:
    return _own_model(node) or _run_model()
