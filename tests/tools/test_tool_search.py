"""Finding the tools that a request is about, and the settings of it."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.tools import OptimizationLevel, ToolOptimizationConfig, ToolSelector, ToolSet
from graphwright.tools.base import Tool
from graphwright.tools.optimize.words import words_of
from graphwright.types import ToolSpec

ROOT = Path(__file__).parents[2]


class Listed(Tool):
    def __init__(self, name: str, description: str = "", source: str = "", **properties: Any) -> None:
        self.spec = ToolSpec(
            name=name, description=description, parameters={"type": "object", "properties": properties}
        )
        self.source = source

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        return args


class Vectors:
    """Embeds a text as how often it has each of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[float(text.lower().count(word)) for word in self.words] for text in texts]


def semantic(**fields: Any) -> ToolSelector:
    return ToolSelector(ToolOptimizationConfig(level="semantic", **fields))


OFFICE = ToolSet(
    [
        Listed("sendEmail", "Send a mail to somebody.", to={"type": "string"}),
        Listed("create_event", "Put something into the calendar."),
        Listed("list_invoices", "List what customers owe.", "billing"),
        Listed("delete_invoice", "Remove one.", "billing", invoice_number={"type": "string"}),
        Listed("translate", "Translate a text.", language={"enum": ["German", "French"]}),
    ]
)


@pytest.mark.parametrize(
    ("request_text", "best"),
    [
        ("write an email", "sendEmail"),
        ("erase an invoice", "delete_invoice"),
        ("put our meeting into my calendar", "create_event"),
        ("say it in french", "translate"),
        ("enumerate what there is in billing", "list_invoices"),
    ],
)
async def test_the_tool_that_a_request_is_about_comes_first(request_text: str, best: str) -> None:
    assert (await semantic().ranked(request_text, OFFICE))[0] == best


async def test_a_greeting_is_about_no_tool() -> None:
    chosen = await semantic().select("Hello, how are you today?", OFFICE)

    assert chosen.names == ()


async def test_without_a_way_to_ask_for_more_there_are_always_some() -> None:
    chosen = await semantic(always_include_fallback=False, semantic_top_k=2).select("Hello", OFFICE)

    assert chosen.names == ("sendEmail", "create_event")


async def test_preserved_tools_come_first_and_the_others_in_the_order_of_the_set() -> None:
    selector = semantic(semantic_top_k=2, preserve_tools={"translate"})

    one = await selector.select("delete the invoice, then list the invoices", OFFICE)
    other = await selector.select("list the invoices, then delete the invoice", OFFICE, keep=["sendEmail"])

    assert one.names == ("translate", "list_invoices", "delete_invoice")
    assert other.names == ("translate", "sendEmail", "list_invoices", "delete_invoice")


async def test_earlier_turns_say_what_a_short_answer_means() -> None:
    selector = semantic(semantic_top_k=1)

    alone = await selector.select("Yes, go ahead.", OFFICE)
    with_context = await selector.select("Yes, go ahead.", OFFICE, earlier=["Translate the letter"])
    changed = await selector.select("Now send an email.", OFFICE, earlier=["Translate the letter"])

    assert (alone.names, with_context.names, changed.names) == ((), ("translate",), ("sendEmail",))


async def test_more_tools_are_only_new_ones() -> None:
    found = await semantic(semantic_top_k=2).more("invoice", OFFICE, {"list_invoices"})

    assert found.names == ("delete_invoice",)


async def test_an_embedder_finds_what_shares_no_word_and_is_asked_once_for_each_tool() -> None:
    vectors = Vectors("translate", "sprechen")
    vectors.words = ("translate", "calendar")
    selector = semantic(embedding_model=vectors, semantic_top_k=1)

    class Meaning(Vectors):
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return await super().embed([text.replace("Termin", "calendar") for text in texts])

    selector = semantic(embedding_model=(meaning := Meaning("translate", "calendar")), semantic_top_k=1)
    first = await selector.select("Mach einen Termin", OFFICE)
    second = await selector.select("Noch einen Termin", OFFICE)

    assert (first.names, second.names) == (("create_event",), ("create_event",))
    assert [len(texts) for texts in meaning.asked] == [5, 1, 1]


