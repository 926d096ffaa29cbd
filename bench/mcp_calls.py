"""What a call of an MCP tool costs beside the bare SDK client, and how many callers and servers go together.

Run it as `python bench/mcp_calls.py`, with `src` in the path; it starts its own servers on the loopback.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from mcp import Client, StdioServerParameters

ROUNDS = 25
CALLS = 20


def build() -> MCPServer:
    server = MCPServer("bench")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server


@asynccontextmanager
async def served(*, delay: float = 0.0) -> AsyncIterator[str]:
    """Serve over HTTP, each request `delay` seconds late."""
    app = build().streamable_http_app()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        if delay and scope["type"] == "http":
            await asyncio.sleep(delay)
        await app(scope, receive, send)

    # Without the protocol asyncio leaves small packets waiting for each other.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(late, log_level="critical", ws="none"))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:  # noqa: ASYNC110 (it says so by no other means)
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        await task


async def side_by_side(
    ours: Callable[[], Awaitable[Any]], bare: Callable[[], Awaitable[Any]]
) -> tuple[float, float, float]:
    """Return the median milliseconds of both, taken in turns, and their ratio."""
    times: dict[Any, list[float]] = {ours: [], bare: []}
    for call in (ours, bare):
        await call()
    for _ in range(ROUNDS):
        for call, taken in times.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                await call()
            taken.append((time.perf_counter() - begin) / CALLS * 1000)
    mine, theirs = (statistics.median(taken) for taken in times.values())
    return mine, theirs, mine / theirs


async def main() -> None:
    from graphwright.caller import CallerContext, calling_as
    from graphwright.mcp.client import MCPPool, StdioServerSpec

    build()  # it sets up logging, which would be timed, too
    logging.disable(logging.CRITICAL)
    arguments = {"a": 1, "b": 2}
    print(f"{'':44}{'ours':>10}{'SDK':>10}{'ratio':>8}")
    command = {"command": sys.executable, "args": [__file__, "serve"]}
    stdio = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with MCPPool({"s": StdioServerSpec(**command)}) as pool, Client(stdio) as client:
        await client.list_tools()
        found = await side_by_side(
            lambda: pool.call_tool("s", "add", arguments), lambda: client.call_tool("add", arguments)
        )
        print(f"{'a call over stdio':44}{found[0]:8.2f}ms{found[1]:8.2f}ms{found[2]:8.2f}")
    async with served() as url:
        for mode in ("auto", "legacy"):
            async with MCPPool({"s": {"url": url, "protocol": mode}}) as pool, Client(url, mode=mode) as client:
                await client.list_tools()
                found = await side_by_side(
                    lambda pool=pool: pool.call_tool("s", "add", arguments),
                    lambda client=client: client.call_tool("add", arguments),
                )
                print(f"{f'a call over HTTP ({mode})':44}{found[0]:8.2f}ms{found[1]:8.2f}ms{found[2]:8.2f}")
        async with MCPPool({"s": {"url": url}}) as pool, Client(url) as client:
            taken = []
            for call in (lambda: pool.call_tool("s", "add", arguments), lambda: client.call_tool("add", arguments)):
                begin = time.perf_counter()
                await asyncio.gather(*(call() for _ in range(100)))
                taken.append((time.perf_counter() - begin) * 1000)
            print(f"{'100 calls at once over HTTP':44}{taken[0]:8.0f}ms{taken[1]:8.0f}ms{taken[0] / taken[1]:8.2f}")
        async with MCPPool({"s": {"url": url}}, max_sessions=50) as pool:

            async def call(user: int) -> None:
                with calling_as(CallerContext(user_id=str(user), bearer_token=str(user))):
                    await pool.call_tool("s", "add", arguments)

            begin = time.perf_counter()
            await asyncio.gather(*(call(user) for user in range(1000)))
            print(f"{'1,000 callers, a call each, 50 sessions':44}{time.perf_counter() - begin:8.2f}s")
    async with served(delay=0.2) as url:
        for count in (1, 10):
            begin = time.perf_counter()
            async with MCPPool({str(number): {"url": url} for number in range(count)}):
                print(f"{f'connecting to {count} slow servers':44}{time.perf_counter() - begin:8.2f}s")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        build().run("stdio")
    else:
        asyncio.run(main())
