"""What one run has spent, and on which model.

The run's own usage is the truth about how much: every model call adds to it. Which model used it is known when a
node ends, from the tokens of its result; what no node has claimed yet is priced as the run's own model.
"""

from __future__ import annotations

from typing import Any

from graphwright.engine.hooks._prices import price_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.run_scope import current_run
from graphwright.usage import Usage

__all__ = ["Spending"]


class Spending:
    """The tokens and the cost of one run, children included."""

    def __init__(self) -> None:
        self._claimed_in = self._claimed_out = self._claimed_cached = 0
        self._cost = 0.0
        self._reported = 0
        """Tokens that ended nodes reported of their own: those in the run's usage, and others."""
        self._unseen = 0
        """Tokens of nodes that report them and did not add them to the run's usage."""
        self._entered: dict[tuple[int, str], int] = {}

    @property
    def tokens(self) -> int:
        """Every token of the run so far."""
        return _total(_usage()) + self._unseen

    def cost(self, model: str) -> float:
        """Return the US dollars so far; what no node has claimed is priced as `model`."""
        usage = _usage()
        rest_in = max(0, (usage.input_tokens or 0) - self._claimed_in)
        rest_out = max(0, (usage.output_tokens or 0) - self._claimed_out)
        if not model or not (rest_in or rest_out):
            return self._cost
        cached = max(0, (usage.cached_tokens or 0) - self._claimed_cached)
        return self._cost + price_of(model, input_tokens=rest_in, output_tokens=rest_out, cached_tokens=cached)

    def enter(self, node: Any, state: GraphState) -> None:
        """Note that a visit begins: what its children report until it ends is not its own."""
        self._entered[id(state), node.name] = self._reported

    def take(self, node: Any, state: GraphState, result: NodeResult, model: str) -> None:
        """Count what a visit used; `model` is the one that it asked, or empty when the cost is of no interest."""
        usage = _usage()
        told = result.total_tokens or result.prompt_tokens + result.completion_tokens
        before = self._entered.pop((id(state), node.name), self._reported)
        own = max(0, told - (self._reported - before))
        rest = max(0, _total(usage) - (self._reported - self._unseen))
        self._unseen += max(0, own - rest)
        self._reported += own
        if model:
            self._claim(usage, result, model)

    def _claim(self, usage: Usage, result: NodeResult, model: str) -> None:
        taken_in = min(result.prompt_tokens, max(0, (usage.input_tokens or 0) - self._claimed_in))
        taken_out = min(result.completion_tokens, max(0, (usage.output_tokens or 0) - self._claimed_out))
        if not (taken_in or taken_out):
            return
        cached = min(taken_in, max(0, (usage.cached_tokens or 0) - self._claimed_cached))
        self._claimed_in += taken_in
        self._claimed_out += taken_out
        self._claimed_cached += cached
        self._cost += price_of(model, input_tokens=taken_in, output_tokens=taken_out, cached_tokens=cached)


def _usage() -> Usage:
    run = current_run()
    return run.usage if run is not None else Usage()


def _total(usage: Usage) -> int:
    return usage.total_tokens or (usage.input_tokens or 0) + (usage.output_tokens or 0)
