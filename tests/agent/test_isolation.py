"""No caller sees anything of another one, in whatever an agent has, and whatever the two are called."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphwright import Agent, CallerContext, ConfigurationError, build_agent, get_current_caller
from graphwright.cache import CachedAnswer, CacheLookup, CacheQuery, SemanticCache
from graphwright.caller import IsolationKey, isolation_key_of
from graphwright.conversations import InMemoryConversationStore, SQLiteConversationStore
from graphwright.exceptions import SessionAccessDenied
from graphwright.observability import ObservabilityCollector
from graphwright.prompts import Block
from graphwright.prompts.flows import ConversationFlow, phase
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says
from graphwright.testing.contracts import isolation

LOOK_ALIKES = [
    "a",
    "а",
    "ａ",
    "A",
    "á",
    "a\u0301",
    "a\u200b",
    " a",
    "a ",
    "a\0",
    "a:",
    ":a",
    "a/b",
    "a|b",
    "a%",
    "a_",
    "*",
]
AWKWARD = ["None", "null", "anonymous", ":anonymous", "0", "'; --", "{}", "user\nid", "\U0001f600", "x" * 5000]

user_ids = st.one_of(
    st.sampled_from(LOOK_ALIKES + AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda text: "::" not in text),
)
tenants = st.one_of(st.none(), st.sampled_from(["acme", "Acme", "a", "а", "a "]))
named = st.builds(CallerContext, user_id=user_ids, tenant_id=tenants)
anybody = st.one_of(named, st.none(), st.builds(CallerContext, tenant_id=tenants))


class Same:
    """An embedder that finds every two texts alike."""

    async def embed(self, texts: Any) -> list[list[float]]:
        return [[1.0] for _ in texts]


class Remembers(ConversationFlow):
    """A flow whose prompt holds all that was said to it."""

    blocks = (Block("said", lambda seen: f"Said so far: {seen.get('said')}"),)

    @phase("all", initial=True)
    def listen(self, message: str) -> None:
        self.data.setdefault("said", []).append(message)


async def with_everything(model: Any) -> Agent:
    cache = SemanticCache(embedding=Same(), cache_multi_turn=True, similarity_threshold=0.01)
    return await build_agent(
        model=model,
        conversation_store=InMemoryConversationStore(),
        runlog=MemoryRunLog(),
        cache=cache,
        flow=Remembers,
        adaptive=True,
    )


@given(first=anybody, second=anybody)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_two_callers_never_see_anything_of_each_other(
    first: CallerContext | None, second: CallerContext | None
) -> None:
    if isolation_key_of(first) == isolation_key_of(second):
        with pytest.raises(ConfigurationError, match="both callers have the key"):
            asyncio.run(isolation(with_everything, callers=(first, second)))
    else:
        asyncio.run(isolation(with_everything, callers=(first, second)))


@given(first=named, second=named)
@settings(max_examples=200, deadline=None)
def test_two_callers_have_one_key_only_if_they_are_one(first: CallerContext, second: CallerContext) -> None:
    def who(caller: CallerContext) -> tuple[str | None, str | None]:
        return (caller.tenant_id or None, caller.user_id)

    assert (first.isolation_key == second.isolation_key) == (who(first) == who(second))
    assert first.isolation_key != IsolationKey.ANONYMOUS


def test_a_key_is_a_text_with_the_documented_value_and_names_with_its_separator_are_refused() -> None:
    assert CallerContext(user_id="user-42", tenant_id="acme").isolation_key == "acme::user-42"
    assert CallerContext(user_id="user-42").isolation_key == "user-42"
    assert CallerContext(tenant_id="acme").isolation_key is None
    assert isinstance(CallerContext(user_id="u").isolation_key, IsolationKey)
    assert isolation_key_of(None) is isolation_key_of(CallerContext()) is IsolationKey.ANONYMOUS
    for options in ({"user_id": "a::b"}, {"user_id": "::anonymous"}, {"user_id": "u", "tenant_id": "a:b"}):
        with pytest.raises(ConfigurationError, match="may not contain"):
            CallerContext(**options)


async def test_it_holds_for_files_and_for_tenants_with_users_of_one_name(tmp_path: Path) -> None:
    async def with_files(model: Any) -> Agent:
        return await build_agent(
            model=model,
            conversation_store=SQLiteConversationStore(str(tmp_path / "talk.db")),
            runlog=str(tmp_path / "runs.db"),
            cache=True,
        )

    await isolation(with_files)
    await isolation(
        with_files,
        callers=(CallerContext(user_id="ann", tenant_id="acme"), CallerContext(user_id="ann", tenant_id="other")),
    )
    await isolation(with_files, callers=(CallerContext(user_id="ann"), None))


async def test_an_empty_user_id_is_refused_since_it_would_be_taken_for_nobody() -> None:
    with pytest.raises(ConfigurationError, match="user_id '' is nobody's"):
        CallerContext(user_id="")
    agent = await with_everything(ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="user_id '' is nobody's"):
        await agent.chat("hello", session_id="s", user_id="")


class Leaky(SemanticCache):
    """Gives everybody what somebody was answered."""

    last: CachedAnswer | None = None

    async def check(self, query: CacheQuery) -> CacheLookup:
        return CacheLookup(answer=self.last, generation=0)

    async def store(self, query: CacheQuery, text: str, *, output: Any = None, lookup: CacheLookup) -> bool:
        self.last = CachedAnswer(text=text)
        return True


class Ownerless(InMemoryConversationStore):
    """Lets everybody in."""

    async def claim_session(self, session_id: str, owner: str | None, *, adopt: bool = False) -> Any:
        found = await self.get_session(session_id)
        return found or await super().claim_session(session_id, owner, adopt=adopt)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cache": Leaky()}, "the second caller sees what the first caller said, in what ainvoke returns"),
        (
            {"cache": SemanticCache(scope="shared", shared_data_acknowledged=True)},
            "sees what the first caller said, in what ainvoke returns",
        ),
        ({"conversation_store": Ownerless()}, "is let through"),
    ],
    ids=["leaky cache", "shared cache", "store without owners"],
)
async def test_the_contract_finds_an_agent_that_leaks(options: dict[str, Any], problem: str) -> None:
    async def leaking(model: Any) -> Agent:
        return await build_agent(model=model, **options)

    with pytest.raises(AssertionError, match=problem):
        await isolation(leaking)


async def test_a_person_is_removed_from_everywhere_and_told_how_much_there_was() -> None:
    model = ScriptedModel([says(f"answer {number}") for number in range(6)])
    store, log, cache = InMemoryConversationStore(), MemoryRunLog(), SemanticCache()
    agent = await build_agent(model=model, conversation_store=store, runlog=log, cache=cache)
    ann, tenant = CallerContext(user_id="ann"), CallerContext(user_id="ann", tenant_id="acme")
    for caller in (ann, tenant, None):
        await agent.chat("hello", session_id=f"chat {caller and caller.isolation_key}", caller=caller)
        await agent.ainvoke("another question", caller=caller)

    assert await agent.purge_user("ann") == {"conversations": 1, "cache": 2, "runlog": 2}
    assert await agent.purge_user("ann") == {"conversations": 0, "cache": 0, "runlog": 0}
    assert await agent.purge_user(caller=tenant) == {"conversations": 1, "cache": 2, "runlog": 2}
    assert [info.session_id for info in await store.list_sessions()] == ["chat None"]
    assert [thread.owner for thread in await log.threads()] == [None, None]
    assert (await cache.stats()).entries == 2
    for nobody in ({}, {"caller": CallerContext()}, {"caller": CallerContext(tenant_id="acme")}):
        with pytest.raises(ConfigurationError, match="nobody is named"):
            await agent.purge_user(**nobody)


async def test_a_store_that_fails_keeps_no_other_one_from_being_purged() -> None:
    class Away(InMemoryConversationStore):
        async def purge_user(self, user_id: str) -> int:
            raise ConnectionError("away")

    cache = SemanticCache()
    agent = await build_agent(model=ScriptedModel([says("hi")]), conversation_store=Away(), cache=cache)
    await agent.ainvoke("hello", caller=CallerContext(user_id="ann"))

    with pytest.raises(ConnectionError, match="away"):
        await agent.purge_user("ann")
    assert (await cache.stats()).entries == 0


async def test_a_paused_run_is_gone_on_with_by_its_own_caller_and_their_key_is_kept_as_text(tmp_path: Path) -> None:
    async def who() -> str:
        """Say whose run it is."""
        caller = get_current_caller()
        assert caller is not None
        key = caller.isolation_key
        assert key is not None
        return key

    script = ScriptedModel([calls("who"), says("yours")])
    options: dict[str, Any] = {"extra_tools": [who], "approval": ["who"], "runlog": str(tmp_path / "runs.db")}
    ann, other = CallerContext(user_id="ann", tenant_id="acme"), CallerContext(user_id="ann", tenant_id="other")
    async with await build_agent(model=script, **options) as agent:
        paused = await agent.ainvoke("go", caller=ann, session_id="s")
        answer = {paused.pending[0].id: True}
        for stranger in (other, CallerContext(user_id="ann"), None):
            with pytest.raises(SessionAccessDenied):
                await agent.resume("s", answer, caller=stranger)
            with pytest.raises(SessionAccessDenied):
                await agent.abandon("s", caller=stranger)

        done = await agent.resume("s", answer, caller=ann)

        assert done.text == "yours"
        assert agent.runlog is not None
        rows = await agent.runlog.rows(done.run_id)
        assert [row.data["by"] for row in rows if row.kind == "answer"] == ["acme::ann"]


async def test_what_was_observed_of_a_person_is_removed_too() -> None:
    agent = await build_agent(model=ScriptedModel([]))
    agent.collector = ObservabilityCollector("a test")
    for caller in (CallerContext(user_id="ann"), CallerContext(user_id="bob"), None):
        agent.collector.record("llm_turn", caller_key=isolation_key_of(caller))

    assert await agent.purge_user("ann") == {"observed": 1}
    assert [entry.caller_key for entry in agent.collector.get_timeline()] == ["bob", IsolationKey.ANONYMOUS]
