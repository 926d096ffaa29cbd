from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright import CallerContext, ConfigurationError, GraphExecutionError, build_agent, text_of
from graphwright.cache import CacheQuery, MemoryBackend, SemanticCache
from graphwright.conversations import InMemoryConversationStore
from graphwright.cross_agent import CrossAgent
from graphwright.exceptions import GuardrailViolation
from graphwright.interrupts import ApprovalDecision
from graphwright.runlog import MemoryRunLog
from graphwright.streaming import DoneEvent, TokenEvent
from graphwright.testing import ScriptedModel, calls, raises, says

ALICE, BOB = CallerContext(user_id="alice"), CallerContext(user_id="bob")
Make = Callable[..., SemanticCache]


def counting(**options: Any) -> ScriptedModel:
    """Return a model whose answers are numbered, so that one that is given again shows."""
    asked: list[Any] = []

    def answer(messages: list[Any]) -> str:
        asked.append(messages)
        return f"answer {len(asked)}"

    return ScriptedModel.answering(answer, **options)


async def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 3"


look.risk_level = 0  # type: ignore[attr-defined]


async def change(what: str) -> str:
    """Change something."""
    return "changed"


async def test_a_question_is_answered_again_for_the_same_caller_only(make_cache: Make) -> None:
    agent = await build_agent(model=counting(), cache=make_cache())

    texts = [
        ((await agent.ainvoke("hello", caller=caller)).text)
        for caller in (ALICE, ALICE, BOB, None, None, CallerContext(user_id="alice", tenant_id="acme"), ALICE)
    ]

    assert texts == ["answer 1", "answer 1", "answer 2", "answer 3", "answer 3", "answer 4", "answer 1"]


async def test_a_cached_answer_looks_like_a_run_that_used_no_tokens() -> None:
    agent = await build_agent(model=counting(), cache=True)
    first = await agent.ainvoke("hello")
    again = await agent.ainvoke("hello")

    assert (first.cache_hit, again.cache_hit) == (False, True)
    assert [message.content for message in again.messages] == ["hello", "answer 1"]
    assert (again.text, again.output, again.status) == ("answer 1", first.output, "completed")
    assert first.usage.total_tokens > 0
    assert again.usage.total_tokens == 0
    assert again.messages[-1].usage_metadata is None
    assert agent.last_report is not None
    assert agent.last_report.total_iterations == 0


async def test_streams_of_events_are_served_and_astream_is_not() -> None:
    agent = await build_agent(model=counting(), cache=True, conversation_store=InMemoryConversationStore())
    await agent.ainvoke("hello")

    events = [event async for event in agent.astream_with_tools("hello")]
    chat = [event async for event in agent.chat_stream("hello", session_id="s")]
    chunks = [chunk async for chunk in agent.astream("hello")]

    for stream in (events, chat):
        assert [type(event) for event in stream] == [TokenEvent, DoneEvent]
        assert [stream[0].text, stream[1].full_response, stream[1].cache_hit] == ["answer 1", "answer 1", True]
    assert text_of(chunks[-1]) == "answer 2"
    assert (await agent.ainvoke("hello")).text == "answer 1"
    assert [event async for event in agent.astream_with_tools("new")][-1].cache_hit is False


async def test_a_served_turn_of_a_conversation_is_kept_like_any_other() -> None:
    store = InMemoryConversationStore()
    agent = await build_agent(model=counting(), cache=True, conversation_store=store)

    await agent.chat("hello", session_id="one", user_id="alice")
    assert await agent.chat("hello", session_id="two", user_id="alice") == "answer 1"

    kept = [(message.role, message.content) for message in await store.load_messages("two")]
    assert kept == [("user", "hello"), ("assistant", "answer 1")]


async def test_a_cached_answer_is_a_run_in_the_log_that_nobody_can_resume() -> None:
    log = MemoryRunLog()
    agent = await build_agent(model=counting(), cache=True, runlog=log)
    await agent.ainvoke("hello", session_id="a", caller=ALICE)

    again = await agent.ainvoke("hello", session_id="b", caller=ALICE)

    assert again.cache_hit
    assert again.thread_id == "b"
    info = await log.latest("b")
    assert info is not None
    assert (info.status, info.owner, info.run_id) == ("completed", "alice", again.run_id)
    rows = await log.rows(info.run_id)
    assert [row.kind for row in rows] == ["input", "end"]
    assert [message.content for row in rows for message in row.data["m"]] == ["hello", "answer 1"]


