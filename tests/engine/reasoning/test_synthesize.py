"""The node that writes the final answer: plain text, with a closing block that nobody sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphwright.engine import GraphState, NodeFlag, PromptGraph, PromptGraphEngine
from graphwright.engine.reasoning_nodes import SynthesizeNode
from graphwright.engine.reasoning_nodes._closing_block import HoldBack
from graphwright.messages import text_of
from graphwright.run_events import Restarted, TextDelta
from graphwright.testing import ScriptedModel, calls, raises_midstream, says

BLOCK = '{"confidence": 4, "sources": ["a", "b"]}'


async def answer_of(text: str) -> Any:
    graph = PromptGraph("g", nodes=[SynthesizeNode("s", is_entry=True)])
    with ScriptedModel([says(text)]) as model:
        return await PromptGraphEngine(graph, model).ainvoke("go")


async def streamed(*chunks: str) -> tuple[str, str]:
    """Return what a listener saw, and the reply."""
    graph = PromptGraph("g", nodes=[SynthesizeNode("s", is_entry=True)])
    with ScriptedModel([says("".join(chunks), chunks=list(chunks))]) as model:
        events = [event async for event in PromptGraphEngine(graph, model).astream_events("go")]
    shown = "".join(text_of(e["data"]["chunk"]) for e in events if e["event"] == "on_chat_model_stream")
    result = next(e for e in events if e["event"] == "on_node_end")["data"]["result"]
    return shown, text_of(result.messages_added[-1])


@pytest.mark.parametrize(
    "text",
    [f"Hello.\n{BLOCK}", f"Hello.\n\n```json\n{BLOCK}\n```\n", f"Hello.\n```\n{BLOCK}\n```", f"Hello.\n\n  {BLOCK}  "],
)
async def test_the_closing_block_is_read_and_not_shown(text: str) -> None:
    result = await answer_of(text)
    assert result.text == "Hello."
    assert result.output == {"answer": "Hello.", "confidence": 0.8, "sources": ["a", "b"]}
    assert result.context["synthesis"] == result.output
    assert result.context["s_output"] == "Hello."


@pytest.mark.parametrize(
    "text",
    [
        "Plain.",
        'Use this:\n```json\n{"port": 1}\n```',
        f"Inline {BLOCK}",
        f"First\n{BLOCK}\nthen more.",
        'Data:\n{"confidence": 1, "other": 2}',
        BLOCK,
        'Broken:\n{"confidence": ',
    ],
)
async def test_a_text_without_a_closing_block_is_left_as_it_is(text: str) -> None:
    result = await answer_of(text)
    assert result.text == text
    assert result.output == {"answer": text, "confidence": None, "sources": []}


async def test_a_reply_that_is_all_json_is_read_as_its_answer() -> None:
    result = await answer_of('{"answer": "Hi", "confidence": 0.5, "sources": "one"}')
    assert (result.text, result.output) == ("Hi", {"answer": "Hi", "confidence": 0.5, "sources": ["one"]})


async def test_a_confidence_that_is_no_number_is_none() -> None:
    result = await answer_of('Hi.\n{"confidence": "who knows"}')
    assert (result.text, result.output["confidence"]) == ("Hi.", None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Hello.\n\n```json\n{BLOCK}\n```", "Hello."),
        (f"Hello.\n{BLOCK}", "Hello."),
        ('Code:\n```python\nx = {"confidence": 1}\n```\nDone.\n', None),
        (f"A\n{BLOCK}\nB\n\n```\n{BLOCK}\n```\nC", None),
        ('{"answer": "Hi", "confidence": 1}', "Hi"),
        ("Ends in a fence\n```", None),
        ("  \n leading", None),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_no_piece_of_a_closing_block_is_streamed(text: str, shown: str | None, size: int) -> None:
    seen, reply = await streamed(*[text[at : at + size] for at in range(0, len(text), size)])
    assert seen == reply == (text if shown is None else shown)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["a", "\n", "`", "```", "```json", "{", "}", '"confidence"', ":", "1", " ", BLOCK]), max_size=9
    )
)
async def test_what_is_streamed_is_the_reply_whatever_is_written(pieces: list[str]) -> None:
    pieces = ["x", *pieces]
    seen, reply = await streamed(*pieces)
    assert seen == reply


async def test_text_is_shown_as_soon_as_it_is_clear() -> None:
    graph = PromptGraph("g", nodes=[SynthesizeNode("s", is_entry=True)])
    chunks = ["One ", "two\n", "```", "py", "\n{x}\n"]
    with ScriptedModel([says("".join(chunks), chunks=chunks)]) as model:
        events = [event async for event in PromptGraphEngine(graph, model).astream_events("go")]
    shown = [text_of(e["data"]["chunk"]) for e in events if e["event"] == "on_chat_model_stream"]
    assert shown == ["One", " two", "\n```py", "\n{x}", "\n"]


async def test_a_restart_drops_what_was_shown() -> None:
    seen: list[Any] = []

    async def emit(event: Any) -> None:
        seen.append(event)

    held = HoldBack(emit)
    await held(TextDelta("s", "Hello.\n{", "1"))
    await held(Restarted("s", "1", "Hello.\n{"))
    await held(TextDelta("s", "Again.", "1"))
    await held.flush()
    assert [getattr(event, "text", None) or event.dropped for event in seen] == ["Hello.", "Hello.", "Again."]


async def test_the_model_is_shown_all_tool_results_and_told_of_the_block(run: Callable[..., Any]) -> None:
    def before(state: GraphState) -> None:
        for index in range(8):
            state.add_observation("look", f"r{index}", {"n": index})

    model = ScriptedModel([says("ok")])
    world = await run(model, SynthesizeNode("s", default_next="note"), before=before)
    asked = text_of(model.inputs[0][-1])
    assert [f'look({{"n": {index}}}) = r{index}' in asked for index in range(8)] == [True] * 8
    assert '"confidence"' in text_of(model.inputs[0][0])
    assert [text_of(message) for message in world.seen["messages"]] == ["go", "ok"]


async def test_it_ends_the_graph_by_itself() -> None:
    synthesize = SynthesizeNode()
    assert (synthesize.default_next, NodeFlag.TERMINAL in synthesize.flags) == ("__end__", True)
    assert len(synthesize.instructions) < 500


class Report(BaseModel):
    """A report."""

    title: str


async def test_data_of_ones_own_type_is_answered_as_such() -> None:
    graph = PromptGraph("g", nodes=[SynthesizeNode("s", is_entry=True, output_schema=Report)])
    with ScriptedModel([calls("final_answer", title="T")]) as model:
        result = await PromptGraphEngine(graph, model).ainvoke("go")
    assert json.loads(result.text) == {"title": "T"} == result.output


async def test_a_stream_that_breaks_and_restarts_shows_the_answer_once() -> None:
    graph = PromptGraph("g", nodes=[SynthesizeNode("s", is_entry=True)])
    with ScriptedModel([raises_midstream("Half", ConnectionError("gone")), says(f"Whole.\n{BLOCK}")]) as model:
        events = [event async for event in PromptGraphEngine(graph, model).astream_events("go")]
    shown = ""
    for event in events:
        if event["event"] == "on_chat_model_stream":
            shown += text_of(event["data"]["chunk"])
        elif event["event"] == "on_chat_model_restart":
            assert event["data"]["dropped"] == shown
            shown = ""
    assert shown == "Whole."
