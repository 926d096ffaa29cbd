"""A run may be killed anywhere: whoever goes on comes to the same end, with every effect once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphwright.agent import build_agent
from graphwright.exceptions import ConfigurationError
from graphwright.messages import AIMessage
from graphwright.runlog import SQLiteRunLog
from graphwright.testing import ScriptedModel
from graphwright.testing._crash_child import load_scenario
from graphwright.testing.crash import AgentScenario, World, explore
from graphwright.tools import FunctionTool

HERE = Path(__file__).with_name("scenarios.py")
SCENARIOS = load_scenario(f"{HERE}:simple")
SHAPES: tuple[str, ...] = load_scenario(f"{HERE}:SHAPES")

TURNS = [[("pay", {"n": 1}), ("ask", {"n": 2})], [("risky", {"n": 3}), ("put", {"n": 4})]]


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_run_comes_to_the_same_end_wherever_it_is_killed(shape: str) -> None:
    report = await explore(SCENARIOS(TURNS, shape), idempotent=["put"], most=14)

    assert report.problems == []
    assert len(report.points) == len(report.transcripts) == len(report.effects) == 14
    assert report.whole.transcript[-1][0] == "ai"
    assert sum(report.whole.effects.values()) >= 3


calls_of_a_turn = st.lists(
    st.tuples(st.sampled_from(["pay", "put", "risky", "ask"]), st.fixed_dictionaries({"n": st.integers(0, 9)})),
    min_size=1,
    max_size=3,
)
scripts = st.lists(calls_of_a_turn, min_size=1, max_size=3)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(turns=scripts, shape=st.sampled_from(SHAPES), deaths=st.integers(1, 3))
def test_any_script_survives_any_crash(turns: Any, shape: str, deaths: int) -> None:
    report = asyncio.run(explore(SCENARIOS(turns, shape), idempotent=["put"], most=15, deaths=deaths))

    assert report.problems == []


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(turns=scripts, shape=st.sampled_from(SHAPES), deaths=st.integers(1, 3))
def test_many_scripts_survive_any_crash(turns: Any, shape: str, deaths: int) -> None:
    report = asyncio.run(explore(SCENARIOS(turns, shape), idempotent=["put"], most=40, deaths=deaths))

    assert report.problems == []


@pytest.mark.slow
async def test_a_killed_process_is_gone_on_with_by_another() -> None:
    report = await explore(f"{HERE}:booking", kill="process", idempotent=["put"], most=3)

    assert report.problems == []
    assert [line[0] for line in report.whole.transcript] == ["human", "ai", "tool", "tool", "ai", "tool", "tool", "ai"]


@pytest.mark.slow
async def test_a_process_may_be_killed_anywhere() -> None:
    report = await explore(f"{HERE}:booking", kill="process", idempotent=["put"], most=35)

    assert report.problems == []
    assert len(report.points) == 35


async def test_a_file_survives_what_memory_does(tmp_path: Path) -> None:
    made: list[SQLiteRunLog] = []

    def log() -> SQLiteRunLog:
        made.append(SQLiteRunLog(tmp_path / f"{len(made)}.db"))
        return made[-1]

    report = await explore(SCENARIOS(TURNS), log_factory=log, idempotent=["put"], most=12)

    assert report.problems == []
    assert len(made) == 13


def careless(effect: Any, *, answer: Any = None, **attributes: Any) -> AgentScenario:
    """Return the scenario of an agent with one tool, whose author may have been careless."""

    def build(log: Any, world: World) -> Any:
        async def act() -> str:
            """Act."""
            return str(await effect(world))

        tool = FunctionTool(act)
        for name, value in attributes.items():
            setattr(tool, name, value)

        def reply(messages: list[Any]) -> AIMessage:
            if messages[-1].type == "tool":
                return AIMessage("done" if answer is None else answer(world))
            return AIMessage("", tool_calls=[{"name": "act", "args": {}, "id": "c1"}])

        return build_agent(model=world.model(ScriptedModel.answering(reply)), extra_tools=[tool], runlog=log)

    return AgentScenario(build, "go")


async def test_an_effect_outside_of_once_is_found_out() -> None:
    from graphwright.engine.interrupt import interrupt

    async def effect(world: World) -> Any:
        world.effect("mail")
        return await interrupt("color", {})

    report = await explore(careless(effect, reenterable=True))

    assert any("the effect 'mail " in problem and "took place" in problem for problem in report.problems)


async def test_a_tool_that_is_wrongly_called_idempotent_is_found_out() -> None:
    async def effect(world: World) -> Any:
        return world.effect("mail")

    report = await explore(careless(effect, idempotent=True))

    assert any("took place 2 times" in problem for problem in report.problems)
    assert (await explore(careless(effect))).problems == []


async def test_a_conversation_that_comes_out_different_is_found_out() -> None:
    async def effect(world: World) -> Any:
        return world.effect("mail")

    def answer(world: World) -> str:
        return f"asked {len(world.records('asked'))} times"

    report = await explore(careless(effect, answer=answer))

    assert any("the conversation is" in problem for problem in report.problems)


async def test_a_scenario_that_cannot_come_back_is_found_out() -> None:
    async def effect(world: World) -> Any:
        world.effect("mail")
        return "sent"

    class Broken(AgentScenario):
        async def resume(self, *args: Any) -> Any:
            raise RuntimeError("it is broken")

    made = careless(effect)
    report = await explore(Broken(made.build, made.input))

    assert any("it did not come back: RuntimeError: it is broken" in problem for problem in report.problems)


async def test_what_goes_wrong_in_the_whole_run_is_raised() -> None:
    async def effect(world: World) -> Any:
        return "sent"

    def answer(world: World) -> str:
        raise ValueError("no answer")

    with pytest.raises(RuntimeError, match="no answer"):
        await explore(careless(effect, answer=answer))


async def test_a_scenario_is_named_for_processes_and_given_for_the_rest() -> None:
    with pytest.raises(ConfigurationError, match="cannot be sent to another process"):
        await explore(SCENARIOS(TURNS), kill="process")
    with pytest.raises(ConfigurationError, match="names a scenario"):
        await explore(f"{HERE}:booking")
    with pytest.raises(ConfigurationError, match="has no 'nothing'"):
        await explore(f"{HERE}:nothing", kill="process")
    with pytest.raises(ConfigurationError, match="there is no file"):
        await explore("nowhere.py:nothing", kill="process")


def test_an_effect_outside_of_a_call_needs_a_key() -> None:
    world = World()

    with pytest.raises(ConfigurationError, match="give it a key there"):
        world.effect("mail")

    assert (world.effect("mail", key="k"), world.effect("mail", key="k", idempotent=True)) == (True, False)
    assert len(world.records("effect")) == 1
