"""GuardNode, and the forms that a guard can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from graphwright.engine import GraphExecutionError, GraphState, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.nodes import GuardNode
from graphwright.exceptions import ConfigurationError
from graphwright.messages import HumanMessage, text_of
from graphwright.testing import ScriptedModel


@dataclass
class Report:
    passed: bool
    reason: str = ""


class SyncGuard:
    def check_output(self, text: str) -> Report:
        return Report("bad" not in text, "it says bad")


class AsyncGuard:
    async def check_output(self, text: str) -> Report:
        return Report("bad" not in text, "it says bad")


class CheckGuard:
    async def check(self, value: Any) -> bool:
        return "bad" not in value


class RaisingGuard:
    async def check_output(self, text: str) -> str:
        if "bad" in text:
            raise ValueError("it says bad")
        return text


def plain(text: str) -> bool:
    return "bad" not in text


async def awaited(text: str) -> bool:
    return "bad" not in text


def with_reason(text: str) -> tuple[bool, str]:
    return "bad" not in text, "it says bad"


EVERY_FORM = [SyncGuard(), AsyncGuard(), CheckGuard(), RaisingGuard(), plain, awaited, with_reason]


def guarded(guard: Any, **options: Any) -> PromptGraph:
    @node("passed", default_next="__end__")
    async def passed(state: GraphState) -> str:
        return "passed"

    @node("failed", default_next="__end__")
    async def failed(state: GraphState) -> str:
        return "failed"

    options.setdefault("on_pass", "passed")
    return PromptGraph(nodes=[GuardNode("g", guards=[guard], is_entry=True, **options), passed, failed])


@pytest.mark.parametrize("guard", EVERY_FORM, ids=lambda guard: getattr(guard, "__name__", type(guard).__name__))
async def test_every_form_of_guard_decides(guard: Any) -> None:
    engine = PromptGraphEngine(guarded(guard, on_fail="failed"))
    good, bad = await engine.ainvoke("all good"), await engine.ainvoke("all bad")
    assert (good.text, good.report.guards_passed, good.report.guards_failed) == ("passed", 1, 0)
    assert (bad.text, bad.report.guards_passed, bad.report.guards_failed) == ("failed", 0, 1)


@pytest.mark.parametrize("guard", EVERY_FORM, ids=lambda guard: getattr(guard, "__name__", type(guard).__name__))
async def test_every_form_of_guard_decides_over_an_answer_too(guard: Any) -> None:
    graph = PromptGraph(nodes=[PromptNode("p", guards=[guard], is_entry=True)])
    assert (await PromptGraphEngine(graph, ScriptedModel(["good"])).ainvoke("?")).text == "good"
    with pytest.raises(GraphExecutionError, match="refused the answer"):
        await PromptGraphEngine(graph, ScriptedModel(["bad"])).ainvoke("?")


async def test_a_failing_guard_without_on_fail_fails_the_run() -> None:
    with pytest.raises(GraphExecutionError, match="guard 'SyncGuard' refused: it says bad") as caught:
        await PromptGraphEngine(guarded(SyncGuard())).ainvoke("all bad")
    assert caught.value.node_name == "g"
    assert caught.value.report is not None
    assert caught.value.report.nodes_visited == ["g"]


async def test_a_failing_guard_without_on_fail_takes_the_guards_edge() -> None:
    graph = guarded(plain).on_guard_fail("g", "failed")
    assert (await PromptGraphEngine(graph).ainvoke("all bad")).text == "failed"


async def test_the_value_under_target_key_is_checked_and_a_missing_one_is_refused() -> None:
    engine = PromptGraphEngine(guarded(SyncGuard(), target_key="draft", on_fail="failed"))
    assert (await engine.ainvoke("all bad", context={"draft": {"text": "fine"}})).text == "passed"
    assert (await engine.ainvoke("fine", context={"draft": {"text": "bad"}})).text == "failed"
    with pytest.raises(GraphExecutionError, match="no key 'draft' to check"):
        await PromptGraphEngine(guarded(SyncGuard(), target_key="draft")).ainvoke("fine")


async def test_a_text_that_a_guard_returns_replaces_the_checked_one() -> None:
    def redact(text: str) -> str:
        return text.replace("4711", "[pin]")

    mine = HumanMessage(content="my pin is 4711")
    result = await PromptGraphEngine(guarded(redact)).ainvoke([mine])
    assert text_of(result.messages[0]) == "my pin is [pin]"
    assert mine.content == "my pin is 4711"
    result = await PromptGraphEngine(guarded(redact, target_key="k")).ainvoke("x", context={"k": "4711"})
    assert result.context["k"] == "[pin]"


async def test_all_guards_run_and_all_reasons_are_told() -> None:
    graph = PromptGraph(nodes=[GuardNode("g", guards=[plain, SyncGuard(), len], is_entry=True)])
    with pytest.raises(GraphExecutionError, match="guard 'plain' refused; guard 'SyncGuard' refused: it says bad"):
        await PromptGraphEngine(graph).ainvoke("bad")


async def test_with_on_pass_at_the_end_an_edge_of_the_node_comes_first() -> None:
    graph = guarded(plain, on_pass="__end__").always("g", "passed")
    assert (await PromptGraphEngine(graph).ainvoke("good")).text == "passed"


def test_validate_sees_where_the_verdicts_lead() -> None:
    assert guarded(plain, on_fail="failed").validate() == []
    assert "on_fail of node 'g' leads to 'gone', which is no node" in guarded(plain, on_fail="gone").validate()


@pytest.mark.parametrize("guards", [None, [], ["no guard"], [SyncGuard]])
def test_what_is_no_guard_is_refused_when_the_node_is_made(guards: Any) -> None:
    with pytest.raises(ConfigurationError, match="guard"):
        GuardNode("g", guards=guards)
