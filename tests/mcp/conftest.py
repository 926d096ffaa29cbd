"""Real servers for the tests: over HTTP in the test's own process and loop, over stdio as child processes."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="install it with: pip install 'graphwright[mcp]'")

SERVERS = Path(__file__).parent / "servers"


@dataclass
class Guard:
    """Stand in front of a server: refuse requests without an accepted token, and write down all of them."""

    app: Any
    accepted: set[str] | None = None
    refused_status: int = 401
    answer_status: int | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    delay: float = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        body, messages = b"", []
        while True:
            message = await receive()
            messages.append(message)
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        called = json.loads(body) if body else {}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        entry = {
            "http": scope["method"],
            "method": called.get("method") if isinstance(called, dict) else None,
            "tool": (called.get("params") or {}).get("name") if isinstance(called, dict) else None,
            "token": token,
            "session": headers.get("mcp-session-id"),
            "headers": headers,
        }
        self.requests.append(entry)
        if self.delay:
            await asyncio.sleep(self.delay)
        status = self.answer_status
        if status is None and self.accepted is not None and token not in self.accepted:
            status = self.refused_status
        if status is not None:
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return

        async def again() -> Any:
            return messages.pop(0) if messages else await receive()

        await self.app(scope, again, send)

    def calls(self) -> list[dict[str, Any]]:
        return [entry for entry in self.requests if entry["method"] == "tools/call"]


@dataclass
class Site:
    """A server that listens on a port of the loopback."""

    port: int
    stop: Callable[[], Any]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def serving(app: Any, *, port: int = 0) -> AsyncIterator[Site]:
    """Serve an ASGI app; `stop` cuts every connection at once."""
    import uvicorn

    # Without the protocol asyncio leaves small packets waiting for each other.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
    # Not by `serve`, which looks only ten times a second whether it is to end.
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    stopped = False

    async def stop() -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            for accepting in server.servers:
                accepting.close()
            listening.close()
            requests = list(server.server_state.tasks)
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
            await server.lifespan.shutdown()

    try:
        yield Site(listening.getsockname()[1], stop)
    finally:
        await stop()


@pytest.fixture
def serve() -> Callable[..., AbstractAsyncContextManager[Site]]:
    return serving


@pytest.fixture
def guard() -> type[Guard]:
    return Guard


@pytest.fixture
def workshop() -> Callable[[], Any]:
    """A function that makes the server with a tool for everything."""
    sys.path.insert(0, str(SERVERS))
    try:
        import workshop as module
    finally:
        sys.path.remove(str(SERVERS))
    return module.build


@pytest.fixture
def plain(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """A spec of the server that is written without the SDK, and does what it is told by its arguments."""

    def spec(*faults: str, **options: Any) -> dict[str, Any]:
        ledger = {"LEDGER": str(tmp_path / "ledger")}
        args = ["-S", "-E", str(SERVERS / "plain.py"), *faults]
        return {"command": sys.executable, "args": args, "env": {**ledger, **options.pop("env", {})}, **options}

    return spec


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[[], list[str]]:
    """A function that returns what the servers wrote down."""

    def lines() -> list[str]:
        path = tmp_path / "ledger"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    return lines


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fail when a task is left behind."""
    before = asyncio.all_tasks()
    yield
    left = [str(task) for task in asyncio.all_tasks() - before - {asyncio.current_task()}]
    # One that the server's library for event streams keeps for as long as the loop lives.
    assert [task for task in left if "_shutdown_watcher" not in task] == []
