"""A provider on this machine: it replays recorded streams and whole answers, one a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_STREAMS = Path(__file__).parent.parent / "data" / "streams"


@dataclass
class Answer:
    """One HTTP answer."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    """The connection stays open after the body until this is set."""


class Provider:
    """Answers each request with the next answer, the last one again and again, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.url = ""
        self._choose: Callable[[dict[str, Any]], Any] | None = None
        self.hung_up = asyncio.Event()
        """Set when a client closes a connection that was held open."""

    def stream(self, name: str, *, hold: asyncio.Event | None = None) -> Provider:
        """Answer with a transcript."""
        body = (_STREAMS / f"{name}.sse").read_bytes()
        self.answers.append(Answer(body, content_type="text/event-stream", hold=hold))
        return self

    def answer(self, value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Provider:
        """Answer with JSON."""
        self.answers.append(Answer(json.dumps(value).encode(), status=status, headers=headers or {}))
        return self

    def route(self, choose: Callable[[dict[str, Any]], Any]) -> None:
        """Answer by what is asked: `choose` returns the name of a transcript, or JSON."""
        self._choose = choose

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lengths = [
                line.partition(":")[2] for line in head.lower().split("\r\n") if line.startswith("content-length")
            ]
            length = int(lengths[0]) if lengths else 0
            self.requests.append(json.loads(await reader.readexactly(length) or b"{}"))
            if self._choose is not None:
                chosen = self._choose(self.requests[-1])
                self.stream(chosen) if isinstance(chosen, str) else self.answer(chosen)
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
            extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
            start = f"HTTP/1.1 {answer.status} X\r\ncontent-type: {answer.content_type}\r\n"
            writer.write(f"{start}{extra}connection: close\r\n\r\n".encode())
            writer.write(answer.body)
            await writer.drain()
            if answer.hold is not None:
                waiting = asyncio.ensure_future(answer.hold.wait())
                gone = asyncio.ensure_future(reader.read())
                await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    self.hung_up.set()
                waiting.cancel()
                gone.cancel()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A provider on a free port of this machine."""
    made = Provider()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()


@pytest.fixture
def sleeps() -> tuple[list[float], Callable[[float], Any]]:
    """A sleep that takes no time, and the waits it was asked for."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    return waits, sleep
