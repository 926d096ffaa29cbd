"""Servers that go away and come back, answers that get lost, and pools that are used up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from tests.conversations._proxy import Proxy, proxy_to
from tests.servers import PostgresServer, RedisServer

from graphwright.conversations import (
    AppendingStore,
    ConversationConflict,
    Message,
    PostgresConversationStore,
    RedisConversationStore,
)
from graphwright.exceptions import ConfigurationError, StoreUnavailable

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow

Behind = Callable[[Proxy], AppendingStore]


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


async def texts_of(store: AppendingStore) -> list[str]:
    return [message.content for message in await store.load_messages("s")]


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> tuple[int, Behind]:
    """Return the port of a server, and what makes a store that reaches it through a proxy."""
    name = f"away_{request.node.name.partition('[')[0]}"[:38]
    if request.param == "postgres":
        pg: PostgresServer = request.getfixturevalue("postgres")

        def through(proxy: Proxy) -> AppendingStore:
            dsn = pg.dsn.replace(f":{pg.port}/", f":{proxy.port}/")
            return PostgresConversationStore(dsn, table_prefix=name, pool_min=1, pool_max=4, timeout=5)

        return pg.port, through
    redis: RedisServer = request.getfixturevalue("redis")

    def through_(proxy: Proxy) -> AppendingStore:
        url = redis.url.replace(f":{redis.port}/", f":{proxy.port}/")
        return RedisConversationStore(url, key_prefix=name, timeout=5)

    return redis.port, through_


async def test_a_store_works_again_when_its_server_comes_back(server: tuple[int, Behind]) -> None:
    port, behind = server
    async with proxy_to(port) as proxy:
        store = behind(proxy)
        assert await store.append_messages("s", said("a", "b"), expected_version=0) == 2
        await proxy.cut()
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="cannot be used"):
                await store.append_messages("s", said("c"), expected_version=2)
            with pytest.raises(StoreUnavailable):
                await store.load_messages("s")
        await proxy.open()

        assert await store.append_messages("s", said("c"), expected_version=2) == 3
        assert await texts_of(store) == ["a", "b", "c"]
        await store.close()


async def test_a_store_that_is_first_used_without_its_server_works_later(server: tuple[int, Behind]) -> None:
    port, behind = server
    async with proxy_to(port) as proxy:
        await proxy.cut()
        store = behind(proxy)
        with pytest.raises(StoreUnavailable) as failed:
            await store.claim_session("s", "u")
        assert "secret" not in str(failed.value)
        await proxy.open()

        assert (await store.claim_session("s", "u")).user_id == "u"
        await store.close()


async def test_broken_connections_are_replaced_without_an_error(server: tuple[int, Behind]) -> None:
    port, behind = server
    async with proxy_to(port) as proxy:
        store = behind(proxy)
        await asyncio.gather(*(store.append_messages("s", said("a")) for _ in range(4)))
        await proxy.cut()
        await proxy.open()

        versions = await asyncio.gather(*(store.append_messages("s", said("b")) for _ in range(4)))

        assert sorted(versions) == [5, 6, 7, 8]
        assert len(await store.load_messages("s")) == 8
        await store.close()


@pytest.mark.parametrize("answers_before", range(8))
async def test_an_append_whose_answer_is_lost_is_written_once(server: tuple[int, Behind], answers_before: int) -> None:
    port, behind = server
    async with proxy_to(port) as proxy:
        store = behind(proxy)
        await store.delete_session("s")
        await store.append_messages("s", said("a"), expected_version=0)
        proxy.lose_answer_after(answers_before)

        try:
            version = await store.append_messages("s", said("b", "c"), expected_version=1)
        except StoreUnavailable:
            version = await store.append_messages("s", said("b", "c"), expected_version=1)

        assert version == 3
        assert await texts_of(store) == ["a", "b", "c"]
        with pytest.raises(ConversationConflict):
            await store.append_messages("s", said("d"), expected_version=1)
        await store.close()


async def test_fifty_callers_share_two_connections_to_postgres(postgres: PostgresServer) -> None:
    store = PostgresConversationStore(postgres.dsn, table_prefix="fifty_", pool_min=2, pool_max=2)

    async def turn(number: int) -> int:
        version = await store.append_messages(f"s{number}", said("q"), expected_version=0)
        await asyncio.sleep(0.05)  # the model: no connection is held meanwhile
        return await store.append_messages(f"s{number}", said("a"), expected_version=version)

    assert await asyncio.gather(*(turn(number) for number in range(50))) == [2] * 50
    await store.close()


async def test_a_terminated_backend_is_no_error(postgres: PostgresServer) -> None:
    import asyncpg

    store = PostgresConversationStore(postgres.dsn, table_prefix="ended_", pool_min=2, pool_max=2)
    await store.append_messages("s", said("a"))
    other = await asyncpg.connect(postgres.dsn)
    await other.fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    await other.close()

    assert await store.append_messages("s", said("b")) == 2
    await store.close()


async def test_a_pool_that_is_used_up_is_told_as_that(postgres: PostgresServer) -> None:
    import asyncpg

    store = PostgresConversationStore(postgres.dsn, table_prefix="full_", pool_min=1, pool_max=1, timeout=0.3)
    await store.append_messages("s", said("a"))
    other = await asyncpg.connect(postgres.dsn)
    async with other.transaction():
        await other.execute("LOCK TABLE full_sessions IN ACCESS EXCLUSIVE MODE")
        results = await asyncio.gather(
            *(store.append_messages("s", said("b"), expected_version=1) for _ in range(3)), return_exceptions=True
        )
    await other.close()

    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert await store.append_messages("s", said("b"), expected_version=1) == 2
    await store.close()


async def test_more_callers_than_connections_to_redis_wait_for_each_other(redis: RedisServer) -> None:
    store = RedisConversationStore(redis.url, key_prefix="few:", max_connections=2)

    versions = await asyncio.gather(*(store.append_messages("s", said("a")) for _ in range(50)))

    assert sorted(versions) == list(range(1, 51))
    await store.close()


async def test_redis_forgets_by_itself_and_leaves_no_trace_of_an_owner(redis: RedisServer) -> None:
    from redis.asyncio import Redis

    store = RedisConversationStore(redis.url, key_prefix="ttl:", ttl=1)
    await store.append_messages("s", said("a"), owner="alice")
    await store.append_messages("t", said("a"), owner="alice")
    client = Redis.from_url(redis.url)
    # What the clock of Redis does at the end of the time.
    await client.delete("ttl:session:s", "ttl:messages:s")

    assert await store.get_session("s") is None
    await store.append_messages("s", said("b"), owner="bob", expected_version=0)
    assert [info.session_id for info in await store.list_sessions(user_id="bob")] == ["s"]
    assert 0 < await client.pttl("ttl:session:s") <= 1001
    assert 0 < await client.pttl("ttl:messages:s") <= 1001
    await asyncio.sleep(1.1)
    assert await store.list_sessions() == []
    assert await store.cleanup_expired() == 0
    assert [key async for key in client.scan_iter("ttl:*") if not key.startswith(b"ttl:op:")] == []
    await client.aclose()
    await store.close()


@pytest.mark.parametrize("prefix", ["a b", "a\n", "é", "*", "{a}", "x" * 101])
def test_a_key_prefix_with_odd_characters_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="key_prefix"):
        RedisConversationStore(key_prefix=prefix)


@pytest.mark.parametrize("prefix", ["a-b", "1a", "x; DROP TABLE y", 'a"'])
def test_a_table_prefix_that_is_no_identifier_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="table_prefix"):
        PostgresConversationStore("postgresql://localhost/x", table_prefix=prefix)


def test_sizes_of_a_pool_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="pool_min 3 and pool_max 2 do not fit"):
        PostgresConversationStore("postgresql://localhost/x", pool_min=3, pool_max=2)


async def test_older_tables_in_postgres_are_opened(postgres: PostgresServer) -> None:
    import asyncpg

    old = await asyncpg.connect(postgres.dsn)
    await old.execute(
        "CREATE TABLE promptise_sessions (session_id TEXT PRIMARY KEY, user_id TEXT, title TEXT, created_at "
        "TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now(), metadata JSONB, expires_at TIMESTAMPTZ);"
        "CREATE TABLE promptise_messages (id BIGSERIAL PRIMARY KEY, session_id TEXT REFERENCES promptise_sessions "
        "ON DELETE CASCADE, role TEXT, content TEXT, metadata JSONB, created_at TIMESTAMPTZ);"
        "CREATE INDEX idx_promptise ON promptise_messages (session_id, created_at);"
        "INSERT INTO promptise_sessions VALUES ('s', 'alice', 'T', DEFAULT, DEFAULT, '{\"a\": [1]}');"
        "INSERT INTO promptise_messages (session_id, role, content, metadata, created_at) VALUES "
        "('s', 'user', 'first', '{}', '2026-01-01T00:00:09Z'), ('s', 'tool', 'second', NULL, '2026-01-01T00:00:01Z')"
    )
    await old.close()
    stores = [PostgresConversationStore(postgres.dsn, pool_min=1, pool_max=2) for _ in range(4)]

    found = await asyncio.gather(*(store.load_messages("s") for store in stores))

    assert [[message.content for message in each] for each in found] == [["first", "second"]] * 4
    info = await stores[0].get_session("s")
    assert info is not None
    assert (info.user_id, info.title, info.metadata, info.version) == ("alice", "T", {"a": [1]}, 2)
    assert await stores[1].append_messages("s", said("third"), expected_version=2, owner="alice") == 3
    for store in stores:
        await store.close()


# asyncio warns of the connections that ended with their loop; nobody could close them any more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_store_works_from_one_event_loop_after_another(postgres: PostgresServer, redis: RedisServer) -> None:
    for store in (
        PostgresConversationStore(postgres.dsn, table_prefix="loops_", pool_min=1, pool_max=1),
        RedisConversationStore(redis.url, key_prefix="loops:"),
    ):

        async def once(store: AppendingStore, version: int) -> int:
            try:
                return await store.append_messages("s", said("a"), expected_version=version)
            finally:
                if version == 1:
                    await store.close()

        assert asyncio.run(once(store, 0)) == 1
        assert asyncio.run(once(store, 1)) == 2
    gc.collect()


async def test_a_closed_store_is_not_opened_again(postgres: PostgresServer, redis: RedisServer) -> None:
    for store in (PostgresConversationStore(postgres.dsn), RedisConversationStore(redis.url)):
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable, match="is closed; make a new one"):
            await store.load_messages("s")


async def test_calls_on_their_way_end_when_a_store_is_closed_and_open_nothing(postgres: PostgresServer) -> None:
    import asyncpg

    store = PostgresConversationStore(postgres.dsn, table_prefix="closing_", pool_min=1, pool_max=2)
    writes = [asyncio.ensure_future(store.append_messages("s", said("a"))) for _ in range(10)]
    await asyncio.sleep(0)
    await store.close()

    outcomes = await asyncio.gather(*writes, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 10
    other = await asyncpg.connect(postgres.dsn)
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    for _ in range(100):
        if await other.fetchval(count) == 1:
            break
        await asyncio.sleep(0.02)  # the server takes a moment to see that a connection is gone
    assert await other.fetchval(count) == 1
    await other.close()
