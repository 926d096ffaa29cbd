from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright import CallerContext, build_agent
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import ConfigurationError, FeatureOffError, GraphExecutionError
from graphwright.observability import ObservabilityCollector, ObservabilityConfig, ObserveLevel, Transporter
from graphwright.testing import ScriptedModel, calls, says

QUIET: dict[str, Any] = {"transporters": ()}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def broken(api_key: str) -> str:
    """Fail."""
    raise ValueError("no luck with password=hunter2hunter2")


def script() -> ScriptedModel:
    return ScriptedModel([calls("add", a=1, b=2), says("3")])


async def run(agent: Any, how: str) -> None:
    if how == "ainvoke":
        await agent.ainvoke("1 + 2?")
    elif how == "astream":
        async for _ in agent.astream("1 + 2?"):
            pass
    elif how == "astream_with_tools":
        async for _ in agent.astream_with_tools("1 + 2?"):
            pass
    elif how == "start":
        await agent.start("1 + 2?").result()
    else:
        await agent.chat("1 + 2?", session_id="s")


@pytest.mark.parametrize("how", ["ainvoke", "astream", "astream_with_tools", "start", "chat"])
async def test_every_way_of_running_leaves_the_same_record(how: str) -> None:
    agent = await build_agent(model=script(), extra_tools=[add], observe=QUIET)

    await run(agent, how)

    assert agent.collector is not None
    entries = agent.collector.get_timeline()
    assert [entry.event_type for entry in entries] == ["run.start", "model.call", "tool.call", "model.call", "run.end"]
    assert len({entry.run_id for entry in entries}) == 1
    assert entries[2].data["arguments"] == {"a": 1, "b": 2}
    assert entries[2].data["result"] == "3"
    assert entries[-1].data["status"] == "completed"
    stats = agent.get_stats()
    assert (stats["runs"], stats["model_calls"], stats["tool_calls"], stats["errors"]) == (1, 2, 1, 0)
    assert stats["tools"]["add"]["calls"] == 1
    await agent.shutdown()


async def test_an_agent_that_is_not_observed_has_no_figures_and_no_report(tmp_path: Any) -> None:
    for off in (None, False, {"level": "off"}):
        agent = await build_agent(model=says_once(), observe=off)
        await agent.ainvoke("hi")
        assert agent.collector is None
        assert agent.get_stats() == {}
        with pytest.raises(FeatureOffError, match="observe=True"):
            agent.generate_report(tmp_path / "report.html")


def says_once() -> ScriptedModel:
    return ScriptedModel([says("hello")])


async def test_a_listener_that_needs_no_text_leaves_the_model_unstreamed() -> None:
    class Counting(ScriptedModel):
        streamed = 0

        async def stream(self, request: Any) -> Any:
            Counting.streamed += 1
            async for piece in super().stream(request):
                yield piece

    agent = await build_agent(model=Counting([says("a"), says("b")]), observe=QUIET)

    await agent.ainvoke("hi")
    assert Counting.streamed == 0

    async for _ in agent.astream("hi"):
        pass
    assert Counting.streamed == 1


@pytest.mark.parametrize("level", ["basic", "standard", "full"])
async def test_the_level_says_what_is_kept(level: str) -> None:
    agent = await build_agent(model=script(), extra_tools=[add], observe={"level": level, **QUIET})

    await agent.ainvoke("1 + 2?")

    assert agent.collector is not None
    tool = agent.collector.query(event_type="tool.call")[0]
    model = agent.collector.query(event_type="model.call")[-1]
    visits = agent.collector.query(event_type="node.visit")
    assert ("arguments" in tool.data) is (level != "basic")
    assert ("reply" in model.data) is (level == "full")
    assert bool(visits) is (level == "full")
    if level == "full":
        assert [part["role"] for part in model.data["prompt"]] == ["system", "human", "ai", "tool"]
        assert model.data["reply"] == {"role": "ai", "text": "3"}


async def test_credentials_are_taken_out_of_arguments_results_prompts_and_errors() -> None:
    secret, key = "hunter2hunter2", "sk-abcdefghijklmnopqrstuvwx"
    model = ScriptedModel([calls("broken", api_key=key), says(f"your key is {key}")])
    agent = await build_agent(model=model, extra_tools=[broken], observe={"level": "full", **QUIET})

    await agent.ainvoke(f"my password={secret}")

    assert agent.collector is not None
    record = agent.collector.to_json()
    assert secret not in record
    assert key not in record
    assert "[redacted]" in record


async def test_a_failed_tool_and_a_failed_run_are_counted_as_such() -> None:
    model = ScriptedModel([calls("broken", api_key="x"), RuntimeError("the provider is down")])
    agent = await build_agent(model=model, extra_tools=[broken], observe=QUIET)

    with pytest.raises(GraphExecutionError):
        await agent.ainvoke("hi")

    assert agent.collector is not None
    stats = agent.get_stats()
    assert stats["runs_by_status"]["failed"] == 1
    assert stats["tool_errors"] == 1
    failed = agent.collector.query(event_type="model.call", errors_only=True)
    assert len(failed) == 1
    assert "the provider is down" in failed[0].error


async def test_a_run_that_is_aborted_says_so_and_leaves_nothing_open() -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = await build_agent(model=ScriptedModel([calls("wait")]), extra_tools=[wait], observe=QUIET)
    run = agent.start("go")
    await begun.wait()
    run.abort()
    with pytest.raises(Exception, match="ended before"):
        await run.result()

    assert agent.collector is not None
    assert agent.collector.get_timeline()[-1].data["status"] == "aborted"


