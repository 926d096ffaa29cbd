"""What every conversation store has to do with sessions: who owns them, their lists, and when they end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from graphwright.conversations.base import AppendingStore, Message, MessageRole
from graphwright.exceptions import ConfigurationError, SessionAccessDenied

__all__ = [
    "Make",
    "forgets_in_time",
    "info_of",
    "keeps_owners_apart",
    "knows_owners",
    "lists_and_changes_sessions",
    "raises",
    "require",
    "said",
    "texts_of",
]

Make = Callable[..., AppendingStore]
"""Makes a fresh, empty store with the given options."""

_LOOK_ALIKES = (
    "u",
    "u ",
    "U",
    "\u0443",
    "u\u0301",
    "\u00fa",
    "u::u",
    "u%",
    "_",
    "0",
    "None",
    "'; --",
    "u" * 2000,
    "u\x00",
)


async def knows_owners(make: Make) -> None:
    """Check that of all who claim a session one gets it, and nobody else can write to it."""
    store = make()
    claims = await asyncio.gather(
        *(store.claim_session("new", f"owner-{number}") for number in range(50)), return_exceptions=True
    )
    won = [claim for claim in claims if not isinstance(claim, BaseException)]
    refused = [claim for claim in claims if isinstance(claim, SessionAccessDenied)]
    require((len(won), len(refused)) == (1, 49), f"of 50 claims {len(won)} won and {len(refused)} were refused")
    require(not any("owner-" in str(error) for error in refused), f"the refusal names the owner: {refused[0]}")
    owner = won[0].user_id
    require((await store.claim_session("new", owner)).user_id == owner, "the owner cannot claim again")
    await store.append_messages("open", [said(1)], owner=None)
    await store.append_messages("hers", [said(1)], owner="alice", expected_version=0)
    require((await info_of(store, "hers")).user_id == "alice", "a new session is not its first writer's")
    for wanted, session_id in ((None, "hers"), ("bob", "hers"), ("alice", "open")):
        write = store.append_messages(session_id, [said(2)], owner=wanted)
        await raises(SessionAccessDenied, write, f"{wanted!r} writes to {session_id!r}")
        await raises(SessionAccessDenied, store.claim_session(session_id, wanted), f"{wanted!r} claims {session_id!r}")
    require(len(await store.load_messages("hers")) == 1, "a refused write was written")
    require((await store.claim_session("open", "bob", adopt=True)).user_id == "bob", "adopt=True does not adopt")
    await raises(SessionAccessDenied, store.claim_session("open", "alice", adopt=True), "an owned session is adopted")
    require([info.session_id for info in await store.list_sessions(user_id="bob")] == ["open"], "bob's list is wrong")
    races = await asyncio.gather(
        *(store.append_messages("raced", [said(1)], owner=f"owner-{number}") for number in range(20)),
        return_exceptions=True,
    )
    refused = [race for race in races if isinstance(race, SessionAccessDenied)]
    require((races.count(1), len(refused)) == (1, 19), f"20 users write to a new session at once: {races}")
    require(len(await store.load_messages("raced")) == 1, "two users wrote to one session")
    await raises(ConfigurationError, store.claim_session("x", ""), "an empty owner is taken")


async def keeps_owners_apart(make: Make) -> None:
    """Check that owners and sessions whose ids look alike never meet."""
    store = make()
    for place, owner in enumerate(_LOOK_ALIKES):
        await store.append_messages(f"s{place}", [Message("user", f"secret {place}")], owner=owner)
    await store.append_messages("nobody", [said(1)])
    for place, owner in enumerate(_LOOK_ALIKES):
        mine = [(info.session_id, info.user_id) for info in await store.list_sessions(user_id=owner)]
        require(mine == [(f"s{place}", owner)], f"{owner[:20]!r} sees the sessions {mine}")
    unowned = [info.session_id for info in await store.list_sessions(unowned=True)]
    require(unowned == ["nobody"], f"unowned=True gives {unowned}")
    require(await store.purge_user("u") == 1, "purge_user() does not count")
    left = {info.session_id for info in await store.list_sessions(limit=1000)}
    wanted = {f"s{place}" for place in range(1, len(_LOOK_ALIKES))} | {"nobody"}
    require(left == wanted, f"after purge_user('u') there are {sorted(left)}")
    for session_id in ("a:b", "a", "a%", "A", "\U0001f600", "../x", "a b", "x" * 500):
        await store.append_messages(session_id, [Message("user", session_id)])
    for session_id in ("a:b", "a", "a%", "A", "\U0001f600", "../x", "a b", "x" * 500):
        found = texts_of(await store.load_messages(session_id))
        require(found == [session_id], f"the session {session_id[:20]!r} holds {found}")


async def lists_and_changes_sessions(make: Make) -> None:
    """Check pages of sessions, and what is told and changed of one."""
    store = make()
    for number in range(7):
        await store.append_messages(f"s{number}", [said(number)], owner="u", title=f"title {number}\x00")
        await asyncio.sleep(0.001)  # the times of the writes have to differ
    await store.append_messages("s2", [said(8)], title="another")
    pages = [await store.list_sessions(user_id="u", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    ids = [[info.session_id for info in page] for page in pages]
    require(ids == [["s2", "s6", "s5"], ["s4", "s3", "s1"], ["s0"], []], f"the pages of the list are {ids}")
    first = pages[0][0]
    told = (first.title, first.message_count, first.version, first.expires_at, first.created_at < first.updated_at)
    require(told == ("title 2\x00", 2, 2, None, True), f"list_sessions() says {first}")
    require(first == await store.get_session("s2"), "get_session() and list_sessions() differ")
    changed = await store.update_session("s0", title="new", metadata={"tags": [1, math.inf]}, user_id="v")
    info = await info_of(store, "s0")
    seen = (changed, info.title, info.metadata, info.user_id)
    require(seen == (True, "new", {"tags": [1, math.inf]}, "v"), f"update_session() leaves {info}")
    await store.update_session("s0", title=None)
    info = await info_of(store, "s0")
    rest = (info.title, info.metadata, info.user_id, info.message_count)
    require(rest == (None, {"tags": [1, math.inf]}, "v", 1), f"a later update leaves {info}")
    require([i.session_id for i in await store.list_sessions(user_id="v")] == ["s0"], "the new owner does not see it")
    await store.update_session("s0", user_id=None)
    require([i.session_id for i in await store.list_sessions(unowned=True)] == ["s0"], "nobody's is not listed")
    require(await store.update_session("?", title="x") is False, "an unknown session is updated")
    require(await store.get_session("?") is None, "update_session() created a session")
    deleted = (await store.delete_session("s2"), await store.delete_session("s2"), await store.load_messages("s2"))
    require(deleted == (True, False, []), f"delete_session() twice, then load_messages(): {deleted}")
    require(len(await store.list_sessions()) == 6, "a deleted session is listed")
    await raises(ConfigurationError, store.list_sessions(limit=-1), "list_sessions(limit=-1) is taken")
    await raises(ConfigurationError, store.list_sessions(offset=-1), "list_sessions(offset=-1) is taken")


async def forgets_in_time(make: Make) -> None:
    """Check that a session whose time is over is gone, for everybody and for good."""
    store = make()
    past = datetime.now(UTC) - timedelta(seconds=5)
    for session_id in ("gone", "again", "kept"):
        await store.append_messages(session_id, [said(1)], owner="u", title="old")
        await store.update_session(session_id, expires_at=past if session_id != "kept" else past + timedelta(hours=1))
    seen = (await store.load_messages("gone"), await store.get_session("gone"), await store.delete_session("?"))
    require(seen == ([], None, False), f"an expired session shows {seen}")
    require([info.session_id for info in await store.list_sessions()] == ["kept"], "an expired session is listed")
    require(await store.update_session("gone", title="x") is False, "an expired session is updated")
    await store.append_messages("again", [said(2)], owner="v", expected_version=0)
    info = await info_of(store, "again")
    require((info.user_id, info.title, info.message_count) == ("v", None, 1), f"an expired session leaves {info}")
    await store.append_messages("third", [said(1)])
    await store.update_session("third", expires_at=past)
    await store.cleanup_expired()
    require(await store.cleanup_expired() == 0, "cleanup_expired() leaves expired sessions")
    left = sorted(info.session_id for info in await store.list_sessions())
    require(left == ["again", "kept"], f"after cleanup_expired() there are {left}")
    await store.update_session("kept", expires_at=None)
    require((await info_of(store, "kept")).expires_at is None, "expires_at=None does not last")
    store = make(ttl=100)
    await store.append_messages("s", [said(1)])
    first = (await info_of(store, "s")).expires_at
    await asyncio.sleep(0.002)  # the second write has to be later
    await store.append_messages("s", [said(2)])
    second = (await info_of(store, "s")).expires_at
    require(first is not None and second is not None and first < second, f"ttl gives {first}, then {second}")
    near = datetime.now(UTC) + timedelta(seconds=100)
    require(second is not None and abs(near - second) < timedelta(seconds=20), f"ttl=100 gives {second} at {near}")


def said(number: int, *, at: datetime | None = None) -> Message:
    role: MessageRole = "assistant" if number % 2 else "user"
    return Message(role, str(number)) if at is None else Message(role, str(number), {}, at)


def texts_of(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


async def info_of(store: AppendingStore, session_id: str) -> Any:
    info = await store.get_session(session_id)
    require(info is not None, f"get_session() does not know {session_id!r}")
    return info


async def raises(kind: type[Exception], work: Awaitable[Any], otherwise: str) -> Any:
    try:
        await work
    except kind as error:
        return error
    raise AssertionError(f"{otherwise}, where {kind.__name__} was due")


def require(fine: bool, otherwise: str) -> None:
    if not fine:
        raise AssertionError(otherwise)