async def test_what_was_said_before_keeps_a_question_out_of_the_cache_or_is_a_part_of_its_key() -> None:
    for multi, expected in (
        (False, ["answer 1", "answer 2", "answer 3"]),
        (True, ["answer 1", "answer 1", "answer 2"]),
    ):
        agent = await build_agent(model=counting(), cache=SemanticCache(cache_multi_turn=multi))
        said = [("user", "I am Ann"), ("assistant", "Hello Ann")]
        other = [("user", "I am Bob"), ("assistant", "Hello Bob")]

        results = [await agent.ainvoke([*before, ("user", "who am I?")]) for before in (said, said, other)]

        assert [result.text for result in results] == expected


async def test_everything_that_an_answer_depends_on_is_a_part_of_the_key() -> None:
    class Answer(BaseModel):
        text: str

    cache = SemanticCache()
    options: list[dict[str, Any]] = [
        {},
        {"instructions": "Be brief."},
        {"model": counting(name="other")},
        {"extra_tools": [look]},
        {"extra_tools": [look, change]},
        {"agent_pattern": "verify"},
    ]
    for each in options:
        agent = await build_agent(**{"model": counting(), "cache": cache, **each})
        assert not (await agent.ainvoke("hello")).cache_hit, each
        assert (await agent.ainvoke("hello")).cache_hit, each

    agent = await build_agent(model=counting(), cache=cache)
    assert not (await agent.ainvoke("hello", context={"language": "fr"})).cache_hit
    assert not (await agent.ainvoke({"messages": "hello", "context": {"language": "de"}})).cache_hit
    assert (await agent.ainvoke("hello", context={"language": "fr"})).cache_hit
    assert not (await agent.ainvoke([("system", "Be rude."), ("user", "hello")])).cache_hit
    for caller in (
        CallerContext(user_id="alice"),
        CallerContext(user_id="alice", roles={"admin"}),
        CallerContext(user_id="alice", scopes={"read"}),
        CallerContext(user_id="alice", metadata={"plan": "pro"}),
    ):
        assert not (await agent.ainvoke("hello", caller=caller)).cache_hit
    chat = [await agent.chat("hello", session_id="s", system_prompt=prompt) for prompt in (None, "Rhyme.", "Rhyme.")]
    assert chat[0] != chat[1] == chat[2]


async def test_an_answer_with_a_schema_comes_back_as_its_instance() -> None:
    class Answer(BaseModel):
        number: int

    model = ScriptedModel([says('{"number": 3}')])
    agent = await build_agent(model=model, cache=True, output_schema=Answer)

    first, again = await agent.ainvoke("how many?"), await agent.ainvoke("how many?")

    assert again.cache_hit
    assert first.output == again.output == Answer(number=3)


async def test_answers_after_tools_are_kept_only_where_asked_to_and_only_if_all_of_them_read() -> None:
    def script() -> ScriptedModel:
        return ScriptedModel([calls("look", what="a"), says("3"), calls("look", what="a"), says("4")], strict=False)

    off = await build_agent(model=script(), extra_tools=[look], cache=True)
    assert [(await off.ainvoke("a?")).text for _ in range(2)] == ["3", "4"]

    on = await build_agent(model=script(), extra_tools=[look], cache=SemanticCache(cache_tool_turns=True))
    assert [(await on.ainvoke("a?")).text for _ in range(2)] == ["3", "3"]

    undeclared = ScriptedModel([calls("change", what="a"), says("done"), calls("change", what="a"), says("done again")])
    writes = await build_agent(model=undeclared, extra_tools=[change], cache=SemanticCache(cache_tool_turns=True))
    assert [(await writes.ainvoke("go")).text for _ in range(2)] == ["done", "done again"]


