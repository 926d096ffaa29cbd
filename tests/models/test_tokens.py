"""Tokens are counted once, whatever the shape."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graphwright.models.tokens import joined_usage, usage_of
from graphwright.usage import Usage


def report(input: int, output: int, total: int | None = None, **details: int) -> dict[str, Any]:
    made: dict[str, Any] = {"input_tokens": input, "output_tokens": output, "total_tokens": total or input + output}
    inner = {name: details[name] for name in ("cache_read", "cache_creation") if name in details}
    if inner:
        made["input_token_details"] = inner
    if "reasoning" in details:
        made["output_token_details"] = {"reasoning": details["reasoning"]}
    return made


def test_cached_and_reasoning_tokens_are_parts_and_two_calls_add_up() -> None:
    usage = Usage()
    for _ in range(2):
        metadata = report(1000, 50, 1050, cache_read=800, cache_creation=100, reasoning=30)
        one = usage_of(AIMessage("", usage_metadata=metadata))
        assert one is not None
        usage.add(one)

    assert usage == Usage(2000, 100, 2100, 1600, 60)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (report(10, 5, 15, cache_read=1000), Usage(1010, 5, 1015, 1000)),
        (report(30, 7, 53, reasoning=16), Usage(30, 23, 53, None, 16)),
        (report(0, 12), Usage(None, 12, None)),
        (report(0, 0), Usage(0, 0, 0)),
        (report(100, 50, 150, reasoning=50), Usage(100, 50, 150, None, 50)),
    ],
    ids=["input without its cached part", "output without its thoughts", "lost input", "nothing", "all reasoning"],
)
def test_a_whole_that_leaves_out_a_part_is_corrected(metadata: dict[str, Any], expected: Usage) -> None:
    assert usage_of(AIMessage("", usage_metadata=metadata)) == expected


@pytest.mark.parametrize(
    ("response_metadata", "expected"),
    [
        ({"token_usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}, Usage(9, 2, 11)),
        (
            {"token_usage": {"prompt_tokens": 90, "completion_tokens": 2, "prompt_cache_hit_tokens": 64}},
            Usage(90, 2, 92, 64),
        ),
        (
            {"usage": {"input_tokens": 40, "output_tokens": 9, "cache_read_input_tokens": 1000}},
            Usage(1040, 9, 1049, 1000),
        ),
        (
            {"usage": {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8, "cacheReadInputTokens": 2}},
            Usage(7, 3, 10, 2),
        ),
        ({"usage": {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}}, Usage(5, 3, 8)),
        (
            {
                "usage_metadata": {
                    "promptTokenCount": 30,
                    "candidatesTokenCount": 7,
                    "thoughtsTokenCount": 16,
                    "totalTokenCount": 53,
                    "cachedContentTokenCount": 10,
                }
            },
            Usage(30, 23, 53, 10, 16),
        ),
        ({"amazon-bedrock-invocationMetrics": {"inputTokenCount": 4, "outputTokenCount": 6}}, Usage(4, 6, 10)),
        ({"prompt_eval_count": 26, "eval_count": 4}, Usage(26, 4, 30)),
        ({"finish_reason": "stop"}, None),
        ({"token_usage": {}}, None),
    ],
)
def test_figures_that_only_the_metadata_holds_are_read(response_metadata: Any, expected: Usage | None) -> None:
    assert usage_of(AIMessage("", response_metadata=response_metadata)) == expected


def test_a_lost_input_is_filled_from_the_raw_figures() -> None:
    raw = {"usage": {"input_tokens": 25, "output_tokens": 1}}

    assert usage_of(AIMessage("", usage_metadata=report(0, 12), response_metadata=raw)) == Usage(25, 12, 37)


def test_pieces_that_add_up_are_added() -> None:
    joined = joined_usage([report(30, 8, 38, reasoning=8), report(0, 10, 10, reasoning=8), report(0, 5, 5)])

    assert joined is not None
    assert (joined["input_tokens"], joined["output_tokens"], joined["total_tokens"]) == (30, 23, 53)


def test_pieces_that_report_the_figures_so_far_are_not_added() -> None:
    so_far = [
        report(30, 8, 38, reasoning=8),
        report(30, 18, 48, cache_read=10, reasoning=16),
        report(30, 23, 53, cache_read=10, reasoning=16),
    ]

    joined = joined_usage(so_far)

    assert joined == so_far[-1]
    assert usage_of(AIMessage("", usage_metadata=joined)) == Usage(30, 23, 53, 10, 16)


def test_no_report_is_no_usage() -> None:
    assert joined_usage([]) is None
    assert usage_of(AIMessage("hi")) is None
