from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from graphwright.caller import CallerContext, IsolationKey
from graphwright.exceptions import ConfigurationError
from graphwright.memory import InMemoryProvider, MemoryIsolationError, MemoryProvider, MemoryScope, SQLiteMemoryProvider

Make = Callable[..., MemoryProvider]
ACME, GLOBEX = (CallerContext(user_id="u", tenant_id=tenant).isolation_key for tenant in ("acme", "globex"))


@pytest.fixture(params=["in_memory", "sqlite"])
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Make]:
    made: list[MemoryProvider] = []

    def build(**options: Any) -> MemoryProvider:
        sqlite = request.param == "sqlite"
        made.append(SQLiteMemoryProvider(tmp_path / "m.db", **options) if sqlite else InMemoryProvider(**options))
        return made[-1]

    yield build
    for each in made:
        await each.close()


async def found(memory: MemoryProvider, query: str, user_id: str | None) -> list[str]:
    return [result.content for result in await memory.search(query, user_id=user_id)]


async def test_nobody_finds_what_another_caller_stored(make: Make) -> None:
    memory = make()
    owners = [None, "u", "v", ACME, GLOBEX]
    for owner in owners:
        await memory.add(f"the pin of {owner!r}", user_id=owner)

    assert [await found(memory, "pin", owner) for owner in owners] == [[f"the pin of {owner!r}"] for owner in owners]


async def test_all_find_what_is_shared_on_purpose(make: Make) -> None:
    memory = make(scope=MemoryScope.SHARED)
    await memory.add("the office opens at nine", user_id="u")

    assert await found(memory, "office", "v") == ["the office opens at nine"]


async def test_a_caller_deletes_only_their_own(make: Make) -> None:
    memory = make()
    kept = await memory.add("tea, no sugar", user_id="u")

    assert [await memory.delete(kept, user_id=who) for who in ("v", None, "u", "u")] == [False, False, True, False]
    assert await found(memory, "tea", "u") == []


async def test_a_purge_removes_one_person_of_one_tenant(make: Make) -> None:
    memory = make()
    for owner in (ACME, ACME, GLOBEX, "u", None):
        await memory.add("likes tea", user_id=owner)

    assert await memory.purge_user("u", tenant_id="acme") == 2
    assert [len(await found(memory, "tea", owner)) for owner in (ACME, GLOBEX, "u", None)] == [0, 1, 1, 1]


@pytest.mark.parametrize("name", ["", "::anonymous", "a::", "a::b::c", "a:b::c"])
async def test_an_id_that_no_caller_has_is_refused(make: Make, name: str) -> None:
    with pytest.raises(MemoryIsolationError):
        await make().search("pin", user_id=name)


@pytest.mark.parametrize(
    "query", ['"', "tea OR", "NEAR(tea", "content:tea*", "tea') --", "tea\x00", "tea \ud800", "-tea"]
)
async def test_a_query_is_words_and_never_syntax(make: Make, query: str) -> None:
    memory = make()
    await memory.add("likes tea", user_id="u")
    await memory.add("the tea of another", user_id="v")

    assert await found(memory, query, "u") == (["likes tea"] if "tea" in query else [])


@pytest.mark.parametrize("content", ["a\x00b", "a\ud800b", "  "])
async def test_what_cannot_be_kept_as_it_is_is_refused(make: Make, content: str) -> None:
    with pytest.raises(ConfigurationError):
        await make().add(content, user_id="u")


async def test_results_come_best_first_with_their_metadata(make: Make) -> None:
    memory = make()
    await memory.add("green things", user_id="u")
    best = await memory.add("green tea", metadata={"n": 1}, user_id="u")

    results = await memory.search("green tea", user_id="u")

    assert (results[0].memory_id, results[0].content, dict(results[0].metadata)) == (best, "green tea", {"n": 1})
    assert 1 >= results[0].score > results[1].score > 0
    assert len(await memory.search("green", limit=1, user_id="u")) == 1


async def test_a_file_opened_again_still_knows(tmp_path: Path) -> None:
    first = SQLiteMemoryProvider(tmp_path / "m.db")
    await first.add("ein Käse 🧀 für später", user_id=IsolationKey("u"))
    await first.close()
    second = SQLiteMemoryProvider(tmp_path / "m.db")

    assert await found(second, "käse", "u") == ["ein Käse 🧀 für später"]
    await second.close()