async def test_an_embedder_that_fails_leaves_the_search_by_words(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return []

    with caplog.at_level(logging.ERROR):
        ranked = await semantic(embedding_model=Broken()).ranked("write an email", OFFICE)

    assert ranked == ["sendEmail"]
    assert "the embedder failed; tools are searched by words" in caplog.text


async def test_a_tool_whose_text_changes_under_the_same_name_is_searched_anew() -> None:
    selector = semantic()
    before = ToolSet([Listed("helper", "Send a mail."), Listed("other", "Open a door.")])
    after = ToolSet([Listed("helper", "Open a door."), Listed("other", "Send a mail.")])

    assert [await selector.ranked("a mail", each) for each in (before, after)] == [["helper"], ["other"]]
    assert [spec.description for spec in selector.offer(after)] == ["Open a door.", "Send a mail."]


def test_a_preserved_tool_is_told_in_full() -> None:
    long = Listed("pay", "Pay a bill. " * 40)
    selector = semantic(preserve_tools=["pay"])

    assert selector.offer([long]) == (long.spec,)
    assert len(semantic().offer([long])[0].description) <= 100


def test_words_come_out_of_names_and_without_their_endings() -> None:
    assert list(words_of("listOpenPullRequests get_HTTPServers the files, 42")) == [
        "list", "open", "pull", "request", "http", "server", "fil",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "level", "length", "selects"),
    [
        (True, "minimal", 200, False),
        ("minimal", "minimal", 200, False),
        ("standard", "standard", 150, False),
        ("semantic", "semantic", 100, True),
        (OptimizationLevel.SEMANTIC, "semantic", 100, True),
        ({"level": "standard", "max_description_length": 80}, "standard", 80, False),
        (ToolOptimizationConfig(semantic_selection=True), "minimal", 200, True),
    ],
)
def test_every_form_of_the_setting_means_what_the_reference_says(
    value: Any, level: str, length: int, selects: bool
) -> None:
    config = ToolOptimizationConfig.coerce(value)

    assert config is not None
    assert (config.level, config.max_description_length, config.semantic_selection) == (level, length, selects)
    assert (config.semantic_top_k, config.semantic_context_turns, config.always_include_fallback) == (8, 3, True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("maximal", "optimize_tools has no level 'maximal'; give True, 'minimal', 'standard', 'semantic'"),
        (3, "optimize_tools is 3; give True"),
        ({"top_k": 3}, "optimize_tools has no field 'top_k'; its fields are level, minify_schema"),
        ({"semantic_top_k": 0}, "semantic_top_k is 0; give a whole number of at least 1"),
        ({"max_description_length": "long"}, "max_description_length is 'long'; give a whole number of at least 20"),
        ({"minify_schema": "yes"}, "minify_schema is 'yes'; give True, False or None"),
        ({"preserve_tools": "pay"}, "preserve_tools is 'pay'; give a set of tool names"),
        ({"embedding_model": "all-MiniLM-L6-v2"}, "embedding_model is 'all-MiniLM-L6-v2'; give an object with"),
    ],
)
def test_a_bad_setting_says_what_is_wrong_and_what_to_give(value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ToolOptimizationConfig.coerce(value)

    assert str(caught.value).startswith(message)


def bench() -> Any:
    spec = importlib.util.spec_from_file_location("bench_tool_search", ROOT / "bench" / "tool_search.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_right_tool_of_342_is_among_the_first_eight_for_most_requests() -> None:
    module = bench()
    tools = module.listed_tools()
    requests = json.loads((ROOT / "tests/data/tool_requests.json").read_text(encoding="utf-8"))["requests"]
    tuning = [each for each in requests if each["half"] == "tuning"]

    missed = await module.misses(tuning, tools, None)

    assert (len(tools), len(tuning)) == (342, 30)
    assert len(missed) <= 4, "\n".join(missed)


async def test_a_greeting_among_342_tools_costs_less_than_a_tenth_of_their_tokens() -> None:
    module = bench()

    before, after = await module.tokens_at("hello", module.listed_tools())

    assert after < before / 10
