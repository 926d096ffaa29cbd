"""Conversations in SQLite: crashes, other writers, older files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphwright.conversations import Message, SQLiteConversationStore
from graphwright.exceptions import ConfigurationError, StoreUnavailable

SOURCE = Path(__file__).parents[2] / "src"


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


def child(program: str, *args: str) -> subprocess.Popen[str]:
    """Start a process that runs `program` with the package on its path."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{program}", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


KILLED = """
import asyncio, os, signal, sqlite3
from graphwright.conversations import Message, SQLiteConversationStore

path, method, fatal = sys.argv[1], sys.argv[2], int(sys.argv[3])
statements = 0

def before(statement):
    global statements
    statements += 1
    if statements == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = SQLiteConversationStore(path, max_messages_per_session=12)
    await store.get_session("s")
    store._connection.set_trace_callback(before)
    messages = [Message("user", f"new {number}") for number in range(3)]
    if method == "delete_session":
        await store.delete_session("s")
    elif method == "append_messages":
        await store.append_messages("s", messages, expected_version=10, owner="alice", title="t")
    else:
        await store.save_messages("s", messages)
    store._connection.set_trace_callback(None)
    await store.close()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["append_messages", "save_messages", "delete_session"])
async def test_a_writer_killed_between_any_two_statements_leaves_all_or_nothing(tmp_path: Path, method: str) -> None:
    old = [f"old {number}" for number in range(10)]
    new = [f"new {number}" for number in range(3)]
    whole = {"append_messages": [*old[1:], *new], "save_messages": new, "delete_session": []}[method]
    outcomes = []
    for fatal in range(1, 40):
        path = tmp_path / f"{fatal}.db"
        store = SQLiteConversationStore(path)
        await store.append_messages("s", said(*old), owner="alice")
        await store.close()

        process = child(KILLED, str(path), method, str(fatal))
        _, errors = await asyncio.to_thread(process.communicate)

        store = SQLiteConversationStore(path)
        texts = [message.content for message in await store.load_messages("s")]
        info = await store.get_session("s")
        await store.close()
        assert texts in (old, whole), f"killed before statement {fatal}: {texts}"
        assert (info.message_count if info is not None else 0) == len(texts)
        outcomes.append(texts)
        if process.returncode == 0:
            break
        assert process.returncode == -9, errors
    assert process.returncode == 0, "the program has more statements than were tried"
    assert len(outcomes) > 4
    assert outcomes[-1] == whole
    assert outcomes[:-1] == [old] * (len(outcomes) - 1)


OPENER = """
import asyncio
from graphwright.conversations import Message, SQLiteConversationStore

async def main():
    stores = [SQLiteConversationStore(sys.argv[1]) for _ in range(4)]
    async def work(place, store):
        for number in range(int(sys.argv[3])):
            await store.append_messages("shared", [Message("user", f"{sys.argv[2]} {place} {number}")])
            await store.save_messages(f"{sys.argv[2]} {place}", [Message("user", str(number))])
            assert (await store.load_messages(f"{sys.argv[2]} {place}"))[0].content == str(number)
    await asyncio.gather(*(work(place, store) for place, store in enumerate(stores)))
    for store in stores:
        await store.close()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_eight_openers_in_two_processes_never_find_the_file_locked(tmp_path: Path) -> None:
    for round_ in range(5):
        path, count = str(tmp_path / f"{round_}.db"), 25 if round_ == 0 else 1
        processes = [child(OPENER, path, name, str(count)) for name in ("a", "b")]
        errors = [(await asyncio.to_thread(process.communicate))[1] for process in processes]

        assert errors == ["", ""]
        store = SQLiteConversationStore(path)
        texts = {message.content for message in await store.load_messages("shared")}
        assert len(texts) == 8 * count
        assert len(await store.list_sessions()) == 9
        await store.close()


async def test_a_foreign_lock_is_waited_for(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db")
    await store.append_messages("s", said("a"))
    foreign = sqlite3.connect(tmp_path / "c.db", isolation_level=None, check_same_thread=False)
    foreign.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: foreign.execute("COMMIT"))
    timer.start()

    assert await store.append_messages("s", said("b"), expected_version=1) == 2

    timer.join()
    foreign.close()
    await store.close()


