"""The settings of compaction and how tokens are counted."""

from __future__ import annotations

from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.engine import PromptGraph, PromptGraphEngine, PromptNode
from graphwright.engine.compaction import ContextCompaction, estimate_tokens
from graphwright.exceptions import ConfigurationError
from graphwright.messages import AIMessage, HumanMessage
from graphwright.testing import ScriptedModel


def test_the_defaults_are_those_of_the_page() -> None:
    made = ContextCompaction()
    assert (made.enabled, made.after_tool_results, made.max_tokens, made.keep_result_chars) == (True, 6, None, 2000)
    assert (made.history_messages, made.history_chars, made.count_tokens) == (6, 400, None)
    assert (made.reuse_results, made.max_result_chars) == (False, None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ContextCompaction()),
        (True, ContextCompaction()),
        (False, ContextCompaction(enabled=False)),
        (3, ContextCompaction(after_tool_results=3)),
        (ContextCompaction(max_tokens=9), ContextCompaction(max_tokens=9)),
    ],
)
def test_a_short_form_stands_for_settings(given: Any, expected: ContextCompaction) -> None:
    assert ContextCompaction.coerce(given) == expected


@pytest.mark.parametrize("given", [0, -1, 2.5, "auto", {"after_tool_results": 3}])
async def test_what_is_no_setting_is_refused_where_it_is_given(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="compaction"):
        ContextCompaction.coerce(given)
    with pytest.raises(ConfigurationError, match="compaction"):
        PromptNode("n", compaction=given)
    with pytest.raises(ConfigurationError, match="compaction"):
        PromptGraphEngine(PromptGraph("g", nodes=[PromptNode("n", is_entry=True)]), compaction=given)
    with pytest.raises(ConfigurationError, match="compaction"):
        await build_agent(model=ScriptedModel([]), context_compaction=given)


@pytest.mark.parametrize(
    "options",
    [
        {"after_tool_results": 0},
        {"after_tool_results": True},
        {"max_tokens": 0},
        {"max_result_chars": 0},
        {"keep_result_chars": 0},
        {"history_messages": -1},
        {"history_chars": "many"},
        {"count_tokens": 4},
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        ContextCompaction(**options)


@pytest.mark.parametrize("options", [{"context_scope": "some"}, {"auto_ledger_after": 0}])
def test_a_node_refuses_what_is_no_scope_and_no_number_of_results(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        PromptNode("n", **options)


def test_reused_tools_are_named_in_a_list_with_stars() -> None:
    some = ContextCompaction(reuse_results=["get_*", "find"])
    assert [some.reuses(name) for name in ("get_user", "find", "finder", "Find")] == [True, True, False, False]
    assert ContextCompaction(reuse_results=True).reuses("anything")
    assert not ContextCompaction().reuses("anything")
    for wrong in ("get_*", 3, [3]):
        with pytest.raises(TypeError, match="reuse_results"):
            ContextCompaction(reuse_results=wrong)  # type: ignore[arg-type]


def test_tokens_are_estimated_offline_and_never_fewer_for_other_scripts() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert estimate_tokens("\u4f60\u597d\u4e16\u754c") == 3
    called = AIMessage(content="", tool_calls=[{"name": "look", "args": {"x": "y" * 100}, "id": "1"}])
    assert ContextCompaction().tokens([called]) > 25
    picture = HumanMessage(content=[{"type": "text", "text": "abcd"}, {"type": "image_url", "image_url": "x" * 10**6}])
    assert ContextCompaction().tokens([picture]) == 1001
    assert ContextCompaction(count_tokens=len).tokens([HumanMessage(content="abc")]) == 3


def test_a_budget_lowers_a_limit_and_never_raises_it() -> None:
    assert ContextCompaction().with_budget(100).max_tokens == 100
    assert ContextCompaction(max_tokens=50).with_budget(100).max_tokens == 50
    assert ContextCompaction().with_budget(9, len).count_tokens is len
    assert ContextCompaction(count_tokens=hash).with_budget(9, len).count_tokens is hash
