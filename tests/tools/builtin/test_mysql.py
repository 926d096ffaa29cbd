from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graphwright.tools.builtin import MySQLTool

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow

pytest.importorskip("pymysql", reason="install pymysql")

CLOSED = "mysql://me:hunter2@127.0.0.1:1/x"

CHANGES = [
    "DELETE FROM t",
    "/* SELECT */ DELETE FROM t",
    "-- SELECT\nDELETE FROM t",
    "(DELETE FROM t)",
    "/*! DELETE FROM t */",
    "SELECT 1 /*!, load_file('x') */",
    "SELECT * FROM t INTO OUTFILE 'x'",
    "SELECT * FROM t INTO/**/DUMPFILE 'x'",
    "SELECT LOAD_FILE('x')",
    "SELECT GET_LOCK('a', 10)",
    "SET SESSION TRANSACTION READ WRITE",
    "",
]


@pytest.mark.parametrize("statement", CHANGES)
async def test_a_reading_tool_refuses_what_does_not_only_read(statement: str, use: Any) -> None:
    error = await use.error(MySQLTool(CLOSED), statement=statement)

    assert "only reads" in error or "does more than read" in error


@pytest.mark.parametrize("write", [False, True])
async def test_a_server_that_is_not_there_is_told_without_the_login(write: bool, use: Any) -> None:
    error = await use.error(MySQLTool(CLOSED, write=write), statement="SELECT 1")

    assert error == "the database cannot be reached (OperationalError); try later"


def test_reading_and_writing_have_their_own_name_and_risk() -> None:
    tools = [MySQLTool(CLOSED), MySQLTool(CLOSED, write=True)]

    assert [(tool.name, tool.risk_level) for tool in tools] == [("mysql", 1), ("mysql_write", 2)]


@pytest.fixture
def database(mysql: Any) -> Iterator[Any]:
    """A database with the table `t`, and a connection of the test's own to look at it."""
    import pymysql

    connection = pymysql.connect(
        host=mysql.host, port=mysql.port, user=mysql.user, password=mysql.password, database="tests", autocommit=True
    )
    cursor = connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS t")
    cursor.execute("CREATE TABLE t (id int, name text)")
    cursor.execute("INSERT INTO t VALUES (1, 'one'), (2, NULL)")
    yield cursor
    connection.close()


def count_of(database: Any) -> int:
    database.execute("SELECT count(*) FROM t")
    (count,) = database.fetchone()
    return int(count)


async def test_rows_are_read_and_changed(mysql: Any, database: Any, use: Any) -> None:
    reading, writing = MySQLTool(mysql.dsn, tls=False), MySQLTool(mysql.dsn, tls=False, write=True)

    found = await use.data(reading, statement="SELECT id, name FROM t WHERE id >= %s ORDER BY id", parameters=[1])
    changed = await use.data(writing, statement="UPDATE t SET name = %s", parameters=["x"])
    returned = await use.data(writing, statement="DELETE FROM t RETURNING id")

    assert found == {"columns": ["id", "name"], "rows": [[1, "one"], [2, None]]}
    assert changed == {"changed_rows": 2}
    assert returned == {"columns": ["id"], "rows": [[1], [2]]}
    assert count_of(database) == 0


@pytest.mark.parametrize(
    "statement", ["WITH x AS (SELECT 1) DELETE FROM t", "SELECT 1; DELETE FROM t", "SELECT * FROM t FOR UPDATE; COMMIT"]
)
async def test_the_server_refuses_what_a_reading_tool_lets_through(
    statement: str, mysql: Any, database: Any, use: Any
) -> None:
    await use.error(MySQLTool(mysql.dsn, tls=False), statement=statement)

    assert count_of(database) == 2


async def test_a_transaction_of_a_reading_tool_cannot_write(
    mysql: Any, database: Any, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read-only transaction holds also where the look at the first word is left out."""
    monkeypatch.setattr("graphwright.tools.builtin.mysql.only_reads", lambda *_: None)

    for statement in ("DELETE FROM t", "INSERT INTO t VALUES (3, 'x')", "DROP TABLE t"):
        assert "READ ONLY" in await use.error(MySQLTool(mysql.dsn, tls=False), statement=statement)
    assert count_of(database) == 2


async def test_only_as_many_rows_are_read_as_are_shown(mysql: Any, database: Any, use: Any) -> None:
    many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
    tool = MySQLTool(mysql.dsn, tls=False, max_rows=3)

    found = await use.data(tool, statement=many + "SELECT a.i FROM n a, n b, n c")

    assert len(found["rows"]) == 3
    assert found["truncated"].startswith("only the first 3 rows")


async def test_a_server_without_encryption_or_with_a_strange_login_is_left(mysql: Any, use: Any) -> None:
    for tool in (MySQLTool(mysql.dsn), MySQLTool(mysql.dsn.replace("secret", "hunter2"), tls=False)):
        error = await use.error(tool, statement="SELECT 1")
        assert error == "the database cannot be reached (OperationalError); try later"