@pytest.mark.parametrize("ending", ["well", "failed", "cancelled"])
async def test_a_call_that_writes_empties_the_part_of_its_caller_however_the_run_ends(ending: str) -> None:
    at_work = asyncio.Event()

    async def write() -> str:
        """Write something."""
        at_work.set()
        if ending == "cancelled":
            await asyncio.Event().wait()
        return "written"

    cache = SemanticCache()
    reader = await build_agent(model=counting(), cache=cache, extra_tools=[write])
    await reader.ainvoke("hello", caller=ALICE)
    await reader.ainvoke("hello", caller=BOB)
    script = ScriptedModel([calls("write"), says("ok") if ending != "failed" else raises(RuntimeError("down"))])
    script.strict = False
    writer = await build_agent(model=script, cache=cache, extra_tools=[write])

    run = asyncio.create_task(writer.ainvoke("write", caller=ALICE))
    await at_work.wait()
    if ending == "cancelled":
        run.cancel()
    await asyncio.wait([run])
    if ending != "well":
        with pytest.raises((GraphExecutionError, asyncio.CancelledError)):
            run.result()

    assert not (await reader.ainvoke("hello", caller=ALICE)).cache_hit
    assert (await reader.ainvoke("hello", caller=BOB)).cache_hit


async def test_an_answer_that_was_being_made_while_somebody_wrote_is_not_kept() -> None:
    reading, written = asyncio.Event(), asyncio.Event()

    async def answer(messages: list[Any]) -> str:
        if messages[-1].content == "slow":
            reading.set()
            await written.wait()
        return "of before"

    cache = SemanticCache()
    model = ScriptedModel([calls("change", what="x"), says("done")])
    writer = await build_agent(model=model, cache=cache, extra_tools=[change])

    class Slow:
        name = "slow"
        capabilities = ScriptedModel().capabilities

        async def complete(self, request: Any) -> Any:
            from graphwright.messages import AIMessage

            return AIMessage(content=await answer(list(request.messages)))

    reader = await build_agent(model=Slow(), cache=cache)
    run = asyncio.create_task(reader.ainvoke("slow", caller=ALICE))
    await reading.wait()
    await writer.ainvoke("write", caller=ALICE)
    written.set()
    await run

    assert not (await reader.ainvoke("slow", caller=ALICE)).cache_hit


async def test_a_pause_is_not_kept_and_a_resumed_run_empties_the_part_of_its_caller() -> None:
    cache = SemanticCache(cache_tool_turns=True)
    model = ScriptedModel(
        [says("hi"), calls("change", what="x"), says("done"), calls("change", what="x")], strict=False
    )
    agent = await build_agent(
        model=model, extra_tools=[change], approval=["change"], runlog=MemoryRunLog(), cache=cache
    )
    await agent.ainvoke("hello", caller=ALICE)

    paused = await agent.ainvoke("go", caller=ALICE, session_id="s")
    assert paused.status == "paused"
    assert not paused.cache_hit
    done = await agent.resume("s", {paused.pending[0].id: ApprovalDecision(approved=True)}, caller=ALICE)
    assert done.text == "done"

    assert (await agent.ainvoke("go", caller=ALICE, session_id="t")).status == "paused"
    assert (await cache.stats()).entries == 0


async def test_failures_and_cut_off_answers_are_not_kept() -> None:
    model = ScriptedModel([raises(RuntimeError("down")), says("half an", finish_reason="length"), says("whole")])
    agent = await build_agent(model=model, cache=True)

    with pytest.raises(GraphExecutionError):
        await agent.ainvoke("hello")
    assert [(await agent.ainvoke("hello")).text for _ in range(3)] == ["half an", "whole", "whole"]


async def test_questions_that_are_no_plain_text_are_not_cached() -> None:
    agent = await build_agent(model=counting(), cache=True)
    picture = {"role": "user", "content": [{"type": "text", "text": "what is it?"}]}

    assert [(await agent.ainvoke([picture])).text for _ in range(2)] == ["answer 1", "answer 2"]
    assert [(await agent.ainvoke("a", context={"x": object()})).text for _ in range(2)] == ["answer 3", "answer 4"]


async def test_a_cache_that_fails_in_every_way_fails_no_run() -> None:
    class Broken(MemoryBackend):
        async def get(self, partition: str, group: str, name: str) -> Any:
            raise ConnectionError("away")

        async def invalidate(self, partition: str) -> int:
            raise ConnectionError("away")

    model = ScriptedModel([says("one"), calls("change", what="x"), says("two")])
    agent = await build_agent(model=model, extra_tools=[change], cache=SemanticCache(Broken()))

    assert [(await agent.ainvoke("hello")).text for _ in range(2)] == ["one", "two"]


