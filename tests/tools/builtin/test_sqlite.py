from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphwright.tools.builtin import SQLiteTool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "it's 100%?.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "one", b"\0\1"), (2, None, b"")])
        connection.commit()
    return file


def rows_of(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, name FROM t ORDER BY id").fetchall()


async def test_rows_are_read_with_parameters(path: Path, use: Any) -> None:
    found = await use.data(SQLiteTool(path), statement="SELECT * FROM t WHERE id >= ? ORDER BY id", parameters=[1])

    assert found == {"columns": ["id", "name", "data"], "rows": [[1, "one", "<2 bytes>"], [2, None, "<0 bytes>"]]}


def test_reading_and_writing_have_their_own_name_and_risk(path: Path) -> None:
    reading, writing = SQLiteTool(path), SQLiteTool(path, write=True)

    assert (reading.name, reading.risk_level, reading.idempotent) == ("sqlite", 0, True)
    assert (writing.name, writing.risk_level, writing.idempotent) == ("sqlite_write", 2, False)


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


CHANGES = [
    "INSERT INTO t VALUES (3, 'x', '')",
    "UPDATE t SET name = 'x'",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u (x)",
    "CREATE TEMP TABLE u (x)",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA database_list",
    "BEGIN IMMEDIATE",
    "VACUUM",
    "ATTACH ':memory:' AS other",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "SELECT load_extension('x')",
    "ANALYZE",
]


@pytest.mark.parametrize("statement", CHANGES)
async def test_a_reading_tool_does_nothing_but_read(statement: str, path: Path, use: Any) -> None:
    before = bytes_of(path)

    error = await use.error(SQLiteTool(path), statement=statement)

    assert "is refused" in error or "failed" in error
    assert bytes_of(path) == before


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize(
    "statement", ["ATTACH '{other}' AS o", "VACUUM INTO '{other}'", "PRAGMA temp_store_directory = '{other}'"]
)
async def test_no_statement_reaches_another_file(
    statement: str, write: bool, path: Path, tmp_path: Path, use: Any
) -> None:
    other = tmp_path / "other.db"

    error = await use.error(SQLiteTool(path, write=write), statement=statement.format(other=other))

    assert "is refused" in error
    assert not other.exists()


async def test_a_writing_tool_changes_rows_and_says_how_many(path: Path, use: Any) -> None:
    tool = SQLiteTool(path, write=True)

    assert await use.data(tool, statement="UPDATE t SET name = ?", parameters=["x"]) == {"changed_rows": 2}
    returned = await use.data(tool, statement="INSERT INTO t (name) VALUES ('y') RETURNING id")

    assert returned == {"columns": ["id"], "rows": [[3]], "changed_rows": 1}
    assert rows_of(path) == [(1, "x"), (2, "x"), (3, "y")]


async def test_all_of_a_change_happens_when_only_some_of_its_rows_are_shown(path: Path, use: Any) -> None:
    tool = SQLiteTool(path, write=True, max_rows=1)

    shown = await use.data(tool, statement="DELETE FROM t RETURNING id")

    assert (len(shown["rows"]), shown["changed_rows"]) == (1, 2)
    assert rows_of(path) == []


@pytest.mark.parametrize("write", [False, True])
async def test_only_one_statement_runs(write: bool, path: Path, use: Any) -> None:
    error = await use.error(SQLiteTool(path, write=write), statement="SELECT 1; DELETE FROM t")

    assert "one statement" in error
    assert len(rows_of(path)) == 2


async def test_rows_and_characters_are_capped(path: Path, use: Any) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    wide = "SELECT printf('%.*c', 100000, 'x')"

    few = await use.data(SQLiteTool(path, max_rows=3), statement=many)
    cut = await use.data(SQLiteTool(path, max_chars=400), statement=wide)

    assert few["rows"] == [[1], [2], [3]]
    assert few["truncated"].startswith("only the first 3 rows")
    assert cut["rows"] == [["x" * 100 + "[cut: 99900 more characters]"]]


async def test_an_endless_statement_is_stopped(path: Path, use: Any) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    began = time.monotonic()

    error = await use.error(SQLiteTool(path, statement_timeout=0.1), statement=endless)

    assert error == "the statement took longer than 0.1 s and was stopped; make it smaller"
    assert time.monotonic() - began < 5


async def test_a_huge_value_is_refused_before_it_is_made(path: Path, use: Any) -> None:
    assert "too big" in await use.error(SQLiteTool(path), statement="SELECT zeroblob(2000000000)")


async def test_a_missing_file_is_made_only_by_a_writing_tool(tmp_path: Path, use: Any) -> None:
    missing = tmp_path / "new.db"

    error = await use.error(SQLiteTool(missing), statement="SELECT 1")
    assert str(tmp_path) not in error
    assert not missing.exists()

    await use(SQLiteTool(missing, write=True), statement="CREATE TABLE t (x)")
    assert missing.exists()


async def test_the_schema_can_be_asked_for(path: Path, use: Any) -> None:
    found = await use.data(SQLiteTool(path), statement="PRAGMA table_info(t)")

    assert [row[1] for row in found["rows"]] == ["id", "name", "data"]
