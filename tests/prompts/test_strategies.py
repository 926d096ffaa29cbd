"""Strategies and perspectives: what is told to the model, and what is taken out of its reply."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import PromptGraph, PromptGraphEngine, PromptNode
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.prompts import (
    Advisor,
    Analyst,
    ChainOfThought,
    Creative,
    Critic,
    Decompose,
    FewShot,
    Perspective,
    PlanAndSolve,
    Planner,
    Reviewer,
    SelfCritique,
    StrategyChain,
)
from graphwright.testing import ScriptedModel


@pytest.mark.parametrize(
    ("strategy", "told", "marker"),
    [
        (ChainOfThought(), "Think step by step before you answer", "Answer:"),
        (SelfCritique(), "Critique: name what is wrong, missing or unproven in the draft.", "Final answer:"),
        (PlanAndSolve(), "write a numbered plan of the steps that solve it", "Answer:"),
        (Decompose(), "Split the problem into the smaller questions", "Answer:"),
    ],
)
def test_each_strategy_tells_its_way_and_where_the_answer_goes(strategy: Any, told: str, marker: str) -> None:
    text = strategy.wrap("Be brief.", {})

    assert text.startswith("Be brief.\n\n")
    assert told in text
    assert text.endswith(f"on a new line that starts with `{marker}`.")
    assert strategy.parse(f"steps\n{marker} 42\nand more") == "42\nand more"


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("Answer: draft\nno\nAnswer: 42", "42"),
        ("thinking\n**Answer:** 42", "42"),
        ("## answer:\n42", "42"),
        ("The Answer: is not at the start of a line", None),
        ("no marker", None),
        ("Answer:", None),
    ],
)
def test_the_answer_follows_the_last_marker_at_the_start_of_a_line(raw: str, answer: str | None) -> None:
    assert ChainOfThought().parse(raw) == answer


def test_examples_are_shown_in_order_and_their_form_is_taken_off_the_reply() -> None:
    strategy = FewShot([("1+1?", "2"), ("2+2?", "4"), ("3+3?", "6")], max_examples=2)

    assert strategy.wrap("Add.") == (
        "Add.\n\nExamples of how to answer:\n\nQuestion: 1+1?\nAnswer: 2\n\nQuestion: 2+2?\nAnswer: 4"
    )
    assert strategy.parse("Answer: 8") == "8"
    assert strategy.parse("8") is None


def test_a_chain_tells_all_and_the_last_that_finds_an_answer_decides() -> None:
    chain = StrategyChain(FewShot([("q", "a")]), ChainOfThought(marker="Result:"))
    text = chain.wrap("x")

    assert text.index("Examples") < text.index("Result:")
    assert chain.parse("steps\nResult: 5") == "5"
    assert chain.parse("Answer: 6") == "6"
    assert chain.parse("7") is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: FewShot([]),
        lambda: FewShot(["ab"]),
        lambda: StrategyChain(),
        lambda: ChainOfThought(" "),
        lambda: Perspective(""),
    ],  # type: ignore[list-item]
)
def test_what_says_nothing_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    ("perspective", "told"),
    [
        (Analyst(), "separate facts from assumptions"),
        (Critic(), "search for errors, weak arguments and missing cases first"),
        (Advisor(), "recommend one with the reason"),
        (Creative(), "consider several unusual ideas"),
        (Planner(), "what each depends on"),
        (Reviewer(), "check the work against what was asked"),
        (Perspective("You are a pirate."), "You are a pirate."),
    ],
)
def test_a_perspective_comes_before_the_text(perspective: Perspective, told: str) -> None:
    text = perspective.apply("Be brief.", {})

    assert told in text
    assert text == f"{perspective.framing}\n\nBe brief."
    assert perspective.apply("") == perspective.framing


async def test_a_node_uses_them_and_says_so() -> None:
    seen: list[Any] = []

    class Keeps:
        def post_node(self, node: Any, result: Any, state: Any) -> None:
            seen.append(result)

    node = PromptNode("say", instructions="Count.", strategy=ChainOfThought(), perspective=Critic(), is_entry=True)
    model = ScriptedModel(["one, two\nAnswer: 2"])

    result = await PromptGraphEngine(PromptGraph(nodes=[node]), model, hooks=[Keeps()]).ainvoke("go")

    assert text_of(model.inputs[0][0]) == Critic().apply(ChainOfThought().wrap("Count."))
    assert (seen[0].output, seen[0].strategy_applied, seen[0].perspective_applied) == ("2", "ChainOfThought", "Critic")
    assert result.text == "one, two\nAnswer: 2"


async def test_strategies_and_perspectives_see_the_context_of_the_run() -> None:
    seen: list[Any] = []

    class Looks:
        def wrap(self, text: str, context: Any) -> str:
            seen.append(context["user"])
            return text

        def parse(self, raw: str, context: Any) -> None:
            seen.append(context["user"])

        def apply(self, text: str, context: Any) -> str:
            seen.append(context["user"])
            return text

    node = PromptNode("say", strategy=Looks(), perspective=Looks(), is_entry=True)

    await PromptGraphEngine(PromptGraph(nodes=[node]), ScriptedModel(["x"])).ainvoke("go", context={"user": "Ann"})

    assert seen == ["Ann", "Ann", "Ann"]
