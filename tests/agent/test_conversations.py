"""Conversations that an agent keeps: `chat`, its sessions, and whose they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from graphwright import CallerContext, ConfigurationError, FeatureOffError, GraphExecutionError, build_agent
from graphwright.conversations import InMemoryConversationStore, SQLiteConversationStore, generate_session_id
from graphwright.engine import PromptGraph, PromptNode
from graphwright.engine.nodes import HumanNode
from graphwright.exceptions import RunPausedError, SessionAccessDenied, StoreUnavailable
from graphwright.run_events import ConversationNotSaved
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, raises, says


async def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 3"


def said(store_messages: list[Any]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in store_messages]


async def test_a_conversation_goes_on_over_turns_agents_and_processes(tmp_path: Path) -> None:
    sid = generate_session_id()
    for turn, answer in enumerate(("Hello Ann.", "You said hello.", "Bye.")):
        store = SQLiteConversationStore(str(tmp_path / "talk.db"))
        model = ScriptedModel([says(answer)])
        agent = await build_agent(model=model, conversation_store=store)

        assert await agent.chat(f"turn {turn}", session_id=sid, user_id="ann") == answer

        shown = [message.content for message in model.requests[0].messages if message.type != "system"]
        assert len(shown) == 2 * turn + 1
        await store.close()


async def test_tool_exchanges_are_kept_and_replayed_as_pairs() -> None:
    store = InMemoryConversationStore()
    model = ScriptedModel([calls("look", what="mango"), says("3"), says("again 3")])
    agent = await build_agent(model=model, extra_tools=[look], conversation_store=store)

    await agent.chat("price?", session_id="s")
    await agent.chat("again?", session_id="s")

    assert [role for role, _ in said(await store.load_messages("s"))] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    replayed = [message for message in model.requests[2].messages if message.type != "system"]
    assert [message.type for message in replayed] == ["human", "ai", "tool", "ai", "human"]
    assert_valid_conversation(replayed)


async def test_metadata_is_kept_with_the_users_message_and_the_first_one_is_the_title() -> None:
    store = InMemoryConversationStore()
    agent = await build_agent(model=ScriptedModel([says("a"), says("b")]), conversation_store=store)

    await agent.chat("What is this about?", session_id="s", metadata={"channel": "web"})
    await agent.chat("And more?", session_id="s")

    assert (await store.load_messages("s"))[0].metadata["channel"] == "web"
    info = await agent.get_session("s")
    assert (info.title, info.message_count) == ("What is this about?", 4)


async def test_a_session_is_nobody_elses() -> None:
    agent = await build_agent(
        model=ScriptedModel([says("hi"), says("no"), says("no")]), conversation_store=InMemoryConversationStore()
    )
    await agent.chat("secret", session_id="s", user_id="ann")
    acme = CallerContext(user_id="ann", tenant_id="acme")

    for stranger in ({"user_id": "bob"}, {}, {"caller": acme}):
        with pytest.raises(SessionAccessDenied) as refused:
            await agent.chat("let me in", session_id="s", **stranger)
        assert "ann" not in str(refused.value)
        with pytest.raises(SessionAccessDenied):
            await agent.get_session("s", **stranger)
        with pytest.raises(SessionAccessDenied):
            await agent.delete_session("s", **stranger)
    with pytest.raises(SessionAccessDenied):
        await agent.update_session("s", calling_user_id="bob", title="mine")
    assert await agent.list_sessions() == []
    assert await agent.list_sessions(user_id="bob") == []
    assert [info.session_id for info in await agent.list_sessions(user_id="ann")] == ["s"]
    assert [info.session_id for info in await agent.list_sessions(admin=True)] == ["s"]
    assert (await agent.get_session("s", admin=True)).message_count == 2
    assert await agent.delete_session("s", user_id="ann")


async def test_the_owner_changes_and_deletes_what_is_theirs() -> None:
    agent = await build_agent(model=ScriptedModel([says("hi")]), conversation_store=InMemoryConversationStore())
    await agent.chat("hello", session_id="s", user_id="ann")

    await agent.update_session("s", calling_user_id="ann", title="Greetings", metadata={"starred": True})

    info = await agent.get_session("s", user_id="ann")
    assert (info.title, info.metadata) == ("Greetings", {"starred": True})
    assert await agent.delete_session("s", user_id="ann")
    assert await agent.get_session("s", user_id="ann") is None
    assert not await agent.delete_session("s", user_id="ann")


async def test_fifty_first_turns_at_once_make_one_owner() -> None:
    agent = await build_agent(model=ScriptedModel([says("hi")] * 50), conversation_store=InMemoryConversationStore())

    ended = await asyncio.gather(
        *(agent.chat("first", session_id="s", user_id=f"user-{n}") for n in range(50)), return_exceptions=True
    )

    assert ended.count("hi") == 1
    assert sum(isinstance(end, SessionAccessDenied) for end in ended) == 49


async def test_turns_at_once_on_one_session_are_all_kept_whole() -> None:
    store = InMemoryConversationStore()
    agent = await build_agent(model=ScriptedModel([says("yes")] * 10), conversation_store=store)

    await asyncio.gather(*(agent.chat(f"q{n}", session_id="s") for n in range(10)))

    kept = said(await store.load_messages("s"))
    assert len(kept) == 20
    assert [role for role, _ in kept] == ["user", "assistant"] * 10
    assert sorted(text for role, text in kept if role == "user") == sorted(f"q{n}" for n in range(10))


async def test_a_failed_run_keeps_the_users_message_and_the_next_turn_goes_on() -> None:
    store = InMemoryConversationStore()
    model = ScriptedModel([raises(ValueError("no")), says("back")])
    agent = await build_agent(model=model, conversation_store=store)
    with pytest.raises(GraphExecutionError):
        await agent.chat("first", session_id="s")

    answer = await agent.chat("second", session_id="s")

    assert answer == "back"
    assert said(await store.load_messages("s")) == [("user", "first"), ("user", "second"), ("assistant", "back")]


async def test_a_cancelled_turn_keeps_what_was_said_as_valid_pairs() -> None:
    store, working = InMemoryConversationStore(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        working.set()
        await asyncio.Event().wait()
        return ""

    agent = await build_agent(
        model=ScriptedModel([calls("wait"), says("later")]), extra_tools=[wait], conversation_store=store
    )
    task = asyncio.ensure_future(agent.chat("go", session_id="s"))
    await working.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [role for role, _ in said(await store.load_messages("s"))] == ["user", "assistant", "tool"]
    assert await agent.chat("and now?", session_id="s") == "later"


class Flaky(InMemoryConversationStore):
    """A store that is away when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.away: set[str] = set()

    def _look(self, what: str) -> None:
        if what in self.away:
            raise StoreUnavailable("the store is away")

    async def claim_session(self, *args: Any, **options: Any) -> Any:
        self._look("claim")
        return await super().claim_session(*args, **options)

    async def load_messages(self, *args: Any, **options: Any) -> Any:
        self._look("load")
        return await super().load_messages(*args, **options)

    async def append_messages(self, *args: Any, **options: Any) -> Any:
        self._look("append")
        return await super().append_messages(*args, **options)


