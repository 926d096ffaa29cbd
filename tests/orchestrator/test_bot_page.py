"""What the page of the orchestrator shows, as it is printed there."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import re
from typing import Any

import pytest
from tests.orchestrator._bots import (
    bot_of,
    events_of,
    no_waiting,
    rate_limited,
    read,
    results_in,
    shown_text,
    updates_of,
)

import graphwright
from graphwright import BotResponse, IBot, IConversationBot, IOrchestratorBot, OrchestratorBot
from graphwright.exceptions import ConfigurationError
from graphwright.testing import ScriptedModel, call, calls, calls_many, raises, says

RUN_ID = re.compile(r"^\d{8}T\d{12}-[0-9a-f]{32}$")
PARAMETERS = [
    "strong_model",
    "fast_model",
    "instructions",
    "tools",
    "memory_path",
    "risk_threshold",
    "max_retries",
    "code_model",
    "vision_model",
    "logger",
    "prompts",
    "checkpointer",
    "enable_user_questions",
    "enable_planning",
    "skills",
    "skills_dir",
    "skills_eager",
    "max_parallel_tools",
    "recursion_limit",
    "tool_timeout_s",
    "enable_prompt_cache",
    "enable_compaction",
    "compaction_threshold_tokens",
    "compaction_keep_messages",
    "enable_verification",
    "enable_memory_writeback",
    "tool_guards",
    "prohibited",
    "injection_hardening",
    "input_guards",
    "output_guards",
    "output_guard_action",
    "untrusted_tool_outputs",
]


async def get_datetime(tz: str) -> str:
    """Tell the time."""
    return "14:44"


get_datetime.risk_level = 0  # type: ignore[attr-defined]


async def write(text: str) -> str:
    """Write something."""
    return f"wrote {text}"


def test_the_sync_snippet_runs_and_its_response_has_every_property(tmp_path: Any) -> None:
    bot = OrchestratorBot(
        strong_model=ScriptedModel([says("Nothing new.", thinking="hm")]),
        fast_model=ScriptedModel(),
        instructions="You are a helpful assistant.",
        tools=[],
        memory_path=str(tmp_path),
    )

    result = bot.run("Summarize the latest AI news")

    assert result.content == result["content"] == "Nothing new."
    assert result.thinking == result.get("thinking") == "hm"
    assert result.logs == result.tools_executed == result.plan == result.questions == result.guard_events == []
    assert result.token_usage == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
    }
    assert result.success is True
    assert result.status == "completed"
    assert result.needs_input is False
    assert result.goal == "Summarize the latest AI news"
    assert result.run_id is not None
    assert RUN_ID.match(result.run_id)
    assert result.session_id == result.thread_id
    assert [(entry["node"], entry["seq"]) for entry in result.node_trace] == [("agent", 1)]
    assert json.loads(json.dumps(result)) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert list(tmp_path.iterdir()) == []


async def test_the_streaming_snippet_shows_progress_retries_and_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = no_waiting(monkeypatch)
    bot = bot_of(
        [raises(rate_limited()), calls_many(call("get_datetime", tz="x"), text="Looking."), says("Hello!")],
        [get_datetime],
    )
    shown = []

    async for stream_mode, payload in bot.astream_events("Hello!", mode="auto"):
        if stream_mode == "updates":
            for node_name, update in payload.items():
                if node_name == "agent":
                    for ev in update.get("status_events", []):
                        if ev["type"] == "retrying":
                            shown.append(f"retry {ev['attempt']}")
                    for partial in update.get("partial_responses", []):
                        shown.append(partial)
                    if update.get("final_report"):
                        shown.append(update["final_report"])

    assert shown == ["retry 1", "Looking.", "Hello!"]
    assert len(waits) == 1


async def test_a_run_of_one_tool_has_the_shape_that_the_page_prints() -> None:
    bot = bot_of([calls("get_datetime", tz="local"), says("La hora actual es 14:44.")], [get_datetime])

    items = await read(bot.astream_events("¿Qué hora es?", mode="auto", thread_id="t"))

    graph = [payload for mode, payload in items if mode == "graph"]
    run_id = graph[0]["run_id"]
    assert graph[0] == {"type": "graph_topology", "run_id": run_id, **bot.get_graph_topology()}
    requested = {"name": "get_datetime", "args": {"tz": "local"}}
    record = {"tool_name": "get_datetime", "args": {"tz": "local"}, "status": "success", "output": "14:44"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert [{key: event[key] for key in event if key != "ts"} for event in graph[1:]] == [
        {
            "type": "node_invoked",
            "run_id": run_id,
            "node": "agent",
            "seq": 1,
            "detail": {"tool_calls": [requested], "token_usage": usage},
        },
        {
            "type": "node_invoked",
            "run_id": run_id,
            "node": "tools",
            "seq": 2,
            "detail": {"tools_executed": [record]},
        },
        {
            "type": "node_invoked",
            "run_id": run_id,
            "node": "agent",
            "seq": 3,
            "detail": {"output": "La hora actual es 14:44.", "token_usage": usage},
        },
    ]
    # node_invoked stands right before the update that it belongs to, and nothing else is between them.
    shape = [(mode, payload.get("node") or next(iter(payload))) for mode, payload in items if mode != "messages"]
    assert shape[1:] == [
        ("graph", "agent"),
        ("updates", "agent"),
        ("graph", "tools"),
        ("updates", "tools"),
        ("graph", "agent"),
        ("updates", "agent"),
    ]
    assert updates_of(items, "tools")[0]["tools_executed"] == [record]
    assert updates_of(items, "agent")[-1]["final_report"] == "La hora actual es 14:44."
    assert [update["token_usage"] for update in updates_of(items, "agent")] == [usage, usage]
    assert shown_text(items) == "La hora actual es 14:44."
    ts = [event["ts"] for event in graph[1:]]
    assert ts == sorted(ts)
    assert all(isinstance(each, float) for each in ts)


async def test_the_response_of_a_run_has_the_trace_that_the_page_prints() -> None:
    bot = bot_of([calls("get_datetime", tz="local"), says("14:44")], [get_datetime])

    result = await bot.arun("¿Qué hora es?")

    assert [
        (entry["node"], entry["seq"], entry["run_id"] == result.run_id, sorted(entry)) for entry in result.node_trace
    ] == [
        (node, seq, True, ["detail", "node", "run_id", "seq", "ts"])
        for node, seq in (("agent", 1), ("tools", 2), ("agent", 3))
    ]
    assert result.node_trace[0]["detail"]["tool_calls"] == [{"name": "get_datetime", "args": {"tz": "local"}}]
    assert result.node_trace[1]["detail"]["tools_executed"] == result.tools_executed
    assert result.node_trace[2]["detail"]["output"] == "14:44"


async def test_the_planning_snippet_prints_steps_and_the_stream_has_the_printed_order() -> None:
    bot = bot_of(
        [
            calls("set_plan", steps=["Buscar datos", "Generar reporte"]),
            calls_many(call("update_step", step=1, status="running"), call("get_datetime", tz="x")),
            calls("update_step", step=1, status="done"),
            says("Listo."),
        ],
        [get_datetime],
        enable_planning=True,
    )
    printed = []
    items = []

    async for stream_mode, payload in bot.astream_events("go", mode="auto"):
        items.append((stream_mode, payload))
        if stream_mode == "updates":
            for node, update in payload.items():
                if node == "plan":
                    if update.get("plan"):
                        for s in update["plan"]:
                            printed.append(f"{s['step']}. [{s['status']}] {s['description']}")
                    for ev in update.get("step_events", []):
                        printed.append(f"Paso {ev['step']} → {ev['status']}")

    assert printed == [
        "1. [pending] Buscar datos",
        "2. [pending] Generar reporte",
        "1. [running] Buscar datos",
        "2. [pending] Generar reporte",
        "Paso 1 → running",
        "1. [done] Buscar datos",
        "2. [pending] Generar reporte",
        "Paso 1 → done",
    ]
    order = [next(iter(payload)) for mode, payload in items if mode == "updates"]
    assert order == ["agent", "plan", "agent", "plan", "tools", "agent", "plan", "agent"]
    first = updates_of(items, "plan")[0]
    assert first["plan"] == [
        {"step": 1, "description": "Buscar datos", "status": "pending"},
        {"step": 2, "description": "Generar reporte", "status": "pending"},
    ]
    assert "step_events" not in first
    details = [event["detail"] for event in events_of(items, "node_invoked") if event["node"] == "plan"]
    assert details[1]["step_events"] == [{"step": 1, "status": "running"}]
    assert [update["tools_executed"][0]["tool_name"] for update in updates_of(items, "tools")] == ["get_datetime"]


async def test_the_question_snippet_pauses_and_goes_on_with_the_answers() -> None:
    asked = {
        "id": "color",
        "text": "¿Qué color prefieres?",
        "type": "single_choice",
        "options": [{"value": "r", "label": "Rojo"}],
        "required": True,
    }
    model = ScriptedModel([calls("ask_user", questions=[asked]), says("Rojo.")])
    bot = OrchestratorBot(strong_model=model, fast_model=model, instructions="...", enable_user_questions=True)

    async for stream_mode, payload in bot.astream_events("elige", mode="ask", thread_id="t1"):
        if stream_mode == "updates" and "__interrupt__" in payload:
            interrupt = payload["__interrupt__"][0].value
            if interrupt["type"] == "question_request":
                assert interrupt["questions"] == [asked]
                bot.set_resume_command({"color": "r"})

    items = await read(bot.astream_events(None, mode="ask", thread_id="t1"))

    assert [(event["node"], event["seq"]) for event in events_of(items, "node_invoked")] == [
        ("ask_user", 2),
        ("agent", 3),
    ]
    assert events_of(items, "node_invoked")[0]["detail"]["questions"] == [asked]
    assert events_of(items, "graph_topology") == []
    assert "r" in results_in(model.inputs[-1])[0][1]


@pytest.mark.parametrize(
    ("flags", "nodes", "edges"),
    [
        ({}, ["tools"], [("agent", "tools", 1), ("agent", "__end__", 1), ("tools", "agent", 0)]),
        (
            {"enable_planning": True, "enable_user_questions": True},
            ["tools", "plan", "ask_user"],
            [
                ("agent", "tools", 1),
                ("agent", "plan", 1),
                ("agent", "ask_user", 1),
                ("agent", "__end__", 1),
                ("tools", "agent", 0),
                ("plan", "agent", 1),
                ("plan", "tools", 1),
                ("plan", "ask_user", 1),
                ("ask_user", "agent", 0),
            ],
        ),
        (
            {"enable_verification": True, "output_guards": [lambda text: graphwright.GuardDecision.allow()]},
            ["tools", "verify", "output_guard"],
            None,
        ),
    ],
)
def test_the_topology_is_that_of_the_page(flags: Any, nodes: list[str], edges: Any) -> None:
    topology = bot_of([], **flags).get_graph_topology()

    assert topology["entry"] == "agent"
    assert topology["nodes"] == ["__start__", "agent", *nodes, "__end__"]
    found = [(edge["source"], edge["target"], int(edge["conditional"])) for edge in topology["edges"]]
    assert found[0] == ("__start__", "agent", 0)
    if edges is not None:
        assert found[1:] == edges
    else:
        assert {("verify", "output_guard", 1), ("verify", "agent", 1), ("output_guard", "__end__", 1)} <= set(found)
    topology["nodes"].clear()
    assert bot_of([], **flags).get_graph_topology()["nodes"]


async def test_mode_plan_gives_a_text_and_no_tool_is_offered_or_run() -> None:
    ran = []

    async def act() -> str:
        """Act."""
        ran.append(1)
        return "x"

    model = ScriptedModel([calls_many(call("act"), text="1. Act.")])
    bot = bot_of(model, [act], enable_planning=True)

    result = await bot.arun("do", mode="plan")

    assert (result.content, result.success, ran, model.tools_seen) == ("1. Act.", True, [], [[]])
    assert result.plan == []


@pytest.mark.parametrize("mode", ["ASK", "Ask", "", "automatic", None, 1])
async def test_a_mode_with_a_typo_is_refused_by_every_way_of_running(mode: Any) -> None:
    """Nothing runs unasked because a word was misspelt."""
    bot = bot_of([])

    for start in (
        lambda: bot.run("x", mode=mode),
        lambda: bot.start("x", mode=mode),
        lambda: bot.astream_events("x", mode=mode),
    ):
        with pytest.raises(ConfigurationError, match="mode is"):
            start()
    with pytest.raises(ConfigurationError, match="mode is"):
        await bot.arun("x", mode=mode)


def test_the_constructor_takes_the_documented_parameters_by_place() -> None:
    parameters = inspect.signature(OrchestratorBot).parameters.values()

    by_place = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert [each.name for each in by_place] == PARAMETERS
    defaults = {each.name: each.default for each in by_place}
    assert defaults["memory_path"] == "./memory"
    assert (defaults["max_retries"], defaults["max_parallel_tools"], defaults["recursion_limit"]) == (3, 8, 50)
    assert (defaults["compaction_threshold_tokens"], defaults["compaction_keep_messages"]) == (60000, 10)
    assert (defaults["tool_timeout_s"], defaults["output_guard_action"]) == (120.0, "annotate")
    assert [name for name, value in defaults.items() if value is True] == ["enable_prompt_cache", "injection_hardening"]


def test_the_methods_take_their_arguments_in_the_documented_order() -> None:
    def names(method: Any) -> list[str]:
        parameters = inspect.signature(method).parameters.values()
        return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][1:]

    run = ["goal", "context", "thread_id", "images", "history", "mode"]
    assert names(OrchestratorBot.run) == names(OrchestratorBot.arun) == names(OrchestratorBot.start) == run
    assert names(OrchestratorBot.astream_events) == ["goal", "mode", "thread_id", "images", "history", "context"]
    assert inspect.signature(OrchestratorBot.arun).parameters["mode"].default == "auto"
    assert inspect.signature(OrchestratorBot.astream_events).parameters["mode"].default == "ask"


@pytest.mark.parametrize(
    "options",
    [
        {"tool_timeout_s": 0},
        {"tool_timeout_s": "x"},
        {"tool_guards": "x"},
        {"tools": "x"},
        {"tools": [object()]},
        {"recursion_limit": 0},
        {"output_guard_action": "shrug"},
        {"prohibited": "x"},
        {"on_busy": "fork"},
        {"on_paused": "x"},
        {"instructions": None},
        {"verification_on_error": "x"},
        {"memory_scope": "x"},
        {"skills": ["x"]},
        {"compaction_keep_messages": 0},
        {"untrusted_tool_outputs": ["nope"]},
        {"checkpointer": 7},
        {"risk_threshold": "x"},
    ],
)
def test_an_argument_that_does_not_fit_is_refused_by_its_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        bot_of([], options.pop("tools", ()), **options)


def test_a_risk_that_is_no_number_is_refused_when_the_bot_is_built() -> None:
    async def odd() -> str:
        """Be odd."""
        return ""

    odd.risk_level = "high"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match="risk_level of tool 'odd' is 'high'"):
        bot_of([], [odd])


def test_every_public_name_of_the_page_is_at_the_root() -> None:
    names = [
        "OrchestratorBot",
        "IOrchestratorBot",
        "IBot",
        "IConversationBot",
        "AgentUpdate",
        "ToolsUpdate",
        "ToolRecord",
        "StatusEvent",
        "PartialResponseEvent",
        "TokenUsage",
        "QuestionEvent",
        "QuestionItem",
        "QuestionOptionEvent",
        "PlanStep",
        "StepEvent",
        "GraphEdgeSpec",
        "GraphTopologyEvent",
        "NodeInvokedEvent",
        "AbortedEvent",
        "NodeTraceEntry",
        "NodeDetail",
        "GuardRejectedEvent",
        "Skill",
        "load_skills",
        "GuardDecision",
        "GuardContext",
        "ToolGuard",
        "GuardEvent",
        "RiskThresholdGuard",
        "ToolAllowlistGuard",
        "ToolDenylistGuard",
        "BudgetGuard",
        "ArgPatternGuard",
        "ProhibitedActionsGuard",
        "SafetyInputGuard",
        "SafetyOutputGuard",
        "BotResponse",
        "ILanguageModel",
        "Question",
        "QuestionOption",
        "AskUserSchema",
        "AskUserQuestionTool",
        "ASK_USER_TOOL_NAME",
        "GeminiLanguageModel",
        "OpenAILanguageModel",
        "BedrockLanguageModel",
        "DeepSeekLanguageModel",
        "AnthropicLanguageModel",
        "BaseInterface",
    ]

    assert [name for name in names if not hasattr(graphwright, name)] == []
    assert issubclass(OrchestratorBot, IOrchestratorBot)
    assert issubclass(IOrchestratorBot, IBot)
    assert issubclass(IConversationBot, IBot)
    assert isinstance(bot_of([]), IBot)
    assert IConversationBot.__abstractmethods__ == {"abort", "get_response"}


async def test_no_goal_is_refused_before_anything_runs() -> None:
    bot = bot_of([])

    with pytest.raises(ConfigurationError):
        await bot.arun(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="goal is ''"):
        bot.astream_events("", thread_id="t")
    with pytest.raises(ConfigurationError, match="thread_id is missing"):
        bot.astream_events(None)


async def test_prewarming_asks_the_model_once_and_never_raises() -> None:
    model = ScriptedModel([says("hi"), raises(ConnectionError("down"))])
    bot = bot_of(model)

    await bot.a_prewarm()
    await bot.a_prewarm()

    assert [len(messages) for messages in model.inputs] == [1, 1]


def test_threads_without_a_name_never_meet() -> None:
    bot = bot_of(ScriptedModel.answering(lambda _: says("x")))

    ids = {bot.run("x").session_id for _ in range(20)}

    assert len(ids) == 20
    assert all(each is not None and len(each) >= 32 for each in ids)


async def test_run_waits_inside_a_running_loop_and_leaves_asyncio_alone() -> None:
    before = asyncio.run
    bot = bot_of([calls("get_datetime", tz="x"), says("done")], [get_datetime])

    assert bot.run("x").content == "done"
    assert asyncio.run is before
    assert not hasattr(asyncio, "_nest_patched")


def test_a_response_is_read_only_by_its_properties() -> None:
    response = bot_of([says("x")]).run("x")

    assert isinstance(response, BotResponse)
    assert isinstance(response, dict)
    with pytest.raises(AttributeError):
        response.content = "y"  # type: ignore[misc]
