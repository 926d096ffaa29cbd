"""`build_agent` and the agent: what goes in, what comes out, and who is served."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import weakref
from typing import Any

import pytest
from pydantic import BaseModel

import graphwright.agent
from graphwright.agent import (
    AGENT_PATTERNS,
    DEFAULT_MAX_DELEGATION_DEPTH,
    DEFAULT_SYSTEM_PROMPT,
    Agent,
    CallerContext,
    PromptiseAgent,
    build_agent,
    get_current_caller,
)
from graphwright.engine import GraphExecutionError, PromptGraph, PromptNode, node
from graphwright.exceptions import (
    ConfigurationError,
    FeatureOffError,
    RunAbortedError,
    RunTimeoutError,
    UnknownPatternError,
)
from graphwright.messages import AIMessage, HumanMessage, text_of
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, delayed, empty, raises, refuses, says

REFERENCE = [
    "servers",
    "model",
    "instructions",
    "identity",
    "trace_tools",
    "cross_agents",
    "include_broadcast",
    "max_delegation_depth",
    "delegation_timeout",
    "sandbox",
    "observer",
    "observer_agent_id",
    "observe",
    "memory",
    "memory_auto_store",
    "memory_max_results",
    "memory_min_score",
    "memory_timeout",
    "extra_tools",
    "flow",
    "conversation_store",
    "conversation_max_messages",
    "optimize_tools",
    "guardrails",
    "cache",
    "approval",
    "events",
    "on_tool_progress",
    "max_invocation_time",
    "adaptive",
    "context_engine",
    "context_compaction",
    "agent_pattern",
    "pattern",
    "graph_blocks",
    "node_pool",
    "max_agent_iterations",
    "tool_summary",
    "code_action",
    "expose_resources",
    "expose_prompts",
]


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def test_the_signature_has_every_keyword_of_the_reference_with_its_default() -> None:
    parameters = inspect.signature(build_agent).parameters
    assert set(REFERENCE) <= set(parameters)
    assert set(parameters) - set(REFERENCE) == {
        "hooks",
        "output_schema",
        "max_parallel_tools",
        "tool_timeout",
        "allow_self_modification",
        "max_mutations_per_run",
        "human_handler",
        "lightweight_model",
        "runlog",
        "on_busy",
        "on_paused",
        "mcp_sampling",
    }
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    assert parameters["max_agent_iterations"].default == 25
    assert parameters["tool_summary"].default == "off"
    assert PromptiseAgent is Agent
    assert DEFAULT_MAX_DELEGATION_DEPTH == 3
    assert "react" in AGENT_PATTERNS
    assert DEFAULT_SYSTEM_PROMPT
    assert set(graphwright.agent.__all__) <= set(dir(graphwright.agent))


async def test_a_missing_model_says_how_to_give_one() -> None:
    with pytest.raises(ConfigurationError, match='model="openai:gpt-5-mini"'):
        await build_agent()


@pytest.mark.parametrize(
    "options",
    [
        {"code_action": {"exec_timeout": 3}},
    ],
    ids=lambda options: next(iter(options)),
)
async def test_a_keyword_of_a_feature_that_is_not_there_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(FeatureOffError, match=f"^{next(iter(options))}="):
        await build_agent(model=ScriptedModel([]), **options)


async def test_keywords_that_switch_a_feature_off_are_taken() -> None:
    off = {"servers": {}, "sandbox": False, "observe": False, "context_compaction": False, "cross_agents": {}}
    assert (await (await build_agent(model=ScriptedModel(["ok"]), **off)).ainvoke("hi")).text == "ok"


async def test_an_unknown_pattern_lists_the_known_ones() -> None:
    with pytest.raises(UnknownPatternError, match="'reakt'; choose one of react"):
        await build_agent(model=ScriptedModel([]), agent_pattern="reakt")
    with pytest.raises(ConfigurationError, match="agent_pattern is 3"):
        await build_agent(model=ScriptedModel([]), agent_pattern=3)  # type: ignore[arg-type]


async def test_pattern_is_a_deprecated_alias() -> None:
    with pytest.warns(DeprecationWarning, match="agent_pattern="):
        agent = await build_agent(model=ScriptedModel(["ok"]), pattern="react")
    assert (await agent.ainvoke("hi")).text == "ok"
    with pytest.warns(DeprecationWarning, match="agent_pattern="), pytest.raises(ConfigurationError, match="both"):
        await build_agent(model=ScriptedModel([]), pattern="react", agent_pattern="react")


@pytest.mark.parametrize(
    "options",
    [
        {"max_invocation_time": -1},
        {"max_invocation_time": "3"},
        {"max_agent_iterations": 0},
        {"tool_summary": "all"},
        {"tool_timeout": -1},
        {"max_parallel_tools": 0},
        {"extra_tools": "look"},
        {"extra_tools": [3]},
        {"instructions": 3},
        {"hooks": [object()]},
        {"output_schema": int},
        {"model": 3},
    ],
    ids=lambda options: f"{next(iter(options))}",
)
async def test_values_that_do_not_fit_are_refused_when_the_agent_is_built(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        await build_agent(**{"model": ScriptedModel([]), **options})


async def test_instructions_are_the_system_text_and_default_to_ours() -> None:
    class Prompt:
        def render(self, context: Any) -> str:
            return "Rendered."

    for instructions, text in ((None, DEFAULT_SYSTEM_PROMPT), ("Be brief.", "Be brief."), (Prompt(), "Rendered.")):
        model = ScriptedModel(["ok"])
        await (await build_agent(model=model, instructions=instructions)).ainvoke("hi")
        assert text_of(model.inputs[0][0]) == text


async def test_a_custom_graph_runs_as_written_and_instructions_reach_its_prompt_nodes() -> None:
    graph = PromptGraph(
        nodes=[
            PromptNode("a", instructions="Draft.", is_entry=True, default_next="b"),
            PromptNode("b", inject_tools=True),
        ]
    )
    model = ScriptedModel(["one", "two"])
    agent = await build_agent(model=model, agent_pattern=graph, instructions="Be brief.", extra_tools=[look])
    assert (await agent.ainvoke("hi")).text == "two"
    assert [text_of(given[0]) for given in model.inputs] == ["Be brief.\n\nDraft.", "Be brief."]
    assert model.tools_seen == [[], ["look"]]
    assert agent.graph is graph
    plain = ScriptedModel(["one", "two"])
    await (await build_agent(model=plain, agent_pattern=graph)).ainvoke("hi")
    assert text_of(plain.inputs[0][0]) == "Draft."
    with pytest.raises(ConfigurationError, match="graph_blocks"):
        await build_agent(model=plain, agent_pattern=graph, graph_blocks=["x"])


async def test_graph_blocks_reach_the_pattern() -> None:
    model = ScriptedModel(["ok"])
    await (await build_agent(model=model, instructions="A.", graph_blocks=["B."])).ainvoke("hi")
    assert text_of(model.inputs[0][0]) == "A.\n\nB."


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [{"role": "user", "content": "hi"}]},
        {"messages": [("user", "hi")]},
        {"messages": [HumanMessage(content="hi")]},
        {"messages": "hi"},
        {"messages": ("user", "hi")},
        "hi",
        HumanMessage(content="hi"),
        [HumanMessage(content="hi")],
        [("user", "hi")],
        ("user", "hi"),
        {"role": "user", "content": "hi"},
    ],
)
async def test_input_comes_in_every_usual_form(given: Any) -> None:
    model = ScriptedModel(["ok"])
    result = await (await build_agent(model=model)).ainvoke(given)
    assert [text_of(message) for message in result["messages"]] == ["hi", "ok"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"message": "hi"},
        {"messages": []},
        {"messages": [3]},
        {"messages": "hi", "extra": 1},
        [],
        None,
        3,
        [("system", "only")],
        {"messages": [{"role": "wizard", "content": "x"}]},
    ],
)
async def test_any_other_input_is_a_clear_error(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        await (await build_agent(model=ScriptedModel([]))).ainvoke(given)


async def test_an_unknown_keyword_is_an_error_in_every_way_of_running() -> None:
    agent = await build_agent(model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="'sesion_id'"):
        await agent.ainvoke("hi", sesion_id="x")
    with pytest.raises(ConfigurationError, match="'x'"):
        agent.astream("hi", x=1)
    with pytest.raises(ConfigurationError, match="'x'"):
        agent.astream_with_tools("hi", x=1)
    with pytest.raises(ConfigurationError, match="'x'"):
        agent.invoke("hi", x=1)


async def test_features_that_are_off_answer_as_documented() -> None:
    agent = await build_agent(model=ScriptedModel([], name="m"), extra_tools=[look])
    assert agent.get_stats() == {}
    assert (agent.collector, agent.provider, agent.identity) == (None, None, None)
    assert (agent.model_name, agent.tool_names) == ("m", ["look"])
    with pytest.raises(RuntimeError):
        agent.generate_report("x.html")
    for method in (agent.get_session, agent.delete_session, agent.update_session):
        with pytest.raises(RuntimeError, match="no conversation store"):
            await method("s")
    with pytest.raises(RuntimeError):
        await agent.list_sessions()


async def test_shutdown_is_safe_twice_and_a_later_run_is_refused() -> None:
    async with await build_agent(model=ScriptedModel(["ok"])) as agent:
        await agent.ainvoke("hi")
    await agent.shutdown()
    with pytest.raises(ConfigurationError, match="shut down"):
        await agent.ainvoke("hi")


class Person(BaseModel):
    """A person."""

    name: str
    age: int


async def test_a_typed_answer_comes_back_as_an_instance() -> None:
    model = ScriptedModel([calls("look", at="sea"), calls("final_answer", name="Ada", age=36)])
    agent = await build_agent(model=model, output_schema=Person, extra_tools=[look])
    result = await agent.ainvoke("who?")
    assert result.output == Person(name="Ada", age=36)
    assert result.text == '{"name": "Ada", "age": 36}'


async def test_usage_counts_each_call_once_and_cached_tokens_are_no_addition() -> None:
    from graphwright.usage import Usage

    usage = Usage(1000, 50, 1050, 800, 30)
    step = calls("look", at="a")
    step = type(step)(**{**{f: getattr(step, f) for f in step.__dataclass_fields__}, "usage": usage})
    agent = await build_agent(model=ScriptedModel([step, says("ok", usage=usage)]), extra_tools=[look])
    result = await agent.ainvoke("hi")
    assert result.usage.as_dict() == {
        "prompt_tokens": 2000,
        "completion_tokens": 100,
        "total_tokens": 2100,
        "cached_tokens": 1600,
        "reasoning_tokens": 60,
    }
    assert result.report.total_tokens == 2100


# chat


async def test_chat_returns_the_text_and_has_no_history_without_a_store() -> None:
    model = ScriptedModel([says("one", thinking="plan"), says("two")])
    agent = await build_agent(model=model)
    assert await agent.chat("a", session_id="s") == "one"
    assert await agent.chat("b", session_id="s") == "two"
    assert [message.type for message in model.inputs[1]] == ["system", "human"]


async def test_chat_takes_a_system_prompt_for_one_call() -> None:
    model = ScriptedModel(["a", "b"])
    agent = await build_agent(model=model, instructions="Usual.")
    await agent.chat("x", session_id="s", system_prompt="Special.", metadata={"ip": "1"})
    await agent.chat("x", session_id="s")
    assert [text_of(given[0]) for given in model.inputs] == ["Special.", "Usual."]


@pytest.mark.parametrize(
    "reply", [empty(), AIMessage(content=""), AIMessage(content=[]), AIMessage(content=[{"type": "text", "text": ""}])]
)
async def test_chat_gives_an_empty_text_for_an_empty_reply_and_the_next_call_works(reply: Any) -> None:
    agent = await build_agent(model=ScriptedModel([reply, says("fine")]))
    assert await agent.chat("a", session_id="s") == ""
    assert await agent.chat("b", session_id="s") == "fine"


async def test_chat_tells_a_refusal() -> None:
    agent = await build_agent(model=ScriptedModel([refuses("I can't help with that.")]))
    assert await agent.chat("a", session_id="s") == "I can't help with that."


async def test_chat_raises_when_the_provider_fails() -> None:
    agent = await build_agent(model=ScriptedModel([raises(PermissionError("bad key"))]))
    with pytest.raises(GraphExecutionError, match="bad key") as caught:
        await agent.chat("a", session_id="s")
    assert isinstance(caught.value.__cause__, PermissionError)


# who asks


def who() -> str:
    """Say who asks."""
    caller = get_current_caller()
    return str(caller.isolation_key if caller else None)


async def who_async() -> str:
    """Say who asks."""
    return who()


def asking(tool: str) -> ScriptedModel:
    return ScriptedModel.answering(
        lambda messages: says(text_of(messages[-1])) if messages[-1].type == "tool" else calls(tool)
    )


@pytest.mark.parametrize("tool", [who, who_async])
async def test_tools_know_the_caller_in_threads_too_and_callers_are_not_mixed(tool: Any) -> None:
    agent = await build_agent(model=asking(tool.__name__), extra_tools=[tool])
    callers = [CallerContext(user_id=f"u{i}", tenant_id="t" if i % 2 else None) for i in range(20)]
    results = await asyncio.gather(*(agent.ainvoke("who?", caller=caller) for caller in callers))
    assert [result.text for result in results] == [caller.isolation_key for caller in callers]
    assert get_current_caller() is None


async def test_a_nested_agent_inherits_the_caller_and_may_get_another() -> None:
    inner = await build_agent(model=asking("who"), extra_tools=[who])

    async def ask_inner() -> str:
        """Ask."""
        kept = await inner.ainvoke("who?")
        changed = await inner.ainvoke("who?", caller=CallerContext(user_id="other"))
        return f"{kept.text} {changed.text} {who()}"

    outer = await build_agent(model=asking("ask_inner"), extra_tools=[ask_inner])
    result = await outer.ainvoke("go", caller=CallerContext(user_id="ada"))
    assert result.text == "ada other ada"


async def test_hooks_know_the_caller() -> None:
    seen = []

    class Hook:
        async def pre_node(self, node: Any, state: Any) -> None:
            seen.append(who())

    agent = await build_agent(model=ScriptedModel(["ok"]), hooks=[Hook()])
    await agent.ainvoke("hi", caller=CallerContext(user_id="ada"))
    assert seen == ["ada"]


async def test_chat_makes_a_caller_of_the_user_id_and_the_callers_own_wins() -> None:
    agent = await build_agent(model=asking("who"), extra_tools=[who])
    assert await agent.chat("x", session_id="s", user_id="ada") == "ada"
    tenant = CallerContext(tenant_id="t")
    assert await agent.chat("x", session_id="s", user_id="ada", caller=tenant) == "t::ada"
    assert await agent.chat("x", session_id="s", user_id="ada", caller=CallerContext(user_id="eve")) == "eve"


# without a loop


def test_invoke_works_without_a_loop_and_keeps_the_caller() -> None:
    agent = asyncio.run(build_agent(model=asking("who"), extra_tools=[who]))
    assert agent.invoke("who?", caller=CallerContext(user_id="ada")).text == "ada"


async def test_invoke_works_inside_a_running_loop_and_keeps_the_ambient_caller() -> None:
    inner = await build_agent(model=asking("who"), extra_tools=[who])

    async def ask_sync() -> str:
        """Ask."""
        return inner.invoke("who?").text

    outer = await build_agent(model=asking("ask_sync"), extra_tools=[ask_sync])
    assert (await outer.ainvoke("go", caller=CallerContext(user_id="ada"))).text == "ada"


@pytest.mark.parametrize("inside", [True, False])
def test_a_runtime_error_comes_through_invoke_and_nothing_runs_twice(inside: bool) -> None:
    ran = []

    def answer(messages: Any) -> Any:
        ran.append(threading.current_thread().name)
        raise RuntimeError("boom")

    agent = asyncio.run(build_agent(model=ScriptedModel.answering(answer)))

    async def within() -> None:
        agent.invoke("hi")

    with pytest.raises(GraphExecutionError) as caught:
        asyncio.run(within()) if inside else agent.invoke("hi")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert str(caught.value.__cause__) == "boom"
    assert len(ran) == 1


# time, abort


async def test_a_run_past_its_time_is_stopped_with_its_tool() -> None:
    stopped = []

    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)
        return ""

    agent = await build_agent(model=ScriptedModel([calls("slow")]), extra_tools=[slow], max_invocation_time=0.05)
    with pytest.raises(RunTimeoutError, match=r"limit of 0.05 s") as caught:
        await agent.ainvoke("hi")
    assert isinstance(caught.value, TimeoutError)
    assert stopped == [1]


@pytest.mark.parametrize("how", ["astream", "astream_with_tools"])
async def test_streams_have_the_same_time(how: str) -> None:
    agent = await build_agent(model=ScriptedModel([delayed(says("late"), 5)]), max_invocation_time=0.05)
    events = []
    with pytest.raises(RunTimeoutError):
        async for event in getattr(agent, how)("hi"):
            events.append(event)
    assert events == []


async def test_a_timeout_of_the_tools_own_is_no_timeout_of_the_run() -> None:
    async def impatient() -> str:
        """Try."""
        raise TimeoutError("server too slow")

    agent = await build_agent(
        model=ScriptedModel([calls("impatient"), says("ok")]), extra_tools=[impatient], max_invocation_time=30
    )
    assert (await agent.ainvoke("hi")).text == "ok"


async def test_a_run_handle_gives_events_and_the_result() -> None:
    agent = await build_agent(model=ScriptedModel([calls("look", at="x"), says("done")]), extra_tools=[look])
    run = agent.start("go")
    names = [(type(event).__name__, event.seq) async for event in run.events()]
    assert [name for name, _ in names] == (
        [
            "RunStarted",
            "NodeStarted",
            "ModelStarted",
            "ModelFinished",
            "ToolStarted",
            "ToolFinished",
            "NodeFinished",
            "NodeStarted",
            "ModelStarted",
            "TextDelta",
            "ModelFinished",
            "NodeFinished",
            "RunFinished",
        ]
    )
    assert [seq for _, seq in names] == list(range(1, len(names) + 1))
    result = await run.result()
    assert result.text == "done"
    assert result.run_id == run.run_id
    assert [event async for event in run.events()] == []


async def test_readers_of_a_run_come_and_go_without_touching_it() -> None:
    agent = await build_agent(model=ScriptedModel([calls("look", at="x"), says("done")]), extra_tools=[look])
    run = agent.start("go")
    never_read = run.events()
    async for _ in run.events():
        break
    assert (await run.result()).text == "done"
    await never_read.aclose()


async def test_abort_ends_the_run_with_its_tools_and_leaves_a_valid_history() -> None:
    started, cleaned = asyncio.Event(), []

    async def slow() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(1)
        return ""

    agent = await build_agent(model=ScriptedModel([calls("slow")]), extra_tools=[slow])
    run = agent.start("go")
    await started.wait()
    threading.Thread(target=run.abort).start()
    with pytest.raises(RunAbortedError) as caught:
        await run.result()
    assert cleaned == [1]
    assert_valid_conversation(caught.value.messages)
    assert [message.type for message in caught.value.messages] == ["human", "ai", "tool"]


async def test_a_cancelled_wait_for_the_result_leaves_the_run_going() -> None:
    go = asyncio.Event()

    async def waits() -> str:
        """Wait."""
        await go.wait()
        return "ok"

    agent = await build_agent(model=ScriptedModel([calls("waits"), says("done")]), extra_tools=[waits])
    run = agent.start("go")
    waiting = asyncio.create_task(run.result())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    assert (await run.result()).text == "done"


# nothing of a run stays


async def test_fifty_runs_at_once_do_not_mix() -> None:
    def answer(messages: Any) -> Any:
        question = text_of(next(m for m in messages if m.type == "human"))
        number = int(question[1:])
        step = says(f"a{number}") if messages[-1].type == "tool" else calls("look", at=question)
        return delayed(step, (number * 7 % 5) / 1000)

    agent = await build_agent(model=ScriptedModel.answering(answer), extra_tools=[look])
    results = await asyncio.gather(*(agent.ainvoke(f"q{i}") for i in range(50)))
    assert [result.text for result in results] == [f"a{i}" for i in range(50)]
    assert len({result.run_id for result in results}) == 50
    assert all(result.usage.total_tokens == 30 for result in results)
    assert [text_of(result.messages[2]) for result in results] == [f"seen q{i}" for i in range(50)]


async def test_agents_are_freed_after_their_runs() -> None:
    live = []
    for _ in range(50):
        agent = await build_agent(model=ScriptedModel([calls("look", at="x"), says("ok")]), extra_tools=[look])
        await agent.ainvoke("hi")
        async for _ in (await build_agent(model=ScriptedModel(["ok"]))).astream_with_tools("hi"):
            pass
        await agent.shutdown()
        live.append(weakref.ref(agent))
    del agent
    gc.collect()
    assert [ref() for ref in live if ref() is not None] == []


async def test_trace_tools_prints_calls_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    agent = await build_agent(
        model=ScriptedModel([calls("look", at="sea"), says("ok")]), extra_tools=[look], trace_tools=True
    )
    await agent.ainvoke("hi")
    assert '[tool] look({"at": "sea"}) ok' in (printed := capsys.readouterr().out)
    assert "seen sea" in printed


async def test_context_goes_in_and_comes_back() -> None:
    @node("a", is_entry=True)
    async def a(state: Any) -> str:
        state.context["n"] += 1
        return "ok"

    agent = await build_agent(model=ScriptedModel([]), agent_pattern=PromptGraph(nodes=[a]))
    assert (await agent.ainvoke("go", context={"n": 1})).context == {"n": 2}