async def test_the_agent_closes_only_a_cache_that_was_made_for_it() -> None:
    cache = SemanticCache()
    async with await build_agent(model=counting(), cache=cache) as agent:
        await agent.ainvoke("hello")
    assert (await cache.stats()).entries == 1

    with pytest.raises(ConfigurationError, match="cache is 'yes'; give a SemanticCache"):
        await build_agent(model=counting(), cache="yes")
    assert not (await (await build_agent(model=counting(), cache=False)).ainvoke("hello")).cache_hit


async def test_a_peer_answers_from_its_cache_to_the_caller_of_the_outer_run() -> None:
    peer = await build_agent(model=counting(name="peer"), cache=True)
    script = [calls("ask_agent_peer", message="who am I?"), says("ok")] * 3
    agent = await build_agent(model=ScriptedModel(script), cross_agents={"peer": CrossAgent(peer)})

    answers = []
    for caller in (ALICE, BOB, ALICE):
        result = await agent.ainvoke("go", caller=caller)
        answers.append(next(message.content for message in result.messages if message.type == "tool"))

    assert ["answer 1" in answers[0], "answer 2" in answers[1], "answer 1" in answers[2]] == [True, True, True]


async def test_a_question_of_a_user_is_never_found_by_asking_the_cache_for_another() -> None:
    cache = SemanticCache()
    agent = await build_agent(model=counting(), cache=cache)
    await agent.ainvoke("my secret", caller=ALICE)

    owner = BOB.isolation_key
    assert owner is not None
    assert (await cache.check(CacheQuery(question="my secret", owner=owner))).answer is None


async def test_many_runs_at_once_each_get_their_own_answer_new_or_cached(make_cache: Make) -> None:
    async def echo(what: str) -> str:
        """Say it again."""
        await asyncio.sleep(0.001 * (hash(what) % 5))
        return what

    def answer(messages: list[Any]) -> Any:
        question = next(message.content for message in messages if message.type == "human")
        return says(f"a{question[1:]}") if messages[-1].type == "tool" else calls("echo", what=question)

    cache = make_cache(cache_tool_turns=True, read_only_tools=["echo"])
    agent = await build_agent(model=ScriptedModel.answering(answer), extra_tools=[echo], cache=cache)
    callers = [CallerContext(user_id=f"user{i % 5}") for i in range(50)]

    for is_cached in (False, True):
        results = await asyncio.gather(*(agent.ainvoke(f"q{i}", caller=callers[i]) for i in range(50)))
        assert [result.text for result in results] == [f"a{i}" for i in range(50)]
        assert [result.cache_hit for result in results] == [is_cached] * 50
        assert len({result.run_id for result in results}) == 50


class Blocks:
    """A guard that lets no answer with a word through."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def check_output(self, text: str) -> str:
        if self.word in text:
            raise GuardrailViolation(direction="output")
        return text


class Masks:
    """A guard that masks digits."""

    async def check_output(self, text: str) -> str:
        return re.sub(r"\d", "#", text)


async def test_what_a_guard_blocks_is_served_from_no_cache_whoever_was_let_say_it() -> None:
    cache = SemanticCache()

    def make(*guards: Any) -> Any:
        model = ScriptedModel.answering(lambda _: "the key is SECRET-9")
        return build_agent(model=model, cache=cache, guardrails=list(guards))

    guarded, masked, open_agent = await make(Blocks("SECRET-9")), await make(Masks()), await make()

    for is_kept in (False, True):
        with pytest.raises(GuardrailViolation):
            await guarded.ainvoke("the key?")
        seen = []
        with pytest.raises(GuardrailViolation):
            async for event in guarded.astream_with_tools("the key?"):
                seen.append(str(event))
        assert "SECRET" not in "".join(seen)
        assert (await cache.stats()).entries == is_kept
        assert (await open_agent.ainvoke("the key?")).cache_hit is is_kept
    result = await masked.ainvoke("the key?")
    assert (result.cache_hit, result.text, result.output) == (True, "the key is SECRET-#", "the key is SECRET-#")
    assert (await open_agent.ainvoke("the key?")).text == "the key is SECRET-9"
