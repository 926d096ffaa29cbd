"""The context engine: layers, their budget, the window, and what is told of cuts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.context import ContextEngine, window_of
from graphwright.context.engine import UNKNOWN_WINDOW
from graphwright.exceptions import ConfigurationError
from graphwright.testing import ScriptedModel
from graphwright.tools import as_tools


def words(text: str) -> int:
    return len(text.split())


def engine(window: int, **options: Any) -> ContextEngine:
    return ContextEngine(model_context_window=window, response_reserve=0, tokenizer=words, **options)


async def test_layers_stand_in_their_order_and_all_are_shown_where_there_is_room() -> None:
    context = engine(100)
    context.add_layer("who", content="Ann", priority=1)
    context.add_layer("day", content=lambda seen: f"today is {seen['day']}", priority=9)
    context.add_layer("nothing")

    async def news(seen: Mapping[str, Any]) -> str:
        return "no news"

    context.add_layer("news", content=news)

    made = await context.assemble({"day": "friday"}, instructions="be brief")

    assert made.text == "who:\nAnn\n\nday:\ntoday is friday\n\nnews:\nno news"
    assert made.max_tokens == 100
    assert made.report.cut == ()
    assert [(each.name, each.tokens, each.shown_tokens) for each in made.report.layers] == [
        ("who", 1, 1), ("day", 3, 3), ("news", 2, 2)
    ]  # fmt: skip
    assert (made.report.instructions, made.report.conversation) == (2, 100 - 2 - 9)


async def test_the_lowest_priority_is_cut_first_and_the_report_says_what_was_cut() -> None:
    context = engine(40)  # 20 for the layers
    context.add_layer("low", content="l " * 30, priority=1, metadata={"source": "crm"})
    context.add_layer("high", content="h " * 10, priority=9)
    context.add_layer("middle", content="m " * 30, priority=5, trim_strategy="drop")
    context.add_layer("must", content="r " * 3, required=True, priority=0)

    made = await context.assemble()

    report = {each.name: each for each in made.report.layers}
    assert made.report.cut == ("low", "middle")
    assert (report["high"].shown_tokens, report["must"].shown_tokens, report["middle"].shown_tokens) == (10, 3, 0)
    assert report["low"].metadata == {"source": "crm"}
    assert made.text.startswith("low:\nl l")
    assert "[...]\n\nhigh:" in made.text
    assert words(made.text) <= 20
    assert context.get_report() is made.report


@pytest.mark.parametrize(
    ("how", "shown"), [("truncate", "one two three [...]"), ("keep_end", "[...] five six seven"), ("drop", "")]
)
async def test_a_layer_is_cut_the_way_it_asks_for(how: Any, shown: str) -> None:
    context = engine(10)
    context.add_layer("x", content="one two three four five six seven", trim_strategy=how)
    assert (await context.assemble()).text == (f"x:\n{shown}" if shown else "")


async def test_what_has_to_be_shown_and_does_not_fit_is_refused() -> None:
    context = engine(20)
    context.add_layer("must", content="r " * 30, required=True)
    with pytest.raises(ConfigurationError, match="window of 20 tokens has no room for the conversation"):
        await context.assemble()


async def test_a_layer_that_raises_is_left_out_and_told_and_a_required_one_lets_it_through(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(seen: Mapping[str, Any]) -> str:
        raise KeyError("crm")

    context = engine(50)
    context.add_layer("crm", content=broken)
    context.add_layer("who", content="Ann")
    with caplog.at_level(logging.ERROR):
        made = await context.assemble()
    assert made.text == "who:\nAnn"
    assert [(each.name, each.error) for each in made.report.layers] == [("crm", "KeyError: 'crm'"), ("who", "")]
    assert made.report.cut == ("crm",)
    assert "'crm'" in caplog.text

    context.remove_layer("crm")
    context.add_layer("crm", content=broken, required=True)
    with pytest.raises(KeyError):
        await context.assemble()


async def test_definitions_of_tools_and_the_reserve_are_counted() -> None:
    async def look(what: str) -> str:
        """Look something up."""
        return what

    tools = as_tools([look]).specs
    context = ContextEngine(model_context_window=1000, response_reserve=100)
    made = await context.assemble(instructions="x" * 400, tools=tools)
    taken = made.report.tools

    assert taken > 15
    assert made.max_tokens == context.limit(tools) == 1000 - 100 - taken
    assert made.report.conversation == 1000 - 100 - taken - 100
    bare = ContextEngine(model_context_window=1000, response_reserve=100, auto_register_builtins=False)
    assert (await bare.assemble(instructions="x" * 400, tools=tools)).max_tokens == 900


def test_the_reserve_never_eats_a_small_window() -> None:
    assert ContextEngine(model_context_window=2000).limit() == 1500


class Profiled:
    def __init__(self, profile: Any = None, **more: Any) -> None:
        self.profile = profile
        self.__dict__.update(more)


def test_the_window_comes_from_the_profile_of_the_model() -> None:
    from langchain_core.language_models import FakeListChatModel

    from graphwright.models import as_model

    model = FakeListChatModel(responses=["x"], profile={"max_input_tokens": 12_345})

    assert window_of(as_model(model)) == 12_345
    assert window_of(model) == 12_345
    assert window_of(Profiled(model=Profiled({"max_input_tokens": 7}))) == 7
    assert window_of(Profiled(context_window=9)) == 9
    assert window_of(Profiled({"max_input_tokens": None})) is None
    assert window_of(ScriptedModel([])) is None
    assert ContextEngine().window(model) == 12_345
    assert ContextEngine(model=model).window() == 12_345
    assert ContextEngine(model_context_window=50).window(model) == 50
    assert ContextEngine().window(ScriptedModel([])) == UNKNOWN_WINDOW


async def test_a_tokenizer_may_be_an_object_and_a_model_may_count_itself() -> None:
    class Letters:
        def encode(self, text: str) -> list[str]:
            return list(text)

    context = ContextEngine(model_context_window=100, tokenizer=Letters())
    assert (await context.assemble(instructions="12345")).report.instructions == 5
    counting = Profiled(count_tokens=lambda text: 77)
    assert ContextEngine(model_context_window=400).counter(counting)("x") == 77
    assert context.counter(counting)("xy") == 2


async def test_runs_side_by_side_read_each_their_own_report() -> None:
    context = engine(100)
    context.add_layer("n", content=lambda seen: "n " * seen["n"])
    made = asyncio.Barrier(3)

    async def run(n: int) -> int:
        await context.assemble({"n": n})
        await made.wait()
        report = context.get_report()
        assert report is not None
        return report.layers[0].tokens

    assert await asyncio.gather(run(1), run(2), run(3)) == [1, 2, 3]


async def test_every_report_is_told_to_whoever_asked_for_it() -> None:
    seen: list[Any] = []
    context = engine(100, on_report=seen.append)
    assert context.get_report() is None
    made = await context.assemble()
    assert seen == [made.report]


def test_a_layer_has_its_name_once_and_its_content_can_be_changed() -> None:
    context = engine(100)
    context.add_layer("a", content="1", priority=3)
    with pytest.raises(ConfigurationError, match="there is a layer 'a' already"):
        context.add_layer("a")
    context.set_content("a", "2")
    assert [(each.name, each.content, each.priority) for each in context.layers] == [("a", "2", 3)]
    for change in (lambda: context.set_content("b", "x"), lambda: context.remove_layer("b")):
        with pytest.raises(ConfigurationError, match="there is no layer 'b'; there are a"):
            change()


@pytest.mark.parametrize(
    "options",
    [{"model_context_window": -1}, {"response_reserve": True}, {"layer_share": 1}, {"tokenizer": 3}],
)
def test_an_option_that_does_not_fit_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        ContextEngine(**options)


@pytest.mark.parametrize(
    "options", [{"name": ""}, {"content": 3}, {"priority": True}, {"priority": "x"}, {"trim_strategy": "middle"}]
)
def test_a_layer_that_does_not_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        engine(9).add_layer(**{"name": "x", **options})


layer_lists = st.lists(
    st.tuples(st.text("ab \n", max_size=120), st.integers(0, 9), st.sampled_from(["truncate", "keep_end", "drop"])),
    max_size=6,
)


@given(layer_lists, st.integers(8, 120), st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_layers_never_take_more_than_their_share(layers: list[Any], window: int, told: int) -> None:
    context = ContextEngine(model_context_window=window, response_reserve=0, tokenizer=len)
    for place, (text, priority, how) in enumerate(layers):
        context.add_layer(f"l{place}", content=text, priority=priority, trim_strategy=how)
    if told >= window:
        return
    made = asyncio.run(context.assemble(instructions="i" * told))

    assert len(made.text) <= max(0, (window - told) // 2)
    assert made.report.conversation >= (window - told) // 2
    assert all(each.shown_tokens <= each.tokens for each in made.report.layers)
