"""The nodes that run other nodes: again after a failure, or each with its own question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright._internal import clock
from graphwright.engine import GraphState, NodeResult, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.reasoning_nodes import FanOutNode, RetryNode
from graphwright.exceptions import ConfigurationError, GraphExecutionError
from graphwright.messages import AIMessage, text_of
from graphwright.testing import ScriptedModel, calls, says


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Keep how long was waited, without waiting."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(clock, "sleep", sleep)
    return waited


def failing(times: int, seen: list[dict[str, Any]], error: Exception | None = None) -> Any:
    @node("work", max_iterations=1)
    async def work(state: GraphState) -> NodeResult:
        seen.append({key: value for key, value in state.context.items() if key.startswith("_retry")})
        state.messages.append(AIMessage(content=f"attempt {len(seen)}"))
        if len(seen) <= times:
            raise error or ValueError(f"no {len(seen)}")
        return NodeResult("work", output="done")

    return work


async def test_a_node_is_run_again_and_knows_why(run: Callable[..., Any], waits: list[float]) -> None:
    seen: list[dict[str, Any]] = []
    retry = RetryNode("again", failing(2, seen), default_next="note")
    world = await run(ScriptedModel([]), retry)
    assert seen == [
        {},
        {"_retry_attempt": 1, "_retry_error": "ValueError: no 1", "_retry_node": "work"},
        {"_retry_attempt": 2, "_retry_error": "ValueError: no 2", "_retry_node": "work"},
    ]
    assert waits == [0.5, 1.0]
    assert not [key for key in world.seen["context"] if key.startswith("_retry")]
    assert [text_of(message) for message in world.seen["messages"]] == ["go", "attempt 3"]
    assert world.seen["visited"] == ["prepare", "again", "work", "work", "work", "note"]
    assert world.seen["reflections"] == []


async def test_four_attempts_in_all_and_the_cause_is_kept(run: Callable[..., Any], waits: list[float]) -> None:
    seen: list[dict[str, Any]] = []
    cause = OSError("disk")
    with pytest.raises(GraphExecutionError, match="node 'work' failed after 4 attempts: OSError: disk") as caught:
        await run(ScriptedModel([]), RetryNode("again", failing(9, seen, cause), default_next="note"))
    assert len(seen) == 4
    assert caught.value.__cause__ is cause
    assert waits == [0.5, 1.0, 2.0]


async def test_a_configuration_error_is_not_tried_again(run: Callable[..., Any], waits: list[float]) -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(GraphExecutionError, match="after 1 attempt: wrong"):
        await run(ScriptedModel([]), RetryNode("again", failing(9, seen, ConfigurationError("wrong"))))
    assert (len(seen), waits) == (1, [])


class Number(BaseModel):
    """A number."""

    value: int


async def test_a_model_reads_what_was_wrong_with_its_own_answer(run: Callable[..., Any], waits: list[float]) -> None:
    model = ScriptedModel([calls("final_answer", value="many"), calls("final_answer", value=3)])
    inner = PromptNode("count", output_schema=Number, output_retries=0)
    world = await run(model, RetryNode("again", inner, default_next="note"))
    assert "The last attempt failed" not in text_of(model.inputs[0][0])
    assert "The last attempt failed" in text_of(model.inputs[1][0])
    assert world.seen["reflections"] == []
    assert [text_of(message) for message in world.seen["messages"]] == ["go", '{"value": 3}']
    assert world.seen["tokens"] == 15


async def test_a_wrapped_node_has_its_whole_tool_loop(run: Callable[..., Any]) -> None:
    def look(at: str) -> str:
        """Look."""
        return f"saw {at}"

    model = ScriptedModel([calls("look", at="sky"), says("blue")])
    world = await run(model, RetryNode("again", PromptNode("ask", tools=[look]), default_next="note"))
    assert [message.type for message in world.seen["messages"]] == ["human", "ai", "tool", "ai"]
    assert world.seen["tokens"] == 30


async def test_a_wait_is_cut_short_by_cancellation(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(clock, "sleep", sleep)
    state: list[GraphState] = []
    task = asyncio.create_task(
        run(ScriptedModel([]), RetryNode("again", failing(9, []), default_next="note"), before=state.append)
    )
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [key for key in state[0].context if key.startswith("_retry")]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RetryNode("r"),
        lambda: RetryNode("r", PromptNode("a"), max_retries=-1),
        lambda: FanOutNode("f", []),
        lambda: FanOutNode("f", [PromptNode("a")]),
        lambda: FanOutNode("f", [(PromptNode("a"), 3)]),
        lambda: FanOutNode("f", [(PromptNode("a"), {})], merge_strategy="custom"),
        lambda: FanOutNode("f", [(PromptNode("a"), {})], merge_strategy="sum"),
    ],
)
def test_values_that_cannot_work_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


async def test_a_description_may_be_given() -> None:
    assert RetryNode("r", PromptNode("a"), description="D").description == "D"
    assert FanOutNode("f", [(PromptNode("a"), {})], description="D").description == "D"


async def test_each_branch_gets_its_own_question_and_context(run: Callable[..., Any]) -> None:
    def answer(messages: list[Any]) -> str:
        system = text_of(messages[0]) if messages[0].type == "system" else ""
        return f"[{text_of(messages[-1])}|{system}]"

    ask, other = PromptNode("ask", input_keys=["tone"]), PromptNode("other")
    fan = FanOutNode(
        "fan",
        [(ask, {"question": "Why?", "tone": "dry"}), (other, "How?"), (ask, {"tone": "warm"})],
        merge_strategy="dict",
        default_next="note",
    )
    world = await run(ScriptedModel.answering(answer), fan, before=lambda state: state.context.update(tone="plain"))
    context = world.seen["context"]
    assert context["fan_output"] == {
        "ask": "[Why?|Input data:\ntone: dry]",
        "other": "[How?|]",
        "ask_2": "[go|Input data:\ntone: warm]",
    }
    assert context["tone"] == "plain"
    assert "question" not in context
    assert [message.type for message in world.seen["messages"]] == ["human", "ai"]


async def test_the_default_is_their_texts_in_order(run: Callable[..., Any]) -> None:
    gate = asyncio.Event()

    @node("late")
    async def late() -> str:
        await gate.wait()
        return "first"

    @node("early")
    async def early() -> str:
        gate.set()
        return "second"

    world = await run(ScriptedModel([]), FanOutNode("fan", [(late, {}), (early, {})], default_next="note"))
    assert world.seen["context"]["fan_output"] == "first\n\nsecond"


@pytest.mark.parametrize("strategy", ["concatenate", "dict"])
async def test_a_failed_branch_is_visible(run: Callable[..., Any], strategy: str) -> None:
    fan = FanOutNode("fan", [(failing(9, []), {}), (failing(0, []), {})], merge_strategy=strategy, default_next="note")
    with pytest.raises(GraphExecutionError, match="ValueError: no 1") as caught:
        await run(ScriptedModel([]), fan)
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_merge_function_may_take_a_failure(run: Callable[..., Any]) -> None:
    def merge(results: dict[str, NodeResult]) -> list[Any]:
        return [result.error or result.output for result in results.values()]

    fan = FanOutNode(
        "fan",
        [(failing(9, []), {}), (failing(0, []), {})],
        merge_strategy="custom",
        merge_fn=merge,
        default_next="note",
    )
    world = await run(ScriptedModel([]), fan)
    assert world.seen["context"]["fan_output"] == ["ValueError: no 1", "done"]


async def test_the_events_of_branches_and_attempts_say_where_they_belong() -> None:
    seen: list[tuple[str, str]] = []

    async def emit(event: Any) -> None:
        if type(event).__name__ == "NodeStarted":
            seen.append((event.path, event.node))

    fan = FanOutNode("fan", [(RetryNode("again", failing(0, [])), {})], is_entry=True)
    engine = PromptGraphEngine(PromptGraph("g", nodes=[fan]), ScriptedModel([]))
    await engine.run("go", emit=emit)
    assert seen == [("", "fan"), ("fan", "again"), ("fan/again", "work")]


async def test_the_text_of_a_failed_attempt_is_taken_back(waits: list[float]) -> None:
    refused: list[str] = []

    def once(text: str, state: Any, config: Any) -> str:
        refused.append(text)
        if len(refused) == 1:
            raise ValueError("not so")
        return text

    retry = RetryNode("again", PromptNode("say", postprocessor=once), is_entry=True)
    with ScriptedModel([says("Bad text"), says("Good text")]) as model:
        events = [
            event async for event in PromptGraphEngine(PromptGraph("g", nodes=[retry]), model).astream_events("go")
        ]
    shown, dropped = "", []
    for event in events:
        if event["event"] == "on_chat_model_stream":
            shown += text_of(event["data"]["chunk"])
        elif event["event"] == "on_chat_model_restart":
            dropped.append(event["data"]["dropped"])
            shown = shown.removesuffix(dropped[-1])
    assert (shown, dropped) == ("Good text", ["Bad text"])
