"""BudgetHook: every token of a run counts, and each run has its own budget."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from graphwright.engine import (
    GraphBudgetExceededError,
    GraphExecutionError,
    GraphState,
    NodeResult,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    build_react_graph,
    context_of,
    node,
)
from graphwright.engine._children import run_child
from graphwright.engine.base import BaseNode
from graphwright.engine.hooks import BudgetHook, _prices
from graphwright.engine.nodes import RouterNode, SubgraphNode
from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.models import call_model
from graphwright.models.base import ModelRequest
from graphwright.testing import ScriptedModel, calls, says
from graphwright.usage import Usage


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def spends(total: int, step: Any = None) -> Any:
    """Return a step that reports `total` tokens, half of them read."""
    return replace(step or says("done"), usage=Usage(total // 2, total - total // 2, total))


def row(*nodes: Any) -> PromptGraph:
    """Return a graph that runs `nodes` one after the other."""
    names = [node.name for node in nodes]
    graph = PromptGraph(nodes=nodes).set_entry(names[0])
    for one, two in pairwise(names):
        graph.always(one, two)
    return graph


def react(model: ScriptedModel, *hooks: Any) -> PromptGraphEngine:
    return PromptGraphEngine(build_react_graph([look]), model, hooks=hooks)


async def test_a_run_over_budget_in_a_tool_loop_raises_and_says_by_how_much() -> None:
    hook = BudgetHook(max_tokens=100)
    model = ScriptedModel([spends(60, calls("look", at="sea")), spends(60, calls("look", at="sky")), says("never")])
    model.strict = False
    engine = react(model, hook)

    with pytest.raises(GraphBudgetExceededError) as caught:
        await engine.ainvoke("go")

    assert caught.value.reason == "Token budget exceeded: 120/100 tokens"
    assert (caught.value.stopped_by, caught.value.pending_tools) == ("BudgetHook", ["look"])
    assert caught.value.report.error == "Token budget exceeded: 120/100 tokens"
    assert len(model.requests) == 2
    assert (hook.tokens_used, hook.cost_used) == (120, 0.0)


async def test_an_answer_that_goes_over_budget_is_returned_with_the_reason_in_the_report() -> None:
    result = await react(ScriptedModel([spends(150)]), BudgetHook(max_tokens=100)).ainvoke("go")

    assert result.text == "done"
    assert result.report.error == "Token budget exceeded: 150/100 tokens"
    assert result.report.total_iterations == 1


async def test_a_run_at_its_limit_is_not_over_it() -> None:
    result = await react(ScriptedModel([spends(100)]), BudgetHook(max_tokens=100)).ainvoke("go")

    assert result.report.error is None


async def test_runs_at_the_same_time_have_a_budget_each() -> None:
    hook = BudgetHook(max_tokens=100)
    small = [react(ScriptedModel([spends(40, calls("look", at="sea")), spends(40)]), hook) for _ in range(10)]
    big = react(ScriptedModel([spends(120, calls("look", at="sea"))]), hook)

    done = await asyncio.gather(*(engine.ainvoke("go") for engine in [*small, big]), return_exceptions=True)

    assert [result.report.error for result in done[:-1] if not isinstance(result, BaseException)] == [None] * 10
    assert isinstance(done[-1], GraphBudgetExceededError)


class Asks(BaseNode):
    """Makes a model call that is not in its result, as a summary or a router's second question may be."""

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        context = context_of(config)
        reply = await call_model(context.model, ModelRequest(messages=state.messages))
        context.usage.add(reply.usage)
        return NodeResult(self.name, output=reply.text)


async def test_a_call_that_no_result_tells_of_counts() -> None:
    graph = row(Asks("ask"), PromptNode("say"))
    engine = PromptGraphEngine(graph, ScriptedModel([spends(120)]), hooks=[BudgetHook(max_tokens=100)])

    with pytest.raises(GraphBudgetExceededError) as caught:
        await engine.ainvoke("go")

    assert caught.value.reason == "Token budget exceeded: 120/100 tokens"
    assert caught.value.report.nodes_visited == ["ask"]


