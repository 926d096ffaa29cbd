"""What every conversation store has to do, as a test that a store of your own can run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from graphwright.conversations.base import AppendingStore, ConversationStore, Message, MessageRole
from graphwright.exceptions import (
    ConfigurationError,
    ConversationConflict,
    UnstorableError,
)
from graphwright.testing.contracts._conversation_sessions import (
    Make,
    forgets_in_time,
    info_of,
    keeps_owners_apart,
    knows_owners,
    lists_and_changes_sessions,
    raises,
    require,
    said,
    texts_of,
)

__all__ = ["conversation_store_contract", "large_conversation_contract"]


_NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


async def conversation_store_contract(make_store: Make) -> None:
    """Check a store: what it keeps, its order, conflicts, owners, windows, lists and expiry.

    `make_store` gives a fresh, empty store for each check; it is called with `max_messages_per_session` or `ttl`
    where a check is about those.

    Raises:
        AssertionError: the store breaks a rule; the message says which.
    """
    for check in _CHECKS:
        made: list[AppendingStore] = []

        def make(made: list[AppendingStore] = made, **options: Any) -> AppendingStore:
            made.append(make_store(**options))
            return made[-1]

        try:
            await check(make)
        finally:
            for store in made:
                await store.close()


async def large_conversation_contract(make_store: Make) -> None:
    """Check a store with long and wide conversations: 10,000 messages, and one of 5 MB. Takes seconds.

    Raises:
        AssertionError: the store breaks a rule; the message says which.
    """
    store = make_store()
    try:
        many = [said(number, at=_NOW) for number in range(10_000)]
        await store.save_messages("long", many)
        require(
            texts_of(await store.load_messages("long")) == texts_of(many), "10,000 messages do not come back in order"
        )
        version = (await info_of(store, "long")).version
        await store.append_messages("long", [Message("user", "more")], expected_version=version)
        newest = await store.load_messages("long", last=3)
        require(texts_of(newest) == ["9998", "9999", "more"], f"the last of 10,000 are {texts_of(newest)}")
        wide = "\U0001f600\u00e9 " * 1_000_000 + "x"
        await store.append_messages("wide", [Message("user", wide, {"also": wide[:1000]})])
        found = await store.load_messages("wide")
        require([message.content for message in found] == [wide], "a message of 5 MB does not come back whole")
    finally:
        await store.close()


async def _keeps_what_it_is_given(make: Make) -> None:
    store = make()
    require(isinstance(store, ConversationStore), "it does not have the five methods of a store")
    require(isinstance(store, AppendingStore), "it has the five methods, and not those of an AppendingStore")
    require(await store.load_messages("s") == [], "load_messages() of an unknown session is not empty")
    require(await store.get_session("s") is None, "get_session() of an unknown session is not None")
    planes = "".join(chr(plane * 0x10000 + offset) for plane in range(17) for offset in (0x41, 0xFF, 0x1234))
    metadata = {
        "nested": {"list": [1, 2.5, None, True, "\u0000"], "tuple": (1, (2,))},
        "time": _NOW,
        "day": _NOW.date(),
        "bytes": b"\x00\xff",
        "infinite": math.inf,
        "k\x00": "v\ud800",
        "": 10**30,
        "numbers": {1: "one", 2: "two"},
        "$type": "datetime",
    }
    given = [
        Message("system", "", {}, _NOW),
        Message("user", planes, metadata, _NOW),
        Message("assistant", "a\x00b \ud83d lone \udfff", {"not": math.nan}, _NOW),
        Message("tool", "'); DROP TABLE x; -- \\u0000 \x02b64\x03 {}", {}, _NOW),
    ]
    await store.save_messages("s", given)
    for found in (await store.load_messages("s"), await store.load_messages("s", last=4)):
        require(len(found) == 4, f"load_messages() gives {len(found)} of 4 messages")
        nan = found[2].metadata.pop("not", 0.0)
        require(math.isnan(nan), f"a NaN in the metadata comes back as {nan!r}")
        wanted = [*given[:2], Message("assistant", given[2].content, {}, _NOW), given[3]]
        require(found == wanted, f"the messages come back as {found!r}")
        require(type(found[1].metadata["nested"]["tuple"]) is tuple, "a tuple in the metadata is no tuple any more")
    await store.close()
    await store.close()


async def _hands_out_copies(make: Make) -> None:
    store = make()
    given = Message("user", "hello", {"tags": ["a"]})
    await store.append_messages("s", [given])
    given.metadata["tags"].append("b")
    given.content = "changed"
    loaded = (await store.load_messages("s"))[0]
    loaded.metadata["tags"].append("c")
    loaded.content = "changed too"
    again = (await store.load_messages("s"))[0]
    require((again.content, again.metadata) == ("hello", {"tags": ["a"]}), f"a message changed in the store: {again}")


async def _refuses_before_it_touches(make: Make) -> None:
    store = make()
    await store.save_messages("s", [said(number) for number in range(10)])
    before = await store.load_messages("s")
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    for bad in ({"at": object()}, {"deep": [{"set": {1, 2}}]}, cyclic):
        mixed = [Message("user", "fine"), Message("user", "not", bad)]
        for write in (store.save_messages, store.append_messages):
            await raises(UnstorableError, write("s", mixed), f"metadata {list(bad)} are stored")
        await raises(UnstorableError, store.update_session("s", metadata=bad), f"metadata {list(bad)} are stored")
    for session_id in ("", "a\x00b", "\ud800"):
        await raises(
            ConfigurationError, store.append_messages(session_id, mixed[:1]), f"the id {session_id!r} is taken"
        )
    require(await store.load_messages("s") == before, "a refused write changed the session")
    require((await info_of(store, "s")).version == 10, "a refused write changed the version")


async def _keeps_the_order_of_writing(make: Make) -> None:
    for step in (timedelta(0), timedelta(seconds=-1)):
        for options, count in (({}, 200), ({"max_messages_per_session": 50}, 50)):
            store = make(**options)
            given = [said(number, at=_NOW + number * step) for number in range(200)]
            await store.save_messages("saved", given)
            for start in range(0, 200, 40):
                await store.append_messages("appended", given[start : start + 40])
            for session_id in ("saved", "appended"):
                found = texts_of(await store.load_messages(session_id))
                require(found == texts_of(given[-count:]), f"with the clock step {step} the order is {found}")
                info = await info_of(store, session_id)
                require(info.message_count == count, f"message_count is {info.message_count} and not {count}")


async def _counts_versions_and_tells_conflicts(make: Make) -> None:
    store = make()
    first, second = [said(1, at=_NOW), said(2, at=_NOW)], [said(3, at=_NOW)]
    require(await store.append_messages("s", first, expected_version=0) == 2, "the first append is not version 2")
    require(await store.append_messages("s", second, expected_version=2) == 3, "the second append is not version 3")
    found = await store.load_messages("s")
    require([message.seq for message in found] == [1, 2, 3], f"the sequence numbers are {[m.seq for m in found]}")
    # An answer that got lost: the same call again.
    require(await store.append_messages("s", second, expected_version=2) == 3, "a repeated append is no success")
    require(await store.append_messages("s", first, expected_version=0) == 2, "an older repeated one is no success")
    error = await raises(
        ConversationConflict, store.append_messages("s", [said(4)], expected_version=2), "a conflict goes unseen"
    )
    seen = (error.session_id, error.expected, error.actual)
    require(seen == ("s", 2, 3), f"the conflict says {seen}")
    await raises(ConversationConflict, store.append_messages("new", first, expected_version=7), "7 of nothing")
    require(await store.get_session("new") is None, "a refused append created the session")
    require(texts_of(await store.load_messages("s")) == ["1", "2", "3"], "a conflict wrote something")
    await store.save_messages("s", [said(9)])
    await raises(ConversationConflict, store.append_messages("s", [said(5)], expected_version=3), "a save is no change")
    after = await store.load_messages("s", after=3)
    require(texts_of(after) == ["9"], f"load_messages(after=3) gives {texts_of(after)}")
    await store.save_messages("s", [])
    require(await store.load_messages("s") == [], "save_messages([]) leaves messages")
    require((await info_of(store, "s")).version > 4, "save_messages([]) does not change the version")


async def _serves_many_writers(make: Make) -> None:
    store = make()
    pairs = [[Message("user", f"q{number}"), Message("assistant", f"a{number}")] for number in range(50)]
    versions = await asyncio.gather(*(store.append_messages("s", pair) for pair in pairs))
    require(sorted(versions) == list(range(2, 101, 2)), f"50 writers got the versions {sorted(versions)}")
    found = await store.load_messages("s")
    texts = texts_of(found)
    require(sorted(texts) == sorted(t for pair in pairs for t in texts_of(pair)), "messages of 50 writers are missing")
    together = all(texts[at + 1] == f"a{texts[at][1:]}" for at in range(0, 100, 2))
    require(together, "what one writer wrote at once is torn apart")
    require([message.seq for message in found] == list(range(1, 101)), "sequence numbers are missing or repeated")
    outcomes = await asyncio.gather(
        *(store.append_messages("race", pair, expected_version=0) for pair in pairs), return_exceptions=True
    )
    won = [pair for pair, outcome in zip(pairs, outcomes, strict=True) if outcome == 2]
    lost = [outcome for outcome in outcomes if isinstance(outcome, ConversationConflict)]
    require((len(won), len(lost)) == (1, 49), f"of 50 writers at version 0, {len(won)} won and {len(lost)} lost")
    require(
        texts_of(await store.load_messages("race")) == texts_of(won[0]), "the winner's messages are not what is there"
    )
    await asyncio.gather(*(store.save_messages("saved", pair) for pair in pairs))
    require(texts_of(await store.load_messages("saved")) in [texts_of(pair) for pair in pairs], "two saves are mixed")


async def _cuts_where_a_conversation_can_be_cut(make: Make) -> None:
    roles: list[MessageRole] = ["user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
    roles += ["user", "assistant", "tool", "assistant", "tool", "tool", "tool"]
    whole = make()
    for limit in range(1, 10):
        store = make(max_messages_per_session=limit)
        await whole.delete_session("s")
        for start in range(0, len(roles), 3):
            part = [Message(role, f"{start + n}") for n, role in enumerate(roles[start : start + 3])]
            await store.append_messages("appended", part)
            await whole.append_messages("s", part)
            there = await whole.load_messages("s")
            _check_window(there, await store.load_messages("appended"), limit, "an append")
            _check_window(there, await whole.load_messages("s", last=limit), limit, "load_messages(last=...)")
        everything = await whole.load_messages("s")
        await store.save_messages("saved", everything)
        kept = await store.load_messages("saved")
        _check_window(everything, kept, limit, "a save")
        require((await info_of(store, "saved")).message_count == len(kept), "message_count is not what is there")
        later = await whole.load_messages("s", after=8, last=2)
        require(all(message.seq > 8 for message in later), "after=8 with last=2 gives earlier messages")


def _check_window(whole: list[Message], kept: list[Message], limit: int, what: str) -> None:
    places = [int(message.content) for message in kept]
    heads = [place for place, message in enumerate(whole) if message.role != "tool"]
    rounds = [range(start, end) for start, end in zip(heads, [*heads[1:], len(whole)], strict=True)]
    question = max(place for place, message in enumerate(whole) if message.role == "user")
    shown = f"{what} with the limit {limit} keeps {places} of {[message.role for message in whole]}"
    require(places == sorted(places), shown)
    require(question in places, f"{shown}, without the question {question}")
    require(len(whole) - 1 in places, f"{shown}, without the newest")
    for tool_round in rounds:
        require(len({place in places for place in tool_round}) == 1, f"{shown}, and cuts {list(tool_round)}")
    least = {question, *rounds[-1]}
    require(len(places) <= max(limit, len(least)), f"{shown}, which is too many")
    skipped = [tool_round for tool_round in rounds if tool_round[0] not in places]
    if skipped:
        added = len(set(places) | set(skipped[-1]))
        require(added > limit, f"{shown}, though {list(skipped[-1])} would fit")


async def _is_not_split_by_cancelling(make: Make) -> None:
    store = make()
    old, new = [said(number) for number in range(50)], [said(number) for number in range(100, 170)]
    await store.save_messages("s", old)
    for turns in range(12):
        task = asyncio.ensure_future(store.save_messages("s", new))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        found = await store.load_messages("s")
        require(texts_of(found) in (texts_of(old), texts_of(new)), f"a cancelled save leaves {len(found)} messages")
        require((await info_of(store, "s")).message_count == len(found), "message_count is not what is there")
        await store.save_messages("s", old)


_CHECKS: tuple[Callable[[Make], Awaitable[None]], ...] = (
    _keeps_what_it_is_given,
    _hands_out_copies,
    _refuses_before_it_touches,
    _keeps_the_order_of_writing,
    _counts_versions_and_tells_conflicts,
    _serves_many_writers,
    knows_owners,
    keeps_owners_apart,
    _cuts_where_a_conversation_can_be_cut,
    lists_and_changes_sessions,
    forgets_in_time,
    _is_not_split_by_cancelling,
)
