from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.servers import RedisServer, redis_server

from graphwright import CallerContext, ConfigurationError, tool
from graphwright.cache import CacheLookup, CacheQuery, MemoryBackend, RedisBackend, SemanticCache
from graphwright.caller import IsolationKey, isolation_key_of
from graphwright.exceptions import StoreUnavailable
from graphwright.tools import as_tools

ALICE = isolation_key_of(CallerContext(user_id="alice"))
BOB = isolation_key_of(CallerContext(user_id="bob"))
Make = Callable[..., SemanticCache]


class Words:
    """An embedder: one place a word, so that questions with the same words are the same."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        vectors = []
        for text in texts:
            vector = [0.0] * 64
            for word in text.lower().rstrip("?").split():
                vector[sum(map(ord, word)) % 64] += 1.0
            vectors.append(vector)
        return vectors


def ask(question: str, owner: IsolationKey = ALICE, **more: Any) -> CacheQuery:
    return CacheQuery(question=question, owner=owner, **more)


async def keep(cache: SemanticCache, query: CacheQuery, text: str, **more: Any) -> bool:
    return await cache.store(query, text, lookup=await cache.check(query), **more)


async def found(cache: SemanticCache, query: CacheQuery) -> str | None:
    answer = (await cache.check(query)).answer
    return None if answer is None else answer.text


async def test_an_answer_is_found_by_the_same_user_setting_and_question_only(make_cache: Make) -> None:
    cache = make_cache()
    await keep(cache, ask("What is it?", setting="s"), "It is a cat.", output={"n": 1})

    again = (await cache.check(ask("What is it?", setting="s"))).answer

    assert again is not None
    assert (again.text, again.output, again.question, again.similarity) == ("It is a cat.", {"n": 1}, "What is it?", 1)
    assert await found(cache, ask("What is it?", BOB, setting="s")) is None
    assert await found(cache, ask("What is it?", IsolationKey.ANONYMOUS, setting="s")) is None
    assert await found(cache, ask("What is it?", setting="t")) is None
    assert await found(cache, ask("what is it", setting="s")) is None
    stats = await cache.stats()
    assert (stats.hits, stats.misses, stats.stored, stats.errors, stats.entries) == (1, 5, 1, 0, 1)
    assert stats.hit_rate == pytest.approx(1 / 6)


async def test_with_an_embedder_a_question_that_is_alike_is_found(make_cache: Make) -> None:
    cache = make_cache(embedding=Words())
    await keep(cache, ask("how do I open my account"), "With a key.")

    alike = (await cache.check(ask("How do I open my account?"))).answer

    assert alike is not None
    assert alike.text == "With a key."
    assert alike.question == "how do I open my account"
    assert alike.similarity == pytest.approx(1.0)
    assert await found(cache, ask("where is the nearest shop")) is None
    assert await found(cache, ask("How do I open my account?", BOB)) is None
    assert await found(cache, ask("How do I open my account?", setting="other")) is None


async def test_another_number_is_another_question_however_alike(make_cache: Make) -> None:
    cache = make_cache(embedding=Words(), similarity_threshold=0.1)
    await keep(cache, ask("where is order 17 now"), "In Rome.")

    assert await found(cache, ask("where is order 18 now")) is None
    assert await found(cache, ask("where is order now")) is None
    assert await found(cache, ask("now where is order 17?")) == "In Rome."


async def test_an_answer_is_kept_for_its_time(make_cache: Make) -> None:
    cache = make_cache(default_ttl=60, ttl_patterns={"weather": 0.05, r"\bnow\b": 0})
    assert await keep(cache, ask("the weather"), "Rain.")
    assert await keep(cache, ask("the capital"), "Rome.")
    assert not await keep(cache, ask("the weather NOW"), "Sun.")

    await asyncio.sleep(0.1)

    assert await found(cache, ask("the weather")) is None
    assert await found(cache, ask("the weather NOW")) is None
    assert await found(cache, ask("the capital")) == "Rome."
    assert (await cache.stats()).entries == 1


async def test_a_write_empties_the_part_of_its_user_and_no_other(make_cache: Make) -> None:
    cache = make_cache()
    await keep(cache, ask("q", ALICE), "alice")
    await keep(cache, ask("q", BOB), "bob")

    await cache.invalidate(ALICE)

    assert await found(cache, ask("q", ALICE)) is None
    assert await found(cache, ask("q", BOB)) == "bob"


async def test_an_answer_of_before_a_write_is_not_kept_after_it(make_cache: Make) -> None:
    cache = make_cache()
    before = await cache.check(ask("q"))
    await cache.invalidate(ALICE)

    assert await cache.store(ask("q"), "stale", lookup=before) is False
    assert await found(cache, ask("q")) is None


async def test_an_answer_of_before_a_purge_is_not_kept_after_it(make_cache: Make) -> None:
    cache = make_cache()
    await keep(cache, ask("p"), "gone")
    before = await cache.check(ask("q"))

    assert await cache.purge_user("alice") == 1

    assert await cache.store(ask("q"), "back again", lookup=before) is False
    assert (await cache.stats()).entries == 0


async def test_purging_takes_one_user_of_one_tenant_or_the_anonymous(make_cache: Make) -> None:
    cache = make_cache()
    acme = isolation_key_of(CallerContext(user_id="alice", tenant_id="acme"))
    for owner in (ALICE, BOB, acme, IsolationKey.ANONYMOUS):
        await keep(cache, ask("q", owner), "kept")
        await keep(cache, ask("r", owner), "kept")

    assert await cache.purge_user("alice", tenant_id="acme") == 2
    assert await found(cache, ask("q", acme)) is None
    assert await found(cache, ask("q", ALICE)) == "kept"
    assert await cache.purge_user(None) == 2
    assert await found(cache, ask("q", IsolationKey.ANONYMOUS)) is None
    assert await cache.purge_user(ALICE) == 2
    assert await found(cache, ask("q", BOB)) == "kept"
    assert (await cache.stats()).entries == 2


async def test_the_scope_says_who_is_answered(make_cache: Make) -> None:
    session = make_cache(scope="per_session")
    await keep(session, ask("s", session_id="one"), "mine")
    assert await found(session, ask("s", session_id="one")) == "mine"
    assert await found(session, ask("s", session_id="two")) is None
    assert await found(session, ask("s", BOB, session_id="one")) is None
    await session.invalidate(ALICE)
    assert await found(session, ask("s", session_id="one")) is None

    shared = make_cache(scope="shared", shared_data_acknowledged=True)
    await keep(shared, ask("s", ALICE), "everybody's")
    await keep(shared, ask("t", BOB), "everybody's too")
    assert await found(shared, ask("s", BOB)) == "everybody's"
    assert await shared.purge_user("alice") == 1
    assert await found(shared, ask("s", BOB)) is None
    assert await found(shared, ask("t", ALICE)) == "everybody's too"


async def test_too_many_answers_make_room_of_one_user_and_of_all(make_cache: Make) -> None:
    cache = make_cache(max_entries_per_user=2, max_total_entries=3)
    for question in "abc":
        await keep(cache, ask(question), question)
        await asyncio.sleep(0.002)
    assert [await found(cache, ask(question)) for question in "abc"] == [None, "b", "c"]

    for question in "de":
        await keep(cache, ask(question, BOB), question)
        await asyncio.sleep(0.002)

    assert (await cache.stats()).entries == 3
    assert [await found(cache, ask(question, BOB)) for question in "de"] == ["d", "e"]
    assert [await found(cache, ask(question)) for question in "bc"] == [None, "c"]


async def test_answering_the_same_again_takes_no_more_room(make_cache: Make) -> None:
    cache = make_cache(scope="shared", shared_data_acknowledged=True)
    lookup = await cache.check(ask("q"))
    await cache.store(ask("q", ALICE), "first", lookup=lookup)
    await cache.store(ask("q", BOB), "second", lookup=lookup)

    assert await found(cache, ask("q")) == "second"
    assert (await cache.stats()).entries == 1
    assert await cache.purge_user("alice") == 0
    assert await cache.purge_user("bob") == 1


async def test_names_that_look_like_joined_ones_are_kept_apart(make_cache: Make) -> None:
    cache = make_cache(scope="per_session")
    places = [
        ("a", "b", "c"), ("a:b", "c", ""), ("a", "b:c", ""), ("a\0b", "c", ""), ("ａ", "b", "c"), ("a", "b", "c "),
        ("x" * 10_000, "", ""), ("", "x" * 10_000, ""), ("а", "b", "c"), ("\ud800", "", ""), ("a", "", "bc"),
    ]  # fmt: skip
    for user, session, setting in places:
        query = ask("q", IsolationKey(user), session_id=session, setting=setting)
        assert await found(cache, query) is None, (user[:9], session[:9], setting)
        await keep(cache, query, repr((user, session, setting)))
    for user, session, setting in places:
        query = ask("q", IsolationKey(user), session_id=session, setting=setting)
        assert await found(cache, query) == repr((user, session, setting))


async def test_output_that_is_no_plain_data_is_not_kept(make_cache: Make) -> None:
    cache = make_cache()
    for output in (object(), float("nan"), {1: "a"}, ("a",)):
        assert await keep(cache, ask("q"), "text", output=output) is False
    assert (await cache.stats()).errors == 0


async def test_encrypted_values_tell_nothing_and_are_read_with_their_key_and_in_their_place_only(
    redis: RedisServer,
) -> None:
    pytest.importorskip("cryptography", reason="cryptography is not installed; install the extra crypto")
    from redis.asyncio import Redis

    key = os.urandom(32)
    backend = RedisBackend(redis.url, key_prefix="sealed:")
    cache = SemanticCache(backend, encrypt_values=True, encryption_key=key)
    await keep(cache, ask("where is alice"), "in Berlin")
    await keep(cache, ask("where is alice", BOB), "in Lisbon")
    same = SemanticCache(backend, encrypt_values=True, encryption_key=base64.urlsafe_b64encode(key))
    other = SemanticCache(backend, encrypt_values=True, encryption_key=os.urandom(32))

    async with Redis.from_url(redis.url) as client:
        names = [name async for name in client.scan_iter("sealed:v:*")]
        everything = b"".join([*names, *[value for name in names for value in (await client.hgetall(name)).values()]])
        assert len(names) == 2
        assert not any(word in everything for word in (b"Berlin", b"alice", b"where"))
        assert await found(same, ask("where is alice")) == "in Berlin"
        assert await found(other, ask("where is alice")) is None

        first, second = [await client.hget(name, "d") for name in names]
        await client.hset(names[0], "d", second)
        await client.hset(names[1], "d", first)
    assert await found(cache, ask("where is alice")) is None
    assert await found(cache, ask("where is alice", BOB)) is None
    assert (await cache.stats()).errors == 2
    await backend.close()


async def test_a_server_that_is_away_is_a_miss_and_what_was_written_meanwhile_is_not_forgotten() -> None:
    class Away(MemoryBackend):
        away = False

        async def get(self, partition: str, group: str, name: str) -> tuple[bytes | None, int]:
            self._reach()
            return await super().get(partition, group, name)

        async def invalidate(self, partition: str) -> int:
            self._reach()
            return await super().invalidate(partition)

        def _reach(self) -> None:
            if self.away:
                raise ConnectionError("the server is away")

    backend = Away()
    cache = SemanticCache(backend)
    await keep(cache, ask("q"), "stale")

    backend.away = True
    assert await found(cache, ask("q")) is None
    assert await keep(cache, ask("q"), "lost") is False
    await cache.invalidate(ALICE)
    backend.away = False

    assert await found(cache, ask("q")) is None
    assert (await cache.stats()).errors == 3


async def test_a_server_that_does_not_answer_is_waited_for_only_so_long() -> None:
    class Silent(MemoryBackend):
        async def get(self, partition: str, group: str, name: str) -> tuple[bytes | None, int]:
            await asyncio.Event().wait()
            raise AssertionError

    cache = SemanticCache(Silent(), timeout=0.02)

    assert await cache.check(ask("q")) == CacheLookup()


async def test_a_broken_embedder_leaves_the_very_same_question() -> None:
    class Broken:
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            raise RuntimeError("no vectors today")

    class Useless:
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[float("nan")] for _ in texts]

    for embedder in (Broken(), Useless()):
        cache = SemanticCache(embedding=embedder)
        await keep(cache, ask("q"), "kept")
        assert await found(cache, ask("q")) == "kept"
        assert await found(cache, ask("another")) is None
    with pytest.raises(RuntimeError, match="no vectors today"):
        await SemanticCache(embedding=Broken()).warmup()


async def test_langchain_embeddings_are_taken() -> None:
    from langchain_core.embeddings import Embeddings

    class Lengths(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, float(len(text))] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("vectors are made together")

    cache = SemanticCache(embedding=Lengths())
    await keep(cache, ask("one"), "kept")

    assert await found(cache, ask("two")) == "kept"
    await cache.warmup()


def test_a_tool_that_does_not_say_that_it_only_reads_counts_as_writing() -> None:
    def named(name: str, **declared: Any) -> Any:
        def body() -> str:
            return ""

        for attribute, value in declared.items():
            setattr(body, attribute, value)
        return as_tools([tool(body, name=name, description="d")]).get(name)

    cache = SemanticCache(write_tools=["sync_*"], read_only_tools=["get_*", "sync_all"])

    assert cache.is_write(named("anything"))
    assert cache.is_write(named("anything", risk_level=1))
    assert cache.is_write(named("anything", risk_level="none"))
    assert not cache.is_write(named("anything", risk_level=0))
    assert not cache.is_write(named("anything", risk_hint=0))
    assert not cache.is_write(named("get_it", risk_level=2))
    assert cache.is_write(named("sync_all", risk_level=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "disk"}, "backend is 'disk'"),
        ({"redis_url": "redis://x"}, "redis_url is given"),
        ({"embedding": "minilm"}, "embedding is 'minilm'"),
        ({"similarity_threshold": 0}, "similarity_threshold is 0"),
        ({"similarity_threshold": float("nan")}, "similarity_threshold is nan"),
        ({"default_ttl": 0}, "default_ttl is 0"),
        ({"scope": "all"}, "scope is 'all'"),
        ({"scope": "shared"}, "shared_data_acknowledged=True"),
        ({"max_entries_per_user": 0}, "max_entries_per_user is 0"),
        ({"ttl_patterns": {"(": 3}}, "is no regular expression"),
        ({"ttl_patterns": {"a": -1}}, r"ttl_patterns\['a'\] is -1"),
        ({"write_tools": "delete"}, "write_tools is 'delete'"),
        ({"encrypt_values": True, "backend": "redis"}, "needs encryption_key="),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SemanticCache(**options)


async def test_a_server_that_goes_away_is_a_miss_at_once() -> None:
    pytest.importorskip("redis", reason="redis is not installed; install the extra redis")
    with redis_server() as server:
        cache = SemanticCache("redis", server.url)
        await cache.warmup()
        assert await keep(cache, ask("q"), "kept")
        assert await found(cache, ask("q")) == "kept"

    assert await found(cache, ask("q")) is None
    assert await keep(cache, ask("r"), "lost") is False
    assert (await cache.stats()).entries is None
    with pytest.raises(StoreUnavailable, match="the answers of a user could not be deleted"):
        await cache.purge_user("alice")
    await cache.close()


async def test_many_at_once_share_few_connections(redis: RedisServer) -> None:
    backend = RedisBackend(redis.url, key_prefix="many:")
    cache = SemanticCache(backend)

    await asyncio.gather(*(keep(cache, ask(f"q{number}"), str(number)) for number in range(200)))
    answers = await asyncio.gather(*(found(cache, ask(f"q{number}")) for number in range(200)))

    assert answers == [str(number) for number in range(200)]
    assert (await cache.stats()).errors == 0
    await backend.close()


@pytest.mark.parametrize("key", ["short", b"\0" * 31, 17, base64.b64encode(b"\0" * 33)])
def test_a_key_of_the_wrong_size_is_refused_and_not_told(key: Any) -> None:
    pytest.importorskip("cryptography", reason="cryptography is not installed; install the extra crypto")
    with pytest.raises(ConfigurationError, match="encryption_key cannot be used; give 32 random bytes"):
        SemanticCache(encrypt_values=True, encryption_key=key)
