"""Blocks: what a set shows, and what goes when there is no room."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.engine import NodeResult, PromptGraph, PromptGraphEngine, PromptNode
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.prompts import Block, BlockSet
from graphwright.testing import ScriptedModel


def test_the_lowest_priority_goes_first_and_the_order_stays() -> None:
    blocks = BlockSet(
        [Block("a", "aaaa", priority=1), Block("b", "bbbb", priority=9), Block("c", "cccc")], max_chars=10
    )

    chosen = blocks.select({})

    assert (chosen.text, chosen.used, chosen.dropped) == ("bbbb\n\ncccc", ("b", "c"), ("a",))
    assert blocks.render({}) == "bbbb\n\ncccc"


def test_of_equal_priorities_the_last_goes_first() -> None:
    assert BlockSet(["aaaa", "bbbb", "cccc"], max_chars=10).select().dropped == ("block_3",)


def test_a_small_block_comes_back_when_a_large_one_had_to_go_anyway() -> None:
    blocks = BlockSet(
        [Block("small", "s" * 4, priority=1), Block("large", "l" * 50, priority=2), Block("top", "t" * 4)]
    )
    blocks.max_chars = 12

    assert blocks.select().used == ("small", "top")


def test_required_blocks_stay_over_budget() -> None:
    chosen = BlockSet([Block("must", "m" * 50, required=True, priority=0), Block("may", "x", priority=9)], max_chars=10)

    assert chosen.select().used == ("must",)


def test_tokens_are_counted_by_the_given_function_or_four_characters_each() -> None:
    words = BlockSet(["one two", "three"], max_tokens=2, count_tokens=lambda text: len(text.split()))

    assert words.select().dropped == ("block_2",)
    assert BlockSet(["12345678"], max_tokens=2).select().used == ("block_1",)
    assert BlockSet(["123456789"], max_tokens=2).select().dropped == ("block_1",)


def test_a_block_reads_the_context_and_is_left_out_where_it_does_not_apply() -> None:
    block = Block("who", lambda context: f"for {context['user']}", when=lambda context: "user" in context)

    assert block.render({"user": "Ann"}) == "for Ann"
    assert block.render({}) == block.render() == ""
    chosen = BlockSet([block, "x"], max_chars=1).select({})
    assert (chosen.used, chosen.dropped) == (("block_2",), ())


def test_a_long_block_is_cut_to_its_own_budget() -> None:
    assert Block("long", "abcdefghij", max_chars=8).render() == "abcde..."
    assert Block("fits", "abcdefgh", max_chars=8).render() == "abcdefgh"


def test_sets_can_be_joined() -> None:
    joined = BlockSet([Block("a", "A")], max_chars=1) + BlockSet([Block("b", "B", priority=9)])

    assert joined.select().used == ("b",)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Block("", "text"),
        lambda: Block("a", 5),  # type: ignore[arg-type]
        lambda: Block("a", "text", max_chars=3),
        lambda: BlockSet([Block("a", "x"), Block("a", "y")]),
        lambda: BlockSet([], max_tokens=0),
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


async def test_a_node_shows_what_fits_and_reports_what_it_dropped() -> None:
    seen: list[NodeResult] = []

    class Keeps:
        def post_node(self, node: Any, result: NodeResult, state: Any) -> None:
            seen.append(result)

    rules = BlockSet(
        [
            Block("tone", "Be kind.", priority=9),
            Block("who", lambda context: context["user"]),
            Block("long", "x" * 99, priority=1),
        ],
        max_chars=30,
    )
    node = PromptNode("say", instructions="Answer.", blocks=[rules, Block("last", "Bye.")], is_entry=True)
    model = ScriptedModel(["done"])

    await PromptGraphEngine(PromptGraph(nodes=[node]), model, hooks=[Keeps()]).ainvoke("go", context={"user": "Ann"})

    assert text_of(model.inputs[0][0]) == "Answer.\n\nBe kind.\n\nAnn\n\nBye."
    assert (seen[0].blocks_used, seen[0].blocks_dropped) == (["tone", "who", "last"], ["long"])
