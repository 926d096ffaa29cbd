"""A way to a server that a test can cut, so that the server goes away and comes back on the same port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes to a server, until it is cut."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._answers_left: int | None = None
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def lose_answer_after(self, answers: int) -> None:
        """Let this many pieces of the server's answers pass; then lose one, and break its connection."""
        self._answers_left = answers

    async def open(self) -> None:
        """Take connections, on the port that was used before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse connections, and break those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(far)
            passing = [self._pass(reader, far, answers=False), self._pass(far_reader, writer, answers=True)]
            await asyncio.wait([asyncio.ensure_future(one) for one in passing])
        finally:
            for one in (writer, far):
                if one is not None:
                    one.transport.abort()
                    self._writers.discard(one)
            self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if answers and self._answers_left is not None:
                    self._answers_left -= 1
                    if self._answers_left < 0:
                        self._answers_left = None
                        break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[Proxy]:
    """Put a proxy before the server on `port`."""
    proxy = Proxy(port)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.cut()
