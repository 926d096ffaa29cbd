"""Agents with a flow: each conversation its own, kept with the conversation, the same after a pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from graphwright import CallerContext, ConfigurationError, GraphExecutionError, build_agent
from graphwright.conversations import InMemoryConversationStore, SQLiteConversationStore
from graphwright.prompts import Block
from graphwright.prompts.flows import ConversationFlow, phase
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, raises, says
from graphwright.testing._power import CrashPoint, Power, PowerCut, ShakyLog


class Count(ConversationFlow):
    blocks = (Block("turn", lambda seen: f"turn {seen['turn']} in {seen['phase']}"),)

    @phase()
    def ask(self, message: str) -> str | None:
        return "done" if message == "next" else None

    @phase()
    def done(self, message: str) -> None:
        self.data["last"] = message


async def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 3"


def systems(model: ScriptedModel) -> list[str]:
    return [str(messages[0].content) for messages in model.inputs]


async def _ainvoke(agent: Any, text: str, **where: Any) -> None:
    await agent.ainvoke(text, **where)


async def _astream(agent: Any, text: str, **where: Any) -> None:
    async for _ in agent.astream(text, **where):
        pass


async def _with_tools(agent: Any, text: str, **where: Any) -> None:
    async for _ in agent.astream_with_tools(text, **where):
        pass


async def _start(agent: Any, text: str, **where: Any) -> None:
    await agent.start(text, **where).result()


async def _chat(agent: Any, text: str, **where: Any) -> None:
    await agent.chat(text, **where)


@pytest.mark.parametrize("how", [_ainvoke, _astream, _with_tools, _start, _chat])
async def test_the_prompt_of_the_flow_comes_first_and_moves_with_the_session(
    how: Callable[..., Awaitable[None]],
) -> None:
    model = ScriptedModel([says("1"), says("2"), says("3")])
    agent = await build_agent(
        model=model, instructions="Be brief.", flow=Count, extra_tools=[look], tool_summary="names"
    )

    await how(agent, "hi", session_id="s")
    await how(agent, "next", session_id="s")
    await how(agent, "hi", session_id="other")

    assert systems(model) == [
        "turn 1 in ask\n\nBe brief.\n\nAvailable tools: look",
        "turn 2 in done\n\nBe brief.\n\nAvailable tools: look",
        "turn 1 in ask\n\nBe brief.\n\nAvailable tools: look",
    ]
    assert [len([m for m in messages if m.type == "system"]) for messages in model.inputs] == [1, 1, 1]


async def test_without_instructions_the_default_prompt_is_not_added() -> None:
    model = ScriptedModel([says("1")])
    agent = await build_agent(model=model, flow=Count())
    await agent.ainvoke("hi")
    assert systems(model) == ["turn 1 in ask"]


async def test_two_callers_of_one_session_have_each_their_own_flow() -> None:
    model = ScriptedModel([says("x")] * 5)
    agent = await build_agent(model=model, flow=Count)
    ann, acme = CallerContext(user_id="ann"), CallerContext(user_id="ann", tenant_id="acme")

    await agent.ainvoke("hi", caller=ann, session_id="s")
    await agent.ainvoke("hi", caller=ann, session_id="s")
    await agent.ainvoke("hi", caller=acme, session_id="s")
    await agent.ainvoke("hi", session_id="s")
    await agent.ainvoke("hi", caller=ann)

    assert [text.split()[1] for text in systems(model)] == ["1", "2", "1", "1", "1"]
    found = agent.get_flow("s", caller=ann)
    assert found is not None
    assert found.turn == 2
    found.transition("done")
    assert agent.get_flow("s", user_id="ann").current_phase == "ask"  # type: ignore[union-attr]
    assert agent.get_flow("t", caller=ann) is None


async def test_a_call_of_nobody_gets_a_flow_made_from_the_messages_it_brings() -> None:
    model = ScriptedModel([says("x"), says("y")])
    agent = await build_agent(model=model, flow=Count)
    talk = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "?"},
        {"role": "user", "content": "next"},
    ]

    await agent.ainvoke({"messages": talk})
    await agent.ainvoke("hi")

    assert systems(model) == ["turn 2 in done", "turn 1 in ask"]


async def test_the_flow_is_kept_with_the_conversation_over_processes(tmp_path: Path) -> None:
    for turn, message in enumerate(("hi", "next", "more"), 1):
        store = SQLiteConversationStore(str(tmp_path / "talk.db"))
        model = ScriptedModel([says("x")])
        agent = await build_agent(model=model, flow=Count, conversation_store=store)

        await agent.chat(message, session_id="s", user_id="ann", metadata={"mine": turn})

        assert systems(model) == [f"turn {turn} in {'ask' if turn == 1 else 'done'}"]
        await store.close()

    store = SQLiteConversationStore(str(tmp_path / "talk.db"))
    asked = [message for message in await store.load_messages("s") if message.role == "user"]
    assert [message.metadata["mine"] for message in asked] == [1, 2, 3]
    assert asked[-1].metadata["_flow"] == {"phase": "done", "turn": 3, "active": [], "data": {"last": "more"}}
    await store.close()


async def test_a_turn_that_fails_leaves_the_flow_where_it_was() -> None:
    store = InMemoryConversationStore()
    for kept in (None, store):
        model = ScriptedModel([says("x"), raises(ValueError("no")), says("y")])
        agent = await build_agent(model=model, flow=Count, conversation_store=kept)
        await agent.chat("hi", session_id="s")
        with pytest.raises(GraphExecutionError):
            await agent.chat("next", session_id="s")
        await agent.chat("hi", session_id="s")

        assert systems(model) == ["turn 1 in ask", "turn 2 in done", "turn 2 in ask"]


async def test_where_the_conversation_cannot_be_read_the_flow_goes_on_from_memory_and_is_not_written_over() -> None:
    class Away(InMemoryConversationStore):
        away = False

        async def load_messages(self, *args: Any, **kwargs: Any) -> Any:
            if self.away:
                raise OSError("away")
            return await super().load_messages(*args, **kwargs)

    store = Away()
    model = ScriptedModel([says("x")] * 3)
    agent = await build_agent(model=model, flow=Count, conversation_store=store)
    await agent.chat("next", session_id="s")
    store.away = True
    await agent.chat("hi", session_id="s")
    store.away = False
    await agent.chat("hi", session_id="s")

    assert systems(model) == ["turn 1 in done", "turn 2 in done", "turn 2 in done"]


async def test_what_the_flow_notes_and_no_store_can_keep_is_refused_before_the_model_is_asked() -> None:
    class Odd(ConversationFlow):
        @phase()
        def only(self, message: str) -> None:
            self.data["bad"] = object()

    model = ScriptedModel([])
    agent = await build_agent(model=model, flow=Odd, conversation_store=InMemoryConversationStore())
    with pytest.raises(ConfigurationError, match="data of the flow cannot be kept"):
        await agent.chat("hi", session_id="s")
    assert model.requests == []


@pytest.mark.parametrize("stored", [False, True])
async def test_a_paused_turn_goes_on_with_the_prompt_it_began_with_and_moves_the_flow_once(stored: bool) -> None:
    log = MemoryRunLog()
    store = InMemoryConversationStore() if stored else None
    options: dict[str, Any] = {
        "flow": Count, "extra_tools": [look], "approval": ["look"], "runlog": log, "conversation_store": store
    }  # fmt: skip
    model = ScriptedModel([calls("look", what="a")])
    agent = await build_agent(model=model, **options)
    with pytest.raises(Exception, match="paused"):
        await agent.chat("hi", session_id="s")

    later = ScriptedModel([says("3"), says("4")])
    other = await build_agent(model=later, **options)
    await other.resume("s", True)
    assert systems(model) + systems(later) == ["turn 1 in ask"] * 2

    went_on = other if stored else agent  # without a store the flow is where the turn began
    if not stored:
        went_on._engine.model = other._engine.model
    await went_on.chat("next", session_id="s")
    assert systems(later)[-1] == "turn 2 in done"


async def test_a_turn_that_was_cut_off_keeps_its_message_and_its_flow_when_it_goes_on() -> None:
    class Mortal(InMemoryConversationStore):
        dead = False

        async def append_messages(self, *args: Any, **kwargs: Any) -> int:
            if self.dead:
                raise OSError("the process is gone")
            return await super().append_messages(*args, **kwargs)

    store, log, power = Mortal(), MemoryRunLog(), Power()
    shaky = ShakyLog(log, power)

    async def cut(what: str) -> str:
        """Lose the power."""
        store.dead = True
        power.point = CrashPoint(power.steps + 1, "before")
        return what

    options: dict[str, Any] = {"flow": Count, "extra_tools": [cut], "conversation_store": store}
    agent = await build_agent(model=ScriptedModel([says("x"), calls("cut", what="a")]), runlog=shaky, **options)
    await agent.chat("hi", session_id="s")
    with pytest.raises(PowerCut):
        await agent.chat("next", session_id="s", metadata={"mine": 1})
    await shaky.let_go()
    store.dead = False

    model = ScriptedModel([says("y"), says("z")])
    again = await build_agent(model=model, runlog=log, **options)
    await again.resume("s")
    await again.chat("more", session_id="s")

    assert systems(model) == ["turn 2 in done", "turn 3 in done"]
    kept = await store.load_messages("s")
    assert [message.role for message in kept] == [
        "user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert [message.content for message in kept if message.role == "user"] == ["hi", "next", "more"]
    assert kept[2].metadata["mine"] == 1
    assert [message.metadata["_flow"]["turn"] for message in kept if message.role == "user"] == [1, 2, 3]


async def test_the_system_prompt_of_a_chat_holds_when_its_run_goes_on() -> None:
    options: dict[str, Any] = {"extra_tools": [look], "approval": ["look"], "runlog": MemoryRunLog()}
    agent = await build_agent(model=ScriptedModel([calls("look", what="a")]), **options)
    with pytest.raises(Exception, match="paused"):
        await agent.chat("hi", session_id="s", system_prompt="Speak French.")

    later = ScriptedModel([says("3")])
    await (await build_agent(model=later, **options)).resume("s", True)

    assert systems(later) == ["Speak French."]


async def test_an_agent_that_is_asked_by_another_goes_on_with_its_prompt_after_a_pause() -> None:
    from graphwright.cross_agent import CrossAgent

    async def agents(outer: ScriptedModel, inner: ScriptedModel) -> tuple[Any, Any]:
        peer = await build_agent(model=inner, flow=Count, extra_tools=[look], approval=["look"])
        return await build_agent(model=outer, cross_agents={"peer": CrossAgent(agent=peer)}, runlog=log), peer

    log = MemoryRunLog()
    inner = ScriptedModel([calls("look", what="a")])
    agent, peer = await agents(ScriptedModel([calls("ask_agent_peer", message="next")]), inner)
    result = await agent.ainvoke("hi", session_id="s")
    assert result.status == "paused"
    assert peer.get_flow("s").turn == 1

    later = ScriptedModel([says("3")])
    again, _ = await agents(ScriptedModel([says("done")]), later)
    assert (await again.resume(result.run_id, True)).text == "done"

    assert systems(inner) + systems(later) == ["turn 1 in done"] * 2


async def test_a_person_is_removed_from_the_flows() -> None:
    agent = await build_agent(model=ScriptedModel([says("x"), says("y")]), flow=Count)
    await agent.ainvoke("hi", caller=CallerContext(user_id="ann"), session_id="s")
    await agent.ainvoke("hi", caller=CallerContext(user_id="bob"), session_id="s")

    assert await agent.purge_user("ann") == {"flows": 1}
    assert agent.get_flow("s", user_id="ann") is None
    assert agent.get_flow("s", user_id="bob") is not None


@pytest.mark.parametrize("given", ["x", dict, ConversationFlow])
async def test_what_is_no_flow_is_refused_when_the_agent_is_built(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        await build_agent(model=ScriptedModel([]), flow=given)