class Around(BaseNode):
    """Runs a child and reports its tokens as its own."""

    def __init__(self, name: str, child: Any) -> None:
        super().__init__(name)
        self.child = child

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        inner = await run_child(self.child, state, context_of(config), config)
        return NodeResult(self.name, output=inner.output, error=inner.error, total_tokens=inner.total_tokens)


async def test_the_tokens_of_a_child_count_once_though_the_parent_reports_them_too() -> None:
    hook = BudgetHook(max_tokens=100)
    graph = row(Around("outer", PromptNode("inner")))

    result = await PromptGraphEngine(graph, ScriptedModel([spends(80)]), hooks=[hook]).ainvoke("go")

    assert result.report.error is None
    assert hook.tokens_used == 80


async def test_a_child_over_budget_ends_the_whole_run() -> None:
    graph = row(Around("outer", PromptNode("inner", tools=[look])), PromptNode("after"))
    model = ScriptedModel([spends(120, calls("look", at="sea"))])

    with pytest.raises(GraphBudgetExceededError, match="120/100"):
        await PromptGraphEngine(graph, model, hooks=[BudgetHook(max_tokens=100)]).ainvoke("go")


async def test_tokens_that_a_node_only_reports_count_as_well() -> None:
    @node("own")
    async def own() -> NodeResult:
        return NodeResult("own", output="text", total_tokens=120)

    hook = BudgetHook(max_tokens=100)
    with pytest.raises(GraphBudgetExceededError, match="120/100"):
        await PromptGraphEngine(row(own, PromptNode("say")), ScriptedModel([]), hooks=[hook]).ainvoke("go")

    assert hook.tokens_used == 120


