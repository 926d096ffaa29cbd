from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from graphwright.tools.builtin import RedisTool


@pytest.fixture
async def client(redis: Any) -> AsyncIterator[Any]:
    """A connection of the test's own to an empty database."""
    module = pytest.importorskip("redis.asyncio", reason="install redis")
    client = module.Redis.from_url(redis.url)
    await client.flushall()
    yield client
    await client.aclose()


async def test_values_are_read(redis: Any, client: Any, use: Any) -> None:
    await client.set("word", "Grüße")
    await client.set("bytes", b"\xff\x00")
    await client.hset("hash", mapping={"a": "1", "b": "2"})
    tool = RedisTool(redis.url)

    assert await use(tool, command="get", arguments=["word"]) == "Grüße"
    assert await use(tool, command="GET", arguments=["bytes"]) == "<2 bytes>"
    assert await use(tool, command="GET", arguments=["none"]) == "null"
    assert await use.data(tool, command="HMGET", arguments=["hash", "a", "b"]) == ["1", "2"]
    assert (tool.name, tool.risk_level, RedisTool(redis.url, write=True).risk_level) == ("redis", 1, 2)


async def test_a_reading_tool_refuses_what_writes(redis: Any, client: Any, use: Any) -> None:
    error = await use.error(RedisTool(redis.url), command="SET", arguments=["a", "1"])

    assert "this tool only reads" in error
    assert await client.exists("a") == 0


async def test_a_writing_tool_writes(redis: Any, client: Any, use: Any) -> None:
    await use(RedisTool(redis.url, write=True), command="SET", arguments=["a", 1])

    assert await client.get("a") == b"1"


DANGEROUS = "CONFIG EVAL EVALSHA FCALL SCRIPT FLUSHALL FLUSHDB KEYS SHUTDOWN DEBUG MIGRATE RESTORE SLAVEOF REPLICAOF "
DANGEROUS += "MODULE ACL CLIENT AUTH SELECT MONITOR SUBSCRIBE BLPOP WAIT MULTI SAVE SORT CLUSTER HELLO"


@pytest.mark.parametrize("command", [*DANGEROUS.split(), "GET x\r\nFLUSHALL", "CONFIG GET", ""])
async def test_dangerous_commands_are_never_sent(command: str, redis: Any, client: Any, use: Any) -> None:
    await client.set("kept", "1")
    before = (await client.info("stats"))["total_connections_received"]

    await use.error(RedisTool(redis.url, write=True), command=command, arguments=["*", "0"])

    assert (await client.info("stats"))["total_connections_received"] == before
    assert await client.get("kept") == b"1"


async def test_an_argument_cannot_become_a_command(redis: Any, client: Any, use: Any) -> None:
    await client.set("kept", "1")

    assert await use(RedisTool(redis.url), command="GET", arguments=["x\r\nFLUSHALL\r\n"]) == "null"
    assert await client.get("kept") == b"1"


async def test_what_is_too_large_is_refused_before_it_is_sent(redis: Any, client: Any, use: Any) -> None:
    await client.set("long", "x" * 200)
    await client.sadd("many", *range(20))
    await client.rpush("list", *range(20))
    tool = RedisTool(redis.url, max_items=10, max_chars=100)

    assert await use.error(tool, command="GET", arguments=["long"]) == (
        "GET would return 200, and 100 is the most; read a part with GETRANGE"
    )
    assert "HSCAN or SSCAN" in await use.error(tool, command="SMEMBERS", arguments=["many"])
    assert await use.data(tool, command="LRANGE", arguments=["list", 0, -1]) == [
        *(str(number) for number in range(10)),
        "[cut: 10 more]",
    ]


async def test_what_is_wrong_is_told_without_the_login(redis: Any, client: Any, use: Any) -> None:
    await client.rpush("list", "x")

    assert "WRONGTYPE" in await use.error(RedisTool(redis.url), command="GET", arguments=["list"])
    for url in (redis.url.replace("secret", "hunter2"), "redis://:hunter2@127.0.0.1:1/0"):
        error = await use.error(RedisTool(url), command="GET", arguments=["a"])
        assert error.startswith("Redis cannot be reached (")
        assert "hunter2" not in error
