from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from graphwright import build_agent
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import GraphExecutionError
from graphwright.messages import AIMessage
from graphwright.observability import Tracing
from graphwright.testing import ScriptedModel, calls, says

pytest.importorskip("opentelemetry.sdk", reason="install the extra 'otel'")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class World:
    """A provider with its finished spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider, keeps_prompts=True, keeps_tool_io=True)

    async def agent(self, *steps: Any, **options: Any) -> Any:
        return await build_agent(model=ScriptedModel(list(steps)), events=_Only(self.tracing), **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> set[tuple[str, str]]:
        """Return each span's name with that of its parent."""
        by_id = {span.context.span_id: span.name for span in self.spans if span.context is not None}
        return {(span.name, by_id.get(span.parent.span_id, "?") if span.parent else "") for span in self.spans}


class _Only:
    """Passes a tracing where an agent takes a watcher."""

    def __init__(self, tracing: Tracing) -> None:
        self.subject = tracing.subject
        self.begin = tracing.begin

    async def stop(self) -> None:
        return None


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.provider.shutdown()


async def fast(key: str) -> str:
    """Look up."""
    with trace.get_tracer("user", tracer_provider=WORLDS[-1].provider).start_as_current_span(f"inside {key}"):
        await asyncio.sleep(0)
    return key


WORLDS: list[World] = []


def used(text: str) -> AIMessage:
    return AIMessage(
        text,
        usage_metadata={
            "input_tokens": 1000,
            "output_tokens": 50,
            "total_tokens": 1050,
            "input_token_details": {"cache_read": 800, "cache_creation": 100},
            "output_token_details": {"reasoning": 30},
        },
        response_metadata={"finish_reason": "stop", "model_name": "big-1", "model_provider": "acme"},
    )


@pytest.mark.parametrize("how", ["ainvoke", "astream_with_tools"])
async def test_parallel_calls_and_spans_of_tools_have_their_right_parents(world: World, how: str) -> None:
    WORLDS.append(world)
    both = AIMessage(
        "",
        tool_calls=[
            {"name": "fast", "args": {"key": "a"}, "id": "1"},
            {"name": "fast", "args": {"key": "b"}, "id": "2"},
        ],
    )
    agent = await world.agent(both, says("done"), extra_tools=[fast])

    if how == "ainvoke":
        await agent.ainvoke("go")
    else:
        async for _ in agent.astream_with_tools("go"):
            pass

    root = next(span for span in world.spans if span.name.startswith("invoke_agent"))
    assert root.parent is None
    tools = [span for span in world.spans if span.name == "execute_tool fast"]
    assert len(tools) == 2
    assert root.context is not None
    for key, call_id in (("a", "1"), ("b", "2")):
        parent = world.named(f"inside {key}").parent
        (tool,) = [span for span in tools if span.context is not None and parent is not None
                   and span.context.span_id == parent.span_id]  # fmt: skip
        assert tool.attributes is not None
        assert tool.attributes["gen_ai.tool.call.id"] == call_id
        assert tool.parent is not None
        assert tool.parent.span_id == root.context.span_id
    chats = [span for span in world.spans if span.name.startswith("chat")]
    assert [span.parent.span_id for span in chats if span.parent] == [root.context.span_id] * 2
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_model_call_has_the_conventions_attributes_and_the_run_counts_tokens_once(world: World) -> None:
    agent = await world.agent(used("hi"))
    await agent.ainvoke("hello password=hunter2hunter2")

    chat = next(span for span in world.spans if span.name.startswith("chat"))
    attributes = dict(chat.attributes or {})
    assert "hunter2hunter2" not in str(attributes.pop("gen_ai.input.messages"))
    assert attributes.pop("gen_ai.output.messages") == '[{"role": "ai", "content": "hi"}]'
    attributes.pop("gen_ai.response.id", None)
    attributes.pop("graphwright.node")
    attributes.pop("gen_ai.request.model", None)
    tokens = {
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 800,
        "gen_ai.usage.reasoning.output_tokens": 30,
    }
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "gen_ai.response.model": "big-1",
        "gen_ai.response.finish_reasons": ("stop",),
        **tokens,
    }
    run = next(span for span in world.spans if span.name.startswith("invoke_agent"))
    assert {key: value for key, value in (run.attributes or {}).items() if "usage" in key} == tokens