async def test_a_rate_prices_all_tokens_and_needs_no_table() -> None:
    hook = BudgetHook(max_cost_usd=0.5, cost_per_1k_tokens=2.0)

    result = await react(ScriptedModel([spends(300)]), hook).ainvoke("go")

    assert hook.cost_used == pytest.approx(0.6)
    assert result.report.error == "Cost budget exceeded: $0.6/$0.5"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the price table: dollars for 1000 tokens read and written."""
    rates = {"cheap": (1.0, 2.0), "dear": (100.0, 200.0)}

    def price(usage: Any, *, model_ref: str, provider_id: str | None) -> Any:
        if model_ref not in rates or provider_id not in (None, "house"):
            raise LookupError(model_ref)
        read, written = rates[model_ref]
        paid = usage.input_tokens - 0.5 * getattr(usage, "cache_read_tokens", 0)
        return SimpleNamespace(total_price=(paid * read + usage.output_tokens * written) / 1000)

    module = SimpleNamespace(Usage=SimpleNamespace, calc_price=price)
    monkeypatch.setitem(sys.modules, "genai_prices", module)  # type: ignore[arg-type]
    _prices._look_up.cache_clear()
    yield
    _prices._look_up.cache_clear()


@pytest.mark.usefixtures("table")
async def test_the_table_prices_each_node_by_its_own_model() -> None:
    dear = ScriptedModel([spends(100)], name="house:dear")
    cheap = ScriptedModel([spends(200)], name="cheap")
    graph = row(PromptNode("one", model_override=dear), PromptNode("two"))
    hook = BudgetHook(max_cost_usd=100)

    await PromptGraphEngine(graph, cheap, hooks=[hook]).ainvoke("go")

    assert hook.cost_used == pytest.approx(0.05 * 100 + 0.05 * 200 + 0.1 * 1 + 0.1 * 2)


@pytest.mark.usefixtures("table")
async def test_a_cost_limit_ends_the_run() -> None:
    model = ScriptedModel([spends(1000, calls("look", at="sea"))], name="cheap")

    with pytest.raises(GraphBudgetExceededError, match=r"Cost budget exceeded: \$1.5/\$1"):
        await react(model, BudgetHook(max_cost_usd=1)).ainvoke("go")


@pytest.mark.usefixtures("table")
def test_cached_tokens_have_their_own_price() -> None:
    assert _prices.price_of("cheap", input_tokens=1000, output_tokens=0, cached_tokens=400) == pytest.approx(0.8)


@pytest.mark.usefixtures("table")
def test_an_engine_with_a_model_without_a_price_is_refused() -> None:
    unknown = ScriptedModel([], name="nobody")

    with pytest.raises(ConfigurationError, match="no price is known for the model 'nobody'"):
        react(unknown, BudgetHook(max_cost_usd=1))
    graph = row(PromptNode("one", model_override=unknown))
    with pytest.raises(ConfigurationError, match="nobody"):
        PromptGraphEngine(graph, ScriptedModel([], name="cheap"), hooks=[BudgetHook(max_cost_usd=1)])
    react(unknown, BudgetHook(max_cost_usd=1, cost_per_1k_tokens=0.1))
    react(unknown, BudgetHook(max_tokens=1))


@pytest.mark.usefixtures("table")
async def test_a_node_that_came_later_without_a_price_fails_before_its_model_is_asked() -> None:
    unknown = ScriptedModel([], name="nobody")
    graph = row(Around("outer", PromptNode("inner", model_override=unknown)))
    engine = PromptGraphEngine(graph, ScriptedModel([], name="cheap"), hooks=[BudgetHook(max_cost_usd=1)])

    with pytest.raises(GraphExecutionError, match="no price is known"):
        await engine.ainvoke("go")
    assert unknown.requests == []


def test_without_the_table_a_cost_limit_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)  # type: ignore[arg-type]
    _prices._look_up.cache_clear()

    with pytest.raises(MissingExtraError, match=r"graphwright\[prices\]"):
        react(ScriptedModel([]), BudgetHook(max_cost_usd=1))


@pytest.mark.may_skip("the table is an extra")
def test_the_real_table_knows_a_model_by_its_full_string() -> None:
    pytest.importorskip("genai_prices")
    _prices._look_up.cache_clear()

    plain = _prices.price_of("gpt-4o", input_tokens=1000, output_tokens=1000)

    assert plain > 0
    assert _prices.price_of("openai:gpt-4o", input_tokens=1000, output_tokens=1000) == plain


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": 0}, {"max_tokens": -1}, {"max_cost_usd": 0}, {"max_tokens": True}, {"cost_per_1k_tokens": -1}],
)
def test_a_limit_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        BudgetHook(**wrong)


async def test_the_question_of_a_router_and_the_calls_of_a_subgraph_count() -> None:
    inner = PromptGraph("inner", nodes=[PromptNode("say", is_entry=True)])
    nodes = [RouterNode("choose", routes={"a": "sub", "b": "sub"}), SubgraphNode("sub", subgraph=inner)]
    graph = PromptGraph(nodes=nodes).set_entry("choose")
    hook = BudgetHook(max_tokens=1000)
    model = ScriptedModel([spends(40, says("a")), spends(60)])

    await PromptGraphEngine(graph, model, hooks=[hook]).ainvoke("go")

    assert hook.tokens_used == 100


async def test_a_subgraph_over_budget_ends_the_run_around_it() -> None:
    inner = PromptGraph("inner", nodes=[PromptNode("say", tools=[look], is_entry=True)])
    graph = row(SubgraphNode("sub", subgraph=inner), PromptNode("after"))
    model = ScriptedModel([spends(120, calls("look", at="sea"))])

    with pytest.raises(GraphBudgetExceededError, match="120/100"):
        await PromptGraphEngine(graph, model, hooks=[BudgetHook(max_tokens=100)]).ainvoke("go")


class AsksThenRuns(Asks):
    """Makes a call of its own, then runs a child."""

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        await super().execute(state, config)
        return await run_child(PromptNode("inner"), state, context_of(config), config)


async def test_a_child_does_not_start_when_its_parent_has_used_the_budget() -> None:
    model = ScriptedModel([spends(120)])

    with pytest.raises(GraphBudgetExceededError, match="120/100"):
        await PromptGraphEngine(row(AsksThenRuns("outer")), model, hooks=[BudgetHook(max_tokens=100)]).ainvoke("go")

    assert len(model.requests) == 1
