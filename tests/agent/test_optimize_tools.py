"""`optimize_tools=`: what the model is told of many tools, in one run and in the next leg of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.agent import build_agent
from graphwright.engine import PromptGraph, PromptNode
from graphwright.engine.interrupt import interrupt
from graphwright.exceptions import ConfigurationError
from graphwright.messages import AIMessage, text_of
from graphwright.models.base import ModelRequest
from graphwright.runlog import MemoryRunLog, SQLiteRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, calls_many, says
from graphwright.testing import call as call_of
from graphwright.testing.crash import AgentScenario, World, explore
from graphwright.tools import FunctionTool

FRUIT = ("apple", "banana", "cherry", "grape", "kiwi", "lemon", "mango", "peach")
MORE = "request_more_tools"


def sell(fruit: str, sold: list[str] | None = None) -> FunctionTool:
    def run(count: int) -> str:
        if sold is not None:
            sold.append(fruit)
        return f"{count} of {fruit}"

    return FunctionTool(run, name=f"sell_{fruit}", description=f"Hand out the {fruit}. " + "It is very good. " * 30)


def shop(sold: list[str] | None = None) -> list[FunctionTool]:
    return [sell(fruit, sold) for fruit in FRUIT]


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in request.tools] for request in model.requests]


SMALL = {"level": "semantic", "semantic_top_k": 2}


@pytest.mark.parametrize("how", ["ainvoke", "astream"])
async def test_the_tools_of_a_request_are_offered_and_grow_only_when_the_model_asks(how: str) -> None:
    script = [
        calls("sell_cherry", count=1),
        calls(MORE, query="a kiwi"),
        calls("sell_kiwi", count=2),
        says("Here you are."),
    ]
    model = ScriptedModel(script)
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=SMALL)
    asked = {"messages": [{"role": "user", "content": "I want a cherry and an apple"}]}

    if how == "ainvoke":
        result: Any = await agent.ainvoke(asked)
    else:
        result = [chunk async for chunk in agent.astream(asked)][-1]

    first = [MORE, "sell_apple", "sell_cherry"]
    assert offered(model) == [first, first, [*first, "sell_kiwi"], [*first, "sell_kiwi"]]
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert list(after.tools)[: len(before.tools)] == list(before.tools), "the prompt's beginning has changed"
    assert "- sell_kiwi(count): Hand out the kiwi." in text_of(result["messages"][4])
    assert_valid_conversation(result["messages"])


async def test_two_runs_at_once_do_not_see_each_others_tools() -> None:
    def answer(messages: list[Any]) -> Any:
        fruit = "kiwi" if "apple" in text_of(messages[-1]) else "peach"
        return says("Done.") if messages[-1].type == "tool" else calls(MORE, query=fruit)

    seen: dict[str, list[str]] = {}

    class Watched(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Any:
            asked = next(text_of(message) for message in request.messages if message.type == "human")
            seen[asked] = [spec.name for spec in request.tools]
            return await super().complete(request)

    import asyncio

    model = Watched.answering(answer)
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools={**SMALL, "semantic_top_k": 1})
    await asyncio.gather(agent.ainvoke("apple"), agent.ainvoke("lemon"))

    assert seen == {"apple": [MORE, "sell_apple", "sell_kiwi"], "lemon": [MORE, "sell_lemon", "sell_peach"]}


async def test_a_tool_that_was_not_offered_still_runs_when_it_is_called() -> None:
    sold: list[str] = []
    model = ScriptedModel([calls("sell_mango", count=1), says("Sold.")])
    agent = await build_agent(model=model, extra_tools=shop(sold), optimize_tools=SMALL)

    await agent.ainvoke("hello")

    assert (offered(model)[0], sold) == ([MORE], ["mango"])


async def test_tools_are_asked_for_by_name_and_unknown_names_are_told() -> None:
    model = ScriptedModel(
        [calls(MORE, tool_names=["sell_mango", "sell_gold"]), calls(MORE), calls(MORE, query="zzz"), says("Well.")]
    )
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=SMALL)

    result = await agent.ainvoke("hello")

    told = [text_of(message) for message in result["messages"] if message.type == "tool"]
    assert told[0].startswith("You can call these from the next step on:\n- sell_mango(count): ")
    assert told[0].endswith("There is no tool named 'sell_gold'.")
    assert "query: say what the tool should do" in told[1]
    assert told[2] == "Nothing more was found. Ask in other words, or go on with the tools that you have."
    assert offered(model) == [[MORE], *[[MORE, "sell_mango"]] * 3]


async def test_a_short_answer_keeps_the_tools_of_what_it_answers() -> None:
    model = ScriptedModel([says("Gladly.")])
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=SMALL)
    history = [
        {"role": "user", "content": "Could you get me a mango?"},
        {"role": "assistant", "content": "Shall I?"},
        {"role": "user", "content": "Yes, please."},
    ]

    await agent.ainvoke({"messages": history})

    assert offered(model) == [[MORE, "sell_mango"]]


async def test_few_tools_are_all_offered_without_a_way_to_ask_for_more() -> None:
    model = ScriptedModel([says("Hello.")])
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools="semantic")

    await agent.ainvoke("hello")

    assert offered(model) == [[f"sell_{fruit}" for fruit in FRUIT]]


@pytest.mark.parametrize(("level", "most"), [(True, 200), ("minimal", 200), ("standard", 150), ("semantic", 100)])
async def test_descriptions_are_cut_and_arguments_still_checked_in_full(level: Any, most: int) -> None:
    model = ScriptedModel([calls("sell_apple", count="many"), calls("sell_apple", count=3), says("Sold.")])
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=level)

    result = await agent.ainvoke("apple")

    assert all(0 < len(spec.description) <= most for spec in model.requests[0].tools)
    told = [text_of(message) for message in result["messages"] if message.type == "tool"]
    assert "count" in told[0]
    assert told[1] == "3 of apple"


async def test_off_tells_of_every_tool_in_full() -> None:
    model = ScriptedModel([says("Hello."), says("Hello.")])
    for off in (None, False):
        agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=off)
        await agent.ainvoke("hello")

    assert [request.tools for request in model.requests] == [tuple(tool.spec for tool in shop())] * 2


async def test_the_answer_tool_and_a_demanded_tool_are_always_offered() -> None:
    class Bill(BaseModel):
        total: int

    model = ScriptedModel([calls("sell_peach", count=1), calls("final_answer", total=3)])
    step = PromptNode("step", tools=shop(), tool_choice="sell_peach", output_schema=Bill, is_entry=True)
    graph = PromptGraph("one", nodes=[step])
    agent = await build_agent(model=model, agent_pattern=graph, optimize_tools=SMALL)

    await agent.ainvoke("hello")

    assert offered(model) == [["final_answer", MORE, "sell_peach"]] * 2


async def test_a_node_of_ones_own_gets_the_tools_that_its_instructions_are_about() -> None:
    model = ScriptedModel([says("Done.")])
    step = PromptNode("step", instructions="Check the lemon.", tools=shop(), is_entry=True)
    agent = await build_agent(model=model, agent_pattern=PromptGraph("one", nodes=[step]), optimize_tools=SMALL)

    await agent.ainvoke("go on")

    assert offered(model) == [[MORE, "sell_lemon"]]


def asking() -> FunctionTool:
    async def ask_price(fruit: str) -> str:
        """Ask what something costs."""
        return str(await interrupt("price", {"fruit": fruit}))

    made = FunctionTool(ask_price)
    made.reenterable = True
    return made


async def test_a_run_that_goes_on_later_offers_what_it_offered_before(tmp_path: Path) -> None:
    asked = "A kiwi, and ask for the price"
    script = [
        calls(MORE, query="mango"),
        calls_many(call_of("ask_price", fruit="kiwi"), call_of(MORE, query="peach")),
    ]
    before = ScriptedModel(script)
    first = await build_agent(
        model=before,
        extra_tools=[*shop(), asking()],
        optimize_tools={**SMALL, "preserve_tools": {"ask_price"}},
        runlog=SQLiteRunLog(tmp_path / "runs.db"),
    )
    paused = await first.ainvoke(asked)
    await first.shutdown()

    after = ScriptedModel([calls("sell_peach", count=1), says("Sold.")])
    second = await build_agent(
        model=after,
        # More tools that fit would be chosen now, if it were chosen again.
        extra_tools=[*shop(), sell("kiwi_price"), asking()],
        optimize_tools={**SMALL, "preserve_tools": {"ask_price"}},
        runlog=SQLiteRunLog(tmp_path / "runs.db"),
    )
    result = await second.resume(paused.run_id, {paused.pending[0].id: 3})
    await second.shutdown()

    start = [MORE, "ask_price", "sell_kiwi"]
    assert offered(before) == [start, [*start, "sell_mango"]]
    assert offered(after) == [[*start, "sell_mango", "sell_peach"]] * 2
    assert text_of(result) == "Sold."
    assert [spec.description for spec in after.requests[0].tools[1:]] == [
        spec.description for spec in (*before.requests[1].tools[1:], after.requests[0].tools[-1])
    ]


async def test_a_tool_of_ones_own_with_the_name_of_the_fallback_keeps_it() -> None:
    mine = FunctionTool(lambda: "mine", name=MORE, description="Order more kiwi tools for the garden.")
    model = ScriptedModel([calls(MORE), calls(f"{MORE}_", query="mango"), says("Done.")])
    agent = await build_agent(model=model, extra_tools=[*shop(), mine], optimize_tools=SMALL)

    result = await agent.ainvoke("garden")

    assert offered(model) == [[f"{MORE}_", MORE]] * 2 + [[f"{MORE}_", MORE, "sell_mango"]]
    assert text_of(result["messages"][2]) == "mine"


async def test_the_model_is_told_where_tools_come_from_and_offered_at_most_a_hundred() -> None:
    tools = [FunctionTool(lambda: "", name=f"door_{number}", description="Open a door.") for number in range(150)]
    for tool in tools:
        tool.source = "house"
    asked = [calls(MORE, tool_names=[f"door_{at + step}" for step in range(32)]) for at in range(0, 128, 32)]
    model = ScriptedModel([*asked, says("Enough.")])
    agent = await build_agent(model=model, extra_tools=tools, optimize_tools="semantic")

    await agent.ainvoke("hello")

    assert [len(names) for names in offered(model)] == [1, 33, 65, 97, 101]
    assert "150 exist" in model.requests[0].tools[0].description
    assert model.requests[0].tools[0].description.endswith("There are tools of: house.")


async def test_the_offer_grows_the_same_way_wherever_a_run_is_killed() -> None:
    def answer(messages: list[Any]) -> Any:
        done = sum(message.type == "tool" for message in messages)
        steps = [(MORE, {"query": "mango"}), ("sell_mango", {"count": 1}), (MORE, {"query": "peach"})]
        if done == len(steps):
            return says("Done.")
        name, args = steps[done]
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}-call"}])

    whole: list[list[str]] = [[MORE, "sell_kiwi"], *[[MORE, "sell_kiwi", "sell_mango"]] * 2]
    whole.append([*whole[-1], "sell_peach"])
    models: list[ScriptedModel] = []

    async def build(log: Any, world: World) -> Any:
        models.append(ScriptedModel.answering(answer))
        tools = shop()
        for tool in tools:
            tool.idempotent = True
        return await build_agent(model=models[-1], extra_tools=tools, optimize_tools=SMALL, runlog=log)

    report = await explore(AgentScenario(build, "kiwi"), idempotent=[MORE, "sell_mango"], most=30)

    assert report.problems == []
    assert len(report.points) == 30
    for model in models:
        done = [sum(message.type == "tool" for message in request.messages) for request in model.requests]
        assert offered(model) == [whole[count] for count in done]


async def test_a_choice_is_not_kept_for_the_next_run_of_a_session() -> None:
    model = ScriptedModel([calls(MORE, query="mango"), says("One."), says("Two.")])
    agent = await build_agent(model=model, extra_tools=shop(), optimize_tools=SMALL, runlog=MemoryRunLog())

    await agent.ainvoke("kiwi")
    await agent.ainvoke("apple")

    assert offered(model) == [[MORE, "sell_kiwi"], [MORE, "sell_kiwi", "sell_mango"], [MORE, "sell_apple"]]


@pytest.mark.parametrize("bad", ["maximal", 3, {"top": 1}, {"semantic_top_k": -1}, ["semantic"]])
async def test_a_value_that_means_nothing_is_refused_when_the_agent_is_built(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"optimize_tools|semantic_top_k"):
        await build_agent(model=ScriptedModel(), extra_tools=shop(), optimize_tools=bad)