async def test_a_closed_store_is_not_opened_again(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db")
    await store.append_messages("s", said("a"))
    await store.close()

    with pytest.raises(StoreUnavailable, match=r"c.db' is closed; make a new one"):
        await store.load_messages("s")


async def test_what_was_begun_before_a_close_is_written_and_nothing_after_it(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db")
    writes = [asyncio.ensure_future(store.append_messages("s", said(str(number)))) for number in range(20)]
    await asyncio.sleep(0)
    await store.close()

    outcomes = await asyncio.gather(*writes, return_exceptions=True)

    written = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert all(isinstance(outcome, (int, StoreUnavailable)) for outcome in outcomes), outcomes
    again = SQLiteConversationStore(tmp_path / "c.db")
    assert len(await again.load_messages("s")) == len(written) > 0
    await again.close()


FORKED = """
import asyncio, os
from graphwright.conversations import Message, SQLiteConversationStore
from graphwright.exceptions import StoreUnavailable

store = SQLiteConversationStore(sys.argv[1])
asyncio.run(store.append_messages("s", [Message("user", "a")]))
child = os.fork()
if child == 0:
    try:
        asyncio.run(store.load_messages("s"))
    except StoreUnavailable as error:
        os._exit(7 if "was made before a fork" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), asyncio.run(store.append_messages("s", [])))
asyncio.run(store.close())
"""


async def test_a_forked_child_is_told_to_make_a_store_of_its_own(tmp_path: Path) -> None:
    output, _ = await asyncio.to_thread(child(FORKED, str(tmp_path / "c.db")).communicate)

    assert output == "7 1\n"


async def test_a_file_that_cannot_be_opened_works_when_it_can(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "later" / "c.db")
    with pytest.raises(StoreUnavailable, match="unable to open database file; nothing was written"):
        await store.append_messages("s", said("a"))

    (tmp_path / "later").mkdir()

    assert await store.append_messages("s", said("a"), expected_version=0) == 1
    await store.close()


async def test_memory_means_a_database_that_ends_with_its_store() -> None:
    store = SQLiteConversationStore(":memory:")
    await store.append_messages("s", said("a"))

    assert len(await store.load_messages("s")) == 1
    await store.close()
    other = SQLiteConversationStore(":memory:")
    assert await other.load_messages("s") == []
    await other.close()


def test_a_store_works_from_one_event_loop_after_another(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db")

    for version in range(3):
        assert asyncio.run(store.append_messages("s", said("a"), expected_version=version)) == version + 1

    asyncio.run(store.close())


@pytest.mark.parametrize("prefix", ["a-b", "1a", "x; DROP TABLE y", 'a"', "a" * 60, "é", "a\n"])
def test_a_prefix_that_is_no_identifier_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="table_prefix"):
        SQLiteConversationStore(table_prefix=prefix)


async def test_prefixes_do_not_see_each_other(tmp_path: Path) -> None:
    stores = [SQLiteConversationStore(tmp_path / "c.db", table_prefix=prefix) for prefix in ("", "a_", "promptise_")]
    for place, store in enumerate(stores):
        await store.append_messages("s", said(str(place)))

    assert [[m.content for m in await store.load_messages("s")] for store in stores] == [["0"], ["1"], ["2"]]
    for store in stores:
        await store.close()


async def test_older_tables_are_opened_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    old = sqlite3.connect(path)
    old.executescript(
        "CREATE TABLE promptise_sessions (session_id TEXT PRIMARY KEY, user_id TEXT, title TEXT, created_at TEXT, "
        "updated_at TEXT, metadata TEXT DEFAULT '{}', expires_at TEXT);"
        "CREATE TABLE promptise_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES "
        "promptise_sessions(session_id) ON DELETE CASCADE, role TEXT, content TEXT, metadata TEXT, created_at TEXT);"
        "CREATE INDEX idx_m ON promptise_messages (session_id, created_at);"
    )
    times = ("2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00", None)
    old.execute("INSERT INTO promptise_sessions VALUES ('s', 'alice', 'T', ?, ?, '{\"a\": NaN}', ?)", times)
    # The clock was set back between the two.
    for content, at in (("first", "2026-01-01T00:00:09"), ("second", "2026-01-01T00:00:01.5+00:00")):
        row = ("s", "user", content, json.dumps({"n": 1}), at)
        old.execute(
            "INSERT INTO promptise_messages (session_id, role, content, metadata, created_at) VALUES (?, ?, ?, ?, ?)",
            row,
        )
    old.execute("INSERT INTO promptise_messages (session_id, role, content) VALUES ('orphan', 'user', 'kept')")
    old.commit()
    old.close()

    store = SQLiteConversationStore(path)

    found = await store.load_messages("s")
    assert [(message.content, message.metadata, message.seq) for message in found] == [
        ("first", {"n": 1}, 1),
        ("second", {"n": 1}, 2),
    ]
    assert found[1].created_at.isoformat() == "2026-01-01T00:00:01.500000+00:00"
    info = await store.get_session("s")
    assert info is not None
    assert (info.user_id, info.title, info.message_count, info.version) == ("alice", "T", 2, 2)
    assert repr(info.metadata) == "{'a': nan}"
    assert [message.content for message in await store.load_messages("orphan")] == ["kept"]
    assert await store.append_messages("s", said("third"), expected_version=2, owner="alice") == 3
    await store.close()


async def test_tables_of_a_later_release_are_left_alone(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db")
    await store.append_messages("s", said("a"))
    await store.close()
    later = sqlite3.connect(tmp_path / "c.db")
    later.execute("UPDATE promptise_schema SET version = 99")
    later.commit()
    later.close()

    store = SQLiteConversationStore(tmp_path / "c.db")
    with pytest.raises(ConfigurationError, match="schema version 99 and this release knows 1"):
        await store.append_messages("s", said("b"))
    await store.close()


async def test_the_cost_of_an_append_does_not_grow_with_the_conversation(tmp_path: Path) -> None:
    store = SQLiteConversationStore(tmp_path / "c.db", max_messages_per_session=50)
    executed: list[int] = []

    async def steps() -> int:
        executed.clear()
        await store.append_messages("s", said("q", "a"))
        return len(executed)

    await store.append_messages("s", said(*map(str, range(60))))
    assert store._connection is not None
    store._connection.set_progress_handler(lambda: executed.append(1), 50)
    early = await steps()
    await store.append_messages("s", said(*map(str, range(20_000))))
    late = await steps()

    assert late <= early * 1.5
    store._connection.set_progress_handler(None, 0)
    await store.close()