async def test_a_paused_and_resumed_run_is_two_legs_with_one_run_id(tmp_path: Any) -> None:
    agent = await build_agent(
        model=script(), extra_tools=[add], approval=["add"], runlog=tmp_path / "runs.db", observe=QUIET
    )

    paused = await agent.ainvoke("1 + 2?", session_id="s")
    assert paused.status == "paused"
    result = await agent.resume("s", {paused.pending[0].id: True})

    assert result.text == "3"
    assert agent.collector is not None
    assert {entry.run_id for entry in agent.collector.query(event_type="run.end")} == {paused.run_id}
    statuses = [entry.data["status"] for entry in agent.collector.query(event_type="run.end")]
    assert statuses == ["paused", "completed"]
    await agent.shutdown()


async def test_a_collector_is_shared_and_a_peer_is_recorded_once_under_its_own_name() -> None:
    shared = ObservabilityCollector()
    peer = await build_agent(model=ScriptedModel([says("42")]), observer=shared, observer_agent_id="oracle")
    model = ScriptedModel([calls("ask_agent_oracle", message="what?"), says("It is 42.")])
    agent = await build_agent(
        model=model, cross_agents={"oracle": CrossAgent(peer)}, observer=shared, observer_agent_id="boss"
    )

    await agent.ainvoke("ask")

    kinds = [(entry.event_type, entry.agent_id) for entry in shared.get_timeline()]
    assert kinds == [
        ("run.start", "boss"),
        ("model.call", "boss"),
        ("model.call", "oracle"),
        ("tool.call", "boss"),
        ("model.call", "boss"),
        ("run.end", "boss"),
    ]
    assert shared.get_stats()["runs"] == 1


async def test_entries_belong_to_their_caller_and_are_purged_with_them() -> None:
    agent = await build_agent(model=ScriptedModel([says("a"), says("b"), says("c")]), observe=QUIET)
    for caller in (CallerContext("ann"), CallerContext("ann", "acme"), CallerContext("bob")):
        await agent.ainvoke("hi", caller=caller)

    assert agent.collector is not None
    mine = agent.collector.for_user("ann", tenant_id="acme")
    assert {entry.caller_key for entry in mine} == {"acme::ann"}
    assert len(mine) == 3
    assert agent.collector.purge_user(CallerContext("ann", "acme")) == 3
    assert agent.collector.for_user("ann", tenant_id="acme") == []
    assert len(agent.collector.for_user("ann")) == 3
    assert (await agent.purge_user("bob"))["observed"] == 3
    assert agent.collector.for_user("bob") == []


async def test_a_transporter_that_fails_stops_neither_the_others_nor_the_run(caplog: Any) -> None:
    class Bad(Transporter):
        name = "bad"

        def export(self, entry: Any) -> None:
            raise TimeoutError("no")

        async def flush(self) -> None:
            raise TimeoutError("no")

    class Good(Transporter):
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.closed = False

        def export(self, entry: Any) -> None:
            self.seen.append(entry.event_type)

        async def close(self) -> None:
            self.closed = True

    good = Good()
    agent = await build_agent(model=says_once(), observe={"transporters": [Bad(), good]})

    result = await agent.ainvoke("hi")
    await agent.shutdown()

    assert result.text == "hello"
    assert good.seen == ["run.start", "model.call", "run.end"]
    assert good.closed
    assert caplog.text.count("the bad transporter failed to export") == 1


async def test_a_thousand_runs_at_once_share_a_collector_without_mixing() -> None:
    collector = ObservabilityCollector(max_entries=2000)

    async def one(number: int) -> str:
        agent = await build_agent(model=says_once(), observer=collector, observer_agent_id=f"agent-{number % 10}")
        return (await agent.ainvoke("hi", caller=CallerContext(f"user-{number}"))).run_id

    run_ids = await asyncio.gather(*(one(number) for number in range(1000)))

    stats = collector.get_stats()
    assert (stats["runs"], stats["model_calls"]) == (1000, 1000)
    assert (stats["total_entries"], stats["dropped_entries"]) == (2000, 1000)
    assert set(collector._figures.agents) == {f"agent-{number}" for number in range(10)}
    kept = collector.get_timeline(run_ids[-1])
    assert {entry.caller_key for entry in kept} == {"user-999"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observe": "yes"}, "observe is 'yes'"),
        ({"observe": {"levle": 1}}, "no field 'levle'"),
        ({"observe": {"level": "loud"}}, "level has 'loud'"),
        ({"observe": {"transporters": ["fax"]}}, "'fax'"),
        ({"observe": {"transporters": ["webhook"]}}, "webhook_url"),
        ({"observe": {"transporters": ["callback"]}}, "on_event"),
        ({"observe": {"max_entries": 0}}, "max_entries is 0"),
        ({"observer": object()}, "give an ObservabilityCollector"),
        ({"observer_agent_id": ""}, "observer_agent_id is ''"),
        ({"events": object()}, "give an EventNotifier"),
    ],
)
async def test_what_does_not_fit_is_refused_when_the_agent_is_built(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await build_agent(model=says_once(), **options)


def test_the_configuration_has_the_documented_defaults() -> None:
    config = ObservabilityConfig()
    assert config.level is ObserveLevel.STANDARD
    assert config.keeps_tool_io
    assert not config.keeps_prompts
    assert (config.max_entries, config.prometheus_port, config.console_live) == (100_000, 9090, False)
