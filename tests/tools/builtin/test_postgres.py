from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.tools.builtin import PostgreSQLTool


@pytest.fixture
async def database(postgres: Any) -> AsyncIterator[Any]:
    """A database with the table `t`, and a connection of the test's own to look at it."""
    asyncpg = pytest.importorskip("asyncpg", reason="install asyncpg")
    connection = await asyncpg.connect(postgres.dsn)
    await connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int, name text)")
    await connection.execute("INSERT INTO t VALUES (1, 'one'), (2, NULL)")
    yield connection
    await connection.close()


async def test_rows_are_read_with_parameters(postgres: Any, database: Any, use: Any) -> None:
    tool = PostgreSQLTool(postgres.dsn)

    found = await use.data(tool, statement="SELECT id, name FROM t WHERE id >= $1 ORDER BY id", parameters=[1])

    assert found == {"columns": ["id", "name"], "rows": [[1, "one"], [2, None]]}
    assert (tool.name, tool.risk_level, PostgreSQLTool(postgres.dsn, write=True).risk_level) == ("postgresql", 1, 2)


CHANGES = [
    "INSERT INTO t VALUES (3, 'x')",
    "DELETE FROM t",
    "DROP TABLE t",
    "COMMIT",
    "BEGIN READ WRITE",
    "SET TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "/* SELECT */ DELETE FROM t",
    "WITH gone AS (DELETE FROM t RETURNING id) SELECT * FROM gone",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "EXPLAIN ANALYZE DELETE FROM t",
    "SELECT * INTO u FROM t",
    "COPY t TO PROGRAM 'cat'",
    "DO $$ BEGIN DELETE FROM t; END $$",
    "SELECT 1; DELETE FROM t",
    "SELECT 1; COMMIT; DELETE FROM t",
]


@pytest.mark.parametrize("statement", CHANGES)
async def test_a_reading_tool_changes_nothing(statement: str, postgres: Any, database: Any, use: Any) -> None:
    await use.error(PostgreSQLTool(postgres.dsn), statement=statement)

    assert await database.fetchval("SELECT count(*) FROM t") == 2
    assert await database.fetchval("SELECT to_regclass('u')") is None


async def test_a_writing_tool_changes_rows(postgres: Any, database: Any, use: Any) -> None:
    tool = PostgreSQLTool(postgres.dsn, write=True)

    assert await use.data(tool, statement="UPDATE t SET name = $1", parameters=["x"]) == {"status": "UPDATE 2"}
    returned = await use.data(tool, statement="INSERT INTO t VALUES (3, 'y') RETURNING id")

    assert returned == {"columns": ["id"], "rows": [[3]]}
    assert await database.fetchval("SELECT count(*) FROM t") == 3


async def test_all_of_a_change_happens_when_only_some_of_its_rows_are_shown(
    postgres: Any, database: Any, use: Any
) -> None:
    await database.execute("INSERT INTO t SELECT n, 'n' FROM generate_series(3, 500) n")

    shown = await use.data(PostgreSQLTool(postgres.dsn, write=True, max_rows=1), statement="DELETE FROM t RETURNING id")

    assert len(shown["rows"]) == 1
    assert await database.fetchval("SELECT count(*) FROM t") == 0


async def test_two_statements_in_one_call_are_refused(postgres: Any, database: Any, use: Any) -> None:
    error = await use.error(PostgreSQLTool(postgres.dsn, write=True), statement="SELECT 1; DELETE FROM t")

    assert "multiple commands" in error
    assert await database.fetchval("SELECT count(*) FROM t") == 2


async def test_rows_are_capped_without_reading_them_all(postgres: Any, use: Any) -> None:
    tool = PostgreSQLTool(postgres.dsn, max_rows=3, statement_timeout=5)

    found = await use.data(tool, statement="SELECT generate_series(1, 1000000000)")

    assert found["rows"] == [[1], [2], [3]]
    assert found["truncated"].startswith("only the first 3 rows")


async def test_a_statement_that_takes_too_long_is_stopped_on_the_server(postgres: Any, database: Any, use: Any) -> None:
    error = await use.error(PostgreSQLTool(postgres.dsn, statement_timeout=0.2), statement="SELECT pg_sleep(60)")

    assert error == "the statement took longer than 0.2 s and was stopped; make it smaller"
    assert await _sleepers(database) == 0


async def test_a_cancelled_call_leaves_no_connection(postgres: Any, database: Any) -> None:
    task = asyncio.create_task(PostgreSQLTool(postgres.dsn).call(statement="SELECT pg_sleep(60)"))
    await _wait_for_sleepers(database, 1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await _wait_for_sleepers(database, 0)


async def _wait_for_sleepers(database: Any, count: int) -> None:
    async with asyncio.timeout(10):
        while await _sleepers(database) != count:
            pass  # each look is a round trip to the server


async def _sleepers(database: Any) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> "
    count: int = await database.fetchval(query + "pg_backend_pid()")
    return count


async def test_what_is_wrong_is_told_without_the_login(postgres: Any, use: Any) -> None:
    wrong = PostgreSQLTool(postgres.dsn.replace("secret", "hunter2"))
    closed = PostgreSQLTool("postgresql://me:hunter2@127.0.0.1:1/x")

    for tool in (wrong, closed):
        error = await use.error(tool, statement="SELECT 1")
        assert error.startswith("the database cannot be reached (")
        assert "hunter2" not in error + repr(tool)
    assert 'relation "nope" does not exist' in await use.error(
        PostgreSQLTool(postgres.dsn), statement="SELECT * FROM nope"
    )


async def test_the_login_can_be_asked_for_at_each_call(postgres: Any, use: Any) -> None:
    asked = 0

    async def dsn() -> str:
        nonlocal asked
        asked += 1
        return str(postgres.dsn)

    tool = PostgreSQLTool(dsn)
    for _ in range(2):
        await use(tool, statement="SELECT 1")

    assert asked == 2
    assert "dsn" not in tool.spec.parameters["properties"]


@pytest.mark.parametrize(
    ("kind", "module", "extra", "dsn"),
    [
        ("PostgreSQLTool", "postgres", "postgres", "postgresql://x/y"),
        ("MySQLTool", "mysql", "mysql", "mysql://x/y"),
        ("RedisTool", "redis", "redis", "redis://x"),
    ],
)
def test_without_its_package_or_a_fitting_address_a_database_tool_is_refused(
    kind: str, module: str, extra: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = importlib.import_module(f"graphwright.tools.builtin.{module}")
    with pytest.raises(ConfigurationError, match="is no address of the form") as refused:
        getattr(place, kind)("http://user:hunter2@x/")
    monkeypatch.setattr(place, "is_installed", lambda _: False)
    with pytest.raises(MissingExtraError, match=rf"graphwright\[{extra}\]"):
        getattr(place, kind)(dsn)

    assert "hunter2" not in str(refused.value)