async def test_a_peer_is_a_child_of_the_call_that_asked_it(world: World) -> None:
    peer = await build_agent(model=ScriptedModel([used("42")]))
    agent = await world.agent(
        calls("ask_agent_oracle", message="what?"), says("It is 42."), cross_agents={"oracle": CrossAgent(peer)}
    )
    await agent.ainvoke("ask")

    ask = world.named("execute_tool ask_agent_oracle")
    asked = world.named("invoke_agent oracle")
    assert ask.context is not None
    assert asked.context is not None
    assert asked.parent is not None
    assert asked.parent.span_id == ask.context.span_id
    (inner,) = [
        span for span in world.spans
        if span.name.startswith("chat") and span.parent and span.parent.span_id == asked.context.span_id
    ]  # fmt: skip
    assert (inner.attributes or {})["gen_ai.usage.input_tokens"] == 1000
    root = world.spans[-1]
    assert root.parent is None
    chats = [(span.attributes or {})["gen_ai.usage.input_tokens"] for span in world.spans if span.name[:4] == "chat"]
    assert len(chats) == 3
    assert (root.attributes or {})["gen_ai.usage.input_tokens"] == sum(map(int, chats))  # type: ignore[arg-type]
    assert len({span.context.trace_id for span in world.spans if span.context}) == 1


async def test_failures_are_marked_on_the_call_and_on_the_run(world: World) -> None:
    def bad() -> str:
        """Fail."""
        raise ValueError("no")

    agent = await world.agent(calls("bad"), RuntimeError("down, password=hunter2hunter2"), extra_tools=[bad])
    with pytest.raises(GraphExecutionError):
        await agent.ainvoke("go")

    failed = [span.name.split()[0] for span in world.spans if not span.status.is_ok]
    assert sorted(failed) == ["chat", "execute_tool", "invoke_agent"]
    assert "hunter2hunter2" not in str([span.to_json() for span in world.spans])
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_failed_peer_leaves_no_span_open(world: World) -> None:
    peer = await build_agent(model=ScriptedModel([RuntimeError("down")]))
    agent = await world.agent(
        calls("ask_agent_oracle", message="what?"), says("It is away."), cross_agents={"oracle": CrossAgent(peer)}
    )
    await agent.ainvoke("ask")

    assert sorted(span.name.split()[0] for span in world.spans) == [
        "chat", "chat", "chat", "execute_tool", "invoke_agent", "invoke_agent",
    ]  # fmt: skip
    assert not world.named("invoke_agent oracle").status.is_ok


async def test_an_aborted_run_ends_all_its_spans(world: World) -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = await world.agent(calls("wait"), extra_tools=[wait])
    run = agent.start("go")
    await begun.wait()
    await run.aclose()

    assert [span.name.split()[0] for span in world.spans] == ["chat", "execute_tool", "invoke_agent"]
    assert (world.spans[-1].attributes or {})["graphwright.run.status"] == "aborted"


async def test_a_paused_run_and_its_resumption_are_two_spans_without_errors(world: World, tmp_path: Any) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = await world.agent(
        calls("pay"), says("done"), extra_tools=[pay], approval=["pay"], runlog=tmp_path / "runs.db"
    )
    paused = await agent.ainvoke("go", session_id="s")
    await agent.resume("s", {paused.pending[0].id: True})
    await agent.shutdown()

    roots = [span for span in world.spans if span.parent is None]
    assert [(span.attributes or {})["graphwright.run.status"] for span in roots] == ["paused", "completed"]
    assert {(span.attributes or {})["graphwright.run.id"] for span in roots} == {paused.run_id}
    assert all(span.status.is_ok or span.status.status_code.name == "UNSET" for span in world.spans)


async def test_spans_are_made_under_the_span_of_the_program_around(world: World) -> None:
    agent = await world.agent(says("hi"))
    with trace.get_tracer("user", tracer_provider=world.provider).start_as_current_span("request"):
        await agent.ainvoke("hello")

    assert {name: parent for name, parent in world.tree() if name.startswith("invoke")}.popitem()[1] == "request"
