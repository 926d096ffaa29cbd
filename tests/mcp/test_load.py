"""Many at once, and many times: figures that hold, and nothing that is left behind."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from graphwright.caller import CallerContext, calling_as
from graphwright.exceptions import MCPError
from graphwright.mcp.client import MCPPool

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_task_left")]

Serve = Callable[..., AbstractAsyncContextManager[Any]]
Build = Callable[[], Any]
Plain = Callable[..., dict[str, Any]]


def children() -> set[int]:
    """Return the processes that this one has started and that still are there, ended ones included."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(path.parent.name))
    return found


async def test_200_rounds_of_killing_leave_no_process_no_task_and_no_open_file(plain: Plain) -> None:
    before, files = children(), len(os.listdir("/proc/self/fd"))
    async with MCPPool({"p": plain()}) as pool:
        tasks = len(asyncio.all_tasks())
        for _ in range(200):
            pid = int((await pool.call_tool("p", "count")).content[0].text.split()[1])
            waiting = asyncio.create_task(pool.call_tool("p", "wait"))
            await asyncio.sleep(0)
            os.kill(pid, 9)
            with pytest.raises(MCPError):
                await waiting
        await pool.call_tool("p", "count")
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > tasks:  # noqa: ASYNC110 (tasks that end say so to nobody)
                await asyncio.sleep(0.01)
        assert len(children() - before) == 1

    assert children() - before == set()
    assert len(os.listdir("/proc/self/fd")) == files


async def test_100_calls_at_once_are_answered_over_stdio_and_http(serve: Serve, workshop: Build, plain: Plain) -> None:
    async with serve(workshop().streamable_http_app()) as site, MCPPool({"p": plain(), "w": {"url": site.url}}) as pool:
        results = await asyncio.gather(
            *(pool.call_tool("p", "count") for _ in range(100)),
            *(pool.call_tool("w", "add", {"a": number, "b": 1}) for number in range(100)),
        )

    assert all(result.content[0].text.startswith("count") for result in results[:100])
    assert [result.structured_content["result"] for result in results[100:]] == list(range(1, 101))


async def test_1000_callers_share_a_pool_of_50_sessions_and_no_session(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    most = 0

    async def call(pool: MCPPool, user: int) -> str:
        nonlocal most
        with calling_as(CallerContext(user_id=str(user), bearer_token=f"t{user}")):
            came = (await pool.call_tool("w", "who")).structured_content
        most = max(most, len(pool._sessions))
        return str(came["authorization"])

    async with serve(app) as site, MCPPool({"w": {"url": site.url}}, max_sessions=50) as pool:
        came = await asyncio.gather(*(call(pool, user) for user in range(1000)))

    assert came == [f"Bearer t{user}" for user in range(1000)]
    assert most == 51


async def test_connecting_to_10_servers_takes_as_long_as_the_slowest_and_not_as_all_together(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app(), delay=0.2)
    async with serve(app) as site:
        begin = time.perf_counter()
        async with MCPPool({"one": {"url": site.url}}):
            one = time.perf_counter() - begin
        begin = time.perf_counter()
        async with MCPPool({str(number): {"url": site.url} for number in range(10)}):
            ten = time.perf_counter() - begin

    assert ten < 2.5 * one
