"""Processors: the exact keys and formats, and what a chain does with sync and async functions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from graphwright.engine import GraphExecutionError, GraphState, PromptGraph, PromptGraphEngine, PromptNode
from graphwright.engine.processors import (
    chain_postprocessors,
    chain_preprocessors,
    confidence_scorer,
    context_enricher,
    input_validator,
    json_extractor,
    output_truncator,
    state_summarizer,
    state_writer,
)
from graphwright.exceptions import ConfigurationError
from graphwright.testing import ScriptedModel


def state_with(**context: Any) -> GraphState:
    return GraphState(context=context)


def test_the_enricher_writes_when_how_far_and_how_many_calls() -> None:
    state = GraphState(iteration=3, tool_calls_made=2)

    assert context_enricher()(state, {}) is state

    assert datetime.fromisoformat(state.context.pop("_timestamp")).utcoffset() is not None
    assert state.context == {"_iteration": 3, "_tools_called": 2}


def test_parts_of_the_enricher_can_be_left_out() -> None:
    assert context_enricher(include_timestamp=False, include_iteration=False)(state_with(), {}).context == {}


def test_the_summarizer_cuts_long_texts_once_and_nothing_else() -> None:
    state = state_with(long="x" * 30, short="y" * 10, data=["z" * 30])
    shorten = state_summarizer(max_context_chars=10)

    shorten(shorten(state, {}), {})

    assert state.context == {"long": "x" * 10 + "... (truncated)", "short": "y" * 10, "data": ["z" * 30]}


def test_the_validator_names_what_is_missing() -> None:
    validate = input_validator(required_keys=["a", "b", "c"])

    with pytest.raises(ValueError, match="the context has no 'b', 'c'"):
        validate(state_with(a=None), {})
    assert validate(state_with(a=0, b=0, c=0), {}).context == {"a": 0, "b": 0, "c": 0}
    with pytest.raises(ConfigurationError, match="give a list"):
        input_validator(required_keys="topic")


async def test_a_node_whose_validator_refuses_asks_no_model() -> None:
    model = ScriptedModel([])
    node = PromptNode("say", preprocessor=input_validator(required_keys=["topic"]), is_entry=True)

    with pytest.raises(GraphExecutionError, match="the context has no 'topic'"):
        await PromptGraphEngine(PromptGraph(nodes=[node]), model).ainvoke("go")
    assert model.requests == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('say "}" then {"a":"}"}', {"a": "}"}),
        ('Here:\n```json\n{"a": {"b": [1]}}\n```\nand {"c": 2}', {"a": {"b": [1]}}),
        ('[1] is a note, {"a": 1} the answer', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ("no json {here}", "no json {here}"),
        (7, 7),
    ],
)
def test_the_extractor_finds_the_first_object_whatever_is_in_its_strings(text: Any, found: Any) -> None:
    assert json_extractor()(text, state_with(), {}) == found


def test_the_extractor_keeps_the_keys_that_are_wanted() -> None:
    extract = json_extractor(keys=["b", "none"])

    assert extract('{"a": 1, "b": 2}', state_with(), {}) == {"b": 2}
    assert extract({"a": 1, "b": 2}, state_with(), {}) == {"b": 2}


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("It is so.", 1.0),
        ("Maybe " + "word " * 19, 0.5),
        ("I think " + "word " * 18, 0.5),
        ("I\u2019m not sure " + "word " * 17, 0.5),
        ("Perhaps, maybe.", 0.1),
        ("Mightily likelihood " + "word " * 18, 1.0),
        ("", 1.0),
    ],
)
def test_the_score_falls_with_the_share_of_hedges(text: str, confidence: float) -> None:
    assert confidence_scorer()(text, state_with(), {}) == {"text": text, "_confidence": pytest.approx(confidence)}


def test_a_dict_gets_the_score_and_anything_else_stays() -> None:
    score, given = confidence_scorer(), {"answer": "maybe so"}

    assert score(given, state_with(), {}) == {"answer": "maybe so", "_confidence": 0.1}
    assert given == {"answer": "maybe so"}
    assert score([1], state_with(), {}) == [1]


def test_the_writer_copies_the_fields_that_are_there() -> None:
    state, output = state_with(score="old"), {"answer": "yes", "other": 1}

    assert state_writer(fields={"answer": "final_answer", "confidence": "score"})(output, state, {}) is output
    assert state.context == {"score": "old", "final_answer": "yes"}


def test_the_truncator_adds_three_dots_to_what_it_cuts() -> None:
    truncate = output_truncator(max_chars=4)

    assert [truncate(value, state_with(), {}) for value in ("12345", "1234", 12345)] == ["1234...", "1234", 12345]


def test_sync_chains_stay_sync_run_in_order_and_none_means_unchanged() -> None:
    seen: list[str] = []
    chain = chain_preprocessors(lambda state, config: seen.append("one"), lambda state, config: seen.append("two"))
    state = state_with()

    assert chain(state, {}) is state
    assert seen == ["one", "two"]
    assert (
        chain_postprocessors(json_extractor(), lambda out, state, config: None, lambda out, state, config: out["a"])(
            'x {"a": 5}', state, {}
        )
        == 5
    )


async def test_a_chain_is_awaited_from_its_first_async_function_on() -> None:
    async def doubled(output: str, state: GraphState, config: Any) -> str:
        return output * 2

    async def nothing(output: str, state: GraphState, config: Any) -> None:
        return None

    chain = chain_postprocessors(output_truncator(max_chars=1), doubled, output_truncator(max_chars=3), nothing)

    assert await chain("abc", state_with(), {}) == "a....."
    assert chain_postprocessors()("same", state_with(), {}) == "same"


def test_a_chain_of_what_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'upper'"):
        chain_postprocessors("upper")  # type: ignore[arg-type]


async def test_processors_work_in_a_node() -> None:
    node = PromptNode(
        "say",
        is_entry=True,
        preprocessor=chain_preprocessors(context_enricher(), state_summarizer()),
        postprocessor=chain_postprocessors(json_extractor(), state_writer(fields={"answer": "final"})),
    )

    result = await PromptGraphEngine(PromptGraph(nodes=[node]), ScriptedModel(['so: {"answer": "42"}'])).ainvoke("go")

    assert result["context"]["final"] == "42"
    assert result["context"]["_iteration"] == 1