async def test_an_owner_that_cannot_be_checked_is_no_answer() -> None:
    store = Flaky()
    store.away = {"claim"}
    model = ScriptedModel([says("never")])
    agent = await build_agent(model=model, conversation_store=store)

    with pytest.raises(RuntimeError, match="could not be checked"):
        await agent.chat("hi", session_id="s", user_id="ann")

    assert model.requests == []


async def test_a_history_that_cannot_be_read_does_not_stop_the_answer_nor_what_is_kept() -> None:
    store = Flaky()
    agent = await build_agent(model=ScriptedModel([says("one"), says("two")]), conversation_store=store)
    await agent.chat("a", session_id="s")
    store.away = {"load"}

    assert await agent.chat("b", session_id="s") == "two"

    store.away = set()
    assert [text for _, text in said(await store.load_messages("s"))] == ["a", "one", "b", "two"]


async def test_what_could_not_be_kept_is_told_and_kept_before_the_next_turn() -> None:
    store = Flaky()
    model = ScriptedModel([says("one"), says("two"), says("three")])
    agent = await build_agent(model=model, conversation_store=store)
    store.away = {"append"}

    assert await agent.chat("a", session_id="s") == "one"
    events = [event async for event in agent.chat_stream("b", session_id="s")]
    store.away = set()
    assert await agent.chat("c", session_id="s") == "three"

    assert events[-1].full_response == "two"
    assert [text for _, text in said(await store.load_messages("s"))] == ["a", "one", "b", "two", "c", "three"]
    assert [message.content for message in model.requests[2].messages if message.type != "system"] == [
        "a", "one", "b", "two", "c",
    ]  # fmt: skip


