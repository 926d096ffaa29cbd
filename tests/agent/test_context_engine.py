"""Agents with a context engine: the layers reach the model and bound the tool loop, in every way of running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from graphwright import ConfigurationError, ContextEngine, build_agent
from graphwright.caller import CallerContext, get_current_caller
from graphwright.engine.compaction import ContextCompaction
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, says


async def look(what: str) -> str:
    """Look something up."""
    return f"{what}: " + "data " * 400


async def small(what: str) -> str:
    """Look something small up."""
    return "3"


async def _ainvoke(agent: Any, **where: Any) -> None:
    await agent.ainvoke("price?", **where)


async def _astream(agent: Any, **where: Any) -> None:
    async for _ in agent.astream("price?", **where):
        pass


async def _with_tools(agent: Any, **where: Any) -> None:
    async for _ in agent.astream_with_tools("price?", **where):
        pass


async def _start(agent: Any, **where: Any) -> None:
    await agent.start("price?", **where).result()


async def _chat(agent: Any, **where: Any) -> None:
    await agent.chat("price?", session_id="s", caller=where["caller"])


@pytest.mark.parametrize("how", [_ainvoke, _astream, _with_tools, _start, _chat])
async def test_the_layers_are_shown_in_every_way_of_running(how: Callable[..., Awaitable[None]]) -> None:
    def who(seen: Mapping[str, Any]) -> str:
        caller = get_current_caller()
        return f"The user is {caller.user_id}." if caller is not None else ""

    context = ContextEngine(model_context_window=4000)
    context.add_layer("user", content=who)
    model = ScriptedModel([says("3")])
    agent = await build_agent(model=model, instructions="Be brief.", context_engine=context)

    await how(agent, caller=CallerContext(user_id="ann"))

    assert model.inputs[0][0].content == "Be brief.\n\nuser:\nThe user is ann."
    report = context.get_report()
    assert report is not None
    assert (report.window, report.cut, report.layers[0].name) == (4000, (), "user")


async def test_a_layer_is_shown_the_context_of_the_run() -> None:
    context = ContextEngine()
    context.add_layer("seen", content=lambda seen: f"{seen['a']} {seen['b']}")
    model = ScriptedModel([says("x")])
    agent = await build_agent(model=model, instructions="i", context_engine=context)

    await agent.ainvoke({"messages": "hi", "context": {"a": 1, "b": 1}}, context={"b": 2})

    assert model.inputs[0][0].content == "i\n\nseen:\n1 2"


async def test_what_is_left_of_the_window_bounds_the_tool_loop() -> None:
    rounds = 12
    script = [*(calls("look", what=f"fruit {n}") for n in range(rounds)), says("done")]
    context = ContextEngine(model_context_window=3000, response_reserve=500)
    context.add_layer("facts", content="fact " * 200)
    model = ScriptedModel(script)
    agent = await build_agent(model=model, extra_tools=[look], context_engine=context, instructions="Be brief.")

    result = await agent.ainvoke("price?")

    limit = context.limit(agent.tools and agent._engine.tools.specs)
    sizes = [ContextCompaction().tokens(messages) for messages in model.inputs]
    assert max(sizes) <= limit < 2500
    assert all(messages[0].content.startswith("Be brief.\n\nfacts:\nfact") for messages in model.inputs)
    for messages in model.inputs:
        assert_valid_conversation([message for message in messages if message.type != "system"])
    assert len(result["messages"]) == 2 * rounds + 2


async def test_the_window_is_that_of_the_models_profile() -> None:
    from langchain_core.language_models import FakeListChatModel

    context = ContextEngine()
    model = FakeListChatModel(responses=["x"], profile={"max_input_tokens": 2222})
    agent = await build_agent(model=model, context_engine=context)
    await agent.ainvoke("hi")
    assert context.get_report().window == 2222  # type: ignore[union-attr]


async def test_compaction_that_is_off_stays_off() -> None:
    context = ContextEngine(model_context_window=800, response_reserve=0)
    model = ScriptedModel([calls("look", what="a"), calls("look", what="b"), says("x")])
    agent = await build_agent(model=model, extra_tools=[look], context_engine=context, context_compaction=False)
    await agent.ainvoke("price?")
    assert [len(messages) for messages in model.inputs] == [2, 4, 6]


async def test_a_paused_run_goes_on_with_the_layers_it_began_with() -> None:
    def agent_with(text: str, model: ScriptedModel) -> Any:
        context = ContextEngine(model_context_window=4000)
        context.add_layer("day", content=text)
        return build_agent(
            model=model, instructions="i", extra_tools=[small], approval=["small"], runlog=log, context_engine=context
        )

    log = MemoryRunLog()
    result = await (await agent_with("monday", ScriptedModel([calls("small", what="a")]))).ainvoke("price?")
    later = ScriptedModel([says("3")])

    await (await agent_with("tuesday", later)).resume(result.run_id, True)

    assert later.inputs[0][0].content == "i\n\nday:\nmonday"


async def test_what_is_no_context_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give a ContextEngine"):
        await build_agent(model=ScriptedModel([]), context_engine=object())
