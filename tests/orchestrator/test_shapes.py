"""The shapes of the stream, and the interfaces, as a user of them meets them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from graphwright.orchestrator import stream_events
from graphwright.orchestrator.interfaces import BaseInterface, IBot, IConversationBot, ILanguageModel, IOrchestratorBot
from graphwright.orchestrator.response import BotResponse

RUN = "20260717T175049977691-3bf4f982c8bf4a209a9f9459e7cdaa28"
DETAIL: dict[str, Any] = {
    "tool_calls": [{"name": "get_datetime", "args": {"tz": "local"}}],
    "tools_executed": [{"tool_name": "get_datetime", "args": {}, "status": "success", "output": "14:44"}],
    "output": "text",
    "plan": [{"step": 1, "description": "a", "status": "pending"}],
    "step_events": [{"step": 1, "status": "running"}],
    "questions": [{"id": "a", "text": "A?", "type": "text", "options": None, "required": True}],
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "GraphTopology": {
        "entry": "agent",
        "nodes": ["__start__", "agent", "tools", "__end__"],
        "edges": [{"source": "__start__", "target": "agent", "conditional": False}],
    },
    "GraphTopologyEvent": {"type": "graph_topology", "run_id": RUN, "entry": "agent", "nodes": [], "edges": []},
    "NodeInvokedEvent": {
        "type": "node_invoked",
        "run_id": RUN,
        "node": "agent",
        "seq": 1,
        "ts": 1.5,
        "detail": DETAIL,
    },
    "NodeTraceEntry": {"node": "agent", "seq": 1, "ts": 1.5, "run_id": RUN},
    "AbortedEvent": {"type": "aborted", "run_id": RUN},
    "GuardRejectedEvent": {
        "type": "guard_rejected",
        "run_id": RUN,
        "stage": "input",
        "guard": "g",
        "reason": "r",
        "guard_events": [],
    },
    "StatusEvent": {"type": "retrying", "reason": "rate_limit", "attempt": 1, "wait_s": 2.0},
    "TokenUsage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    "QuestionEvent": {"type": "question_request", "questions": DETAIL["questions"], "reason": None},
    "PermissionRequestEvent": {"type": "permission_request", "tool": "rm", "tool_call_id": "c", "params": {}},
    "ToolRecord": DETAIL["tools_executed"][0],
    "StepEvent": {"step": 1, "status": "done"},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_event_of_the_stream_fits_its_shape_and_misses_no_key(name: str) -> None:
    shape = getattr(stream_events, name)
    adapter: TypeAdapter[Any] = TypeAdapter(shape)

    assert adapter.validate_python(EXAMPLES[name], strict=True) == EXAMPLES[name]
    for key in EXAMPLES[name]:
        with pytest.raises(ValidationError):
            adapter.validate_python({other: value for other, value in EXAMPLES[name].items() if other != key})
    assert set(EXAMPLES[name]) == shape.__required_keys__


@pytest.mark.parametrize(
    "name", ["AgentUpdate", "ToolsUpdate", "PlanUpdate", "AskUserUpdate", "VerifyUpdate", "OutputGuardUpdate"]
)
def test_an_update_may_hold_any_of_its_keys(name: str) -> None:
    shape = getattr(stream_events, name)

    assert shape.__required_keys__ == frozenset()
    assert {"messages", "node_trace"} <= shape.__optional_keys__
    assert TypeAdapter(shape).validate_python({}) == {}


def test_run_and_stream_take_their_arguments_in_the_documented_order() -> None:
    def parameters(name: str) -> list[str]:
        return list(inspect.signature(getattr(IOrchestratorBot, name)).parameters)[1:]

    ran = ["goal", "context", "thread_id", "images", "history", "mode"]
    assert parameters("run") == parameters("arun") == ran
    assert parameters("astream_events") == ["goal", "mode", "thread_id", "images", "history", "context"]
    assert inspect.signature(IOrchestratorBot.arun).parameters["mode"].default == "auto"
    assert inspect.signature(IOrchestratorBot.astream_events).parameters["mode"].default == "ask"


@pytest.mark.parametrize(
    ("interface", "methods"),
    [
        (IBot, {"abort"}),
        (IConversationBot, {"abort", "get_response"}),
        (IOrchestratorBot, {"abort", "astream_events", "arun", "run", "set_resume_command", "a_prewarm"}),
        (ILanguageModel, {"predict"}),
        (
            BaseInterface,
            {"on_thought", "on_tool_start", "on_tool_end", "on_error", "on_interrupt", "on_result"},
        ),
    ],
)
def test_an_interface_asks_for_these_methods(interface: Any, methods: set[str]) -> None:
    assert interface.__abstractmethods__ == methods
    with pytest.raises(TypeError, match="abstract"):
        interface()


async def test_a_bot_of_ones_own_fits_the_interface() -> None:
    class Echo(IOrchestratorBot):
        def abort(self) -> None:
            """Do nothing."""

        async def astream_events(
            self, goal: str | None, *args: Any, **more: Any
        ) -> AsyncGenerator[tuple[str, Any], None]:
            yield "updates", {"agent": {"final_report": goal}}

        async def arun(self, goal: str, *args: Any, **more: Any) -> BotResponse:
            return BotResponse(goal, success=True)

        def run(self, goal: str, *args: Any, **more: Any) -> BotResponse:
            return BotResponse(goal, success=True)

        def set_resume_command(self, resume_data: Any) -> None:
            """Do nothing."""

        async def a_prewarm(self) -> None:
            """Do nothing."""

    bot: IOrchestratorBot = Echo()

    assert [item async for item in bot.astream_events("hi")] == [("updates", {"agent": {"final_report": "hi"}})]
    assert (await bot.arun("hi")).content == bot.run("hi").content == "hi"
    with pytest.raises(NotImplementedError, match="Echo does not describe its graph"):
        bot.get_graph_topology()