async def test_a_store_that_takes_nothing_is_reported_in_the_run() -> None:
    store = Flaky()
    store.away = {"append"}
    agent = await build_agent(model=ScriptedModel([says("one")]), conversation_store=store)
    request = agent._turn("a", "s", None, None, None)
    seen: list[Any] = []

    async def emit(event: Any) -> None:
        seen.append(event)

    request.emit = emit
    await agent._handler(request)

    assert [event.session_id for event in seen if isinstance(event, ConversationNotSaved)] == ["s"]


async def test_a_run_is_shown_the_newest_messages_and_never_half_a_tool_round() -> None:
    store = InMemoryConversationStore()
    model = ScriptedModel([calls("look", what="a"), says("1"), says("2"), says("3")])
    agent = await build_agent(model=model, extra_tools=[look], conversation_store=store, conversation_max_messages=3)
    for text in ("a", "b", "c"):
        await agent.chat(text, session_id="s")

    assert_valid_conversation(model.requests[-1].messages)
    assert len([message for message in model.requests[-1].messages if message.type != "system"]) <= 4
    assert len(await store.load_messages("s")) == 8


async def test_chat_stream_shows_what_astream_with_tools_shows_and_keeps_the_turn() -> None:
    store = InMemoryConversationStore()
    agent = await build_agent(
        model=ScriptedModel([calls("look", what="a"), says("three")]), extra_tools=[look], conversation_store=store
    )

    events = [event.type async for event in agent.chat_stream("hi", session_id="s", user_id="ann")]

    assert events[0] == "tool_start"
    assert events[-1] == "done"
    assert len(await store.load_messages("s")) == 4


async def test_a_paused_turn_keeps_the_question_and_resuming_keeps_the_answer() -> None:
    graph = PromptGraph(
        "g", nodes=[HumanNode("ask", prompt_template="Go on?", on_approve="answer"), PromptNode("answer")]
    )
    graph.set_entry("ask")
    store = InMemoryConversationStore()
    agent = await build_agent(
        model=ScriptedModel([says("done"), says("more")]),
        agent_pattern=graph,
        conversation_store=store,
        runlog=MemoryRunLog(),
    )
    with pytest.raises(RunPausedError) as paused:
        await agent.chat("go", session_id="s", user_id="ann")
    kept = said(await store.load_messages("s"))
    ann = CallerContext(user_id="ann")
    with pytest.raises(SessionAccessDenied):
        await agent.resume("s", True, caller=CallerContext(user_id="bob"))

    result = await agent.resume(paused.value.thread_id, True, caller=ann)

    assert kept == [("user", "go")]
    assert result.text == "done"
    assert said(await store.load_messages("s")) == [("user", "go"), ("assistant", "done")]


async def test_without_a_store_there_are_no_sessions_and_chat_has_no_history() -> None:
    model = ScriptedModel([says("one"), says("two")])
    agent = await build_agent(model=model)
    await agent.chat("a", session_id="s")
    await agent.chat("b", session_id="s")

    assert [message.content for message in model.requests[1].messages if message.type != "system"] == ["b"]
    with pytest.raises(FeatureOffError):
        await agent.get_session("s")
    with pytest.raises(RuntimeError):
        await agent.list_sessions()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"conversation_store": object()}, "is no conversation store"),
        ({"conversation_max_messages": -1}, "conversation_max_messages is -1"),
    ],
)
async def test_what_does_not_fit_is_refused_when_the_agent_is_built(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        await build_agent(model=ScriptedModel([]), **options)
