"""One client of one server, in a task of its own that enters and leaves everything the client is made of.

When a connection breaks, the SDK cancels the task that entered it. Here that is never the task of a caller: callers
send from their own tasks and read "connection closed".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import mcp_types as types
from mcp.client import ClientRequestContext, IncomingMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from graphwright._internal.aio import settle
from graphwright.mcp.client.exchange import Exchange, current_exchange
from graphwright.mcp.client.servers import HTTPServerSpec, ServerSpec, StdioServerSpec
from mcp import Client

__all__ = ["Callbacks", "Connection"]

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 10.0

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Callbacks:
    """What a server may ask of this side, and what it is told of."""

    elicit: Callable[[Exchange | None, Any], Awaitable[Any]] | None = None
    sample: Callable[[Exchange | None, Any], Awaitable[Any]] | None = None
    changed: Callable[[], None] | None = None
    """Called when the server says that one of its lists is another now; also when that can no longer be heard."""


class Connection:
    """A client from its first message to its last; it is never used again once it is closed."""

    def __init__(self, name: str, spec: ServerSpec, headers: Mapping[str, str], callbacks: Callbacks) -> None:
        self.name = name
        self.opening = Exchange()
        """How the connecting itself went."""
        self.in_flight: list[Exchange] = []
        """The requests that wait for an answer."""
        self.heard_at = 0.0
        """The loop's time when the server last said anything."""
        self.unanswered = 0
        """How many requests in a row got no answer in time, with nothing else heard."""
        self._spec = spec
        self._headers = headers
        self._callbacks = callbacks
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._errors: Any = None
        self.error: BaseException | None = None
        """Why the connection ended, when not because it was closed."""

    @property
    def client(self) -> Client:
        """The SDK's client."""
        assert self._client is not None
        return self._client

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._client is not None and not self._stop.is_set()

    @property
    def error_output(self) -> str:
        """The end of what the server's process wrote to its error output."""
        return self._errors.tail if self._errors is not None else ""

    @property
    def pid(self) -> int | None:
        """The process id of a server that runs as a child process."""
        return self._errors.pid if self._errors is not None else None

    async def open(self) -> None:
        """Connect, and agree on the protocol version; whatever goes wrong is raised as it came.

        When this fails or is cancelled, `close` is still to be called.
        """
        self._task = asyncio.create_task(self._live(), name=f"mcp {self.name}")
        async with asyncio.timeout(self._spec.connect_timeout):
            await asyncio.wait({self._task, self._ready}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise self.error or ConnectionError("the connection ended before it began")

    def stop(self) -> None:
        """Let the connection end; whoever waits for an answer is told that it is closed."""
        self._stop.set()

    async def close(self) -> None:
        """End the connection and wait until its task and its processes are gone."""
        self._stop.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.wait({self._task})
        if not self._task.done():
            self._task.cancel()
        await settle(self._task)

    async def _live(self) -> None:
        current_exchange.set(self.opening)
        listening: asyncio.Task[None] | None = None
        try:
            async with Client(cast("Any", self._transport()), **self._options()) as client:
                self._client = client
                if self._callbacks.changed is not None and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    listening = asyncio.create_task(self._listen(client), name=f"mcp {self.name} changes")
                self._ready.set_result(None)
                try:
                    await self._stop.wait()
                finally:
                    self._stop.set()
                    if listening is not None:
                        listening.cancel()
                        await settle(listening)
        except asyncio.CancelledError as error:
            # From the inside it means that the connection broke; from the outside, that it is being closed.
            self.error = ConnectionError("the connection was cancelled")
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise error
        except BaseException as error:
            self.error = _innermost(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._stop.set()
            if self._callbacks.changed is not None:
                self._callbacks.changed()

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "mode": self._spec.protocol,
            "client_info": types.Implementation(name="graphwright", version=_version()),
            "logging_callback": self._log,
            "log_level": "info",
            "message_handler": self._notice,
            "cache": None,
        }
        if self._callbacks.elicit is not None:
            options["elicitation_callback"] = self._answering(self._callbacks.elicit)
        if self._callbacks.sample is not None:
            options["sampling_callback"] = self._answering(self._callbacks.sample)
        return options

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        if isinstance(self._spec, StdioServerSpec):
            from graphwright.mcp.client._stdio import ErrorOutput, stdio_transport

            self._errors = ErrorOutput(self.name)
            entered: Any = stdio_transport(self._spec, self._errors)
        else:
            from graphwright.mcp.client._http import http_transport

            assert isinstance(self._spec, HTTPServerSpec)
            entered = http_transport(self._spec, self._headers, self._broken)
        async with entered as (incoming, outgoing):
            yield _Incoming(incoming, self), _Outgoing(outgoing)

    def _broken(self, error: Exception) -> None:
        self.error = self.error or error
        self._stop.set()

    def _answering(self, ask: Callable[[Exchange | None, Any], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return a callback that knows for which request of ours the server asks, as far as that can be known."""

        async def answer(_: ClientRequestContext, params: Any) -> Any:
            exchange = current_exchange.get()
            if exchange is not None and exchange is not self.opening:
                return await ask(exchange, params)
            # Over stdio nothing says for which request the server asks, so it is known only when there is one.
            exchange = self.in_flight[0] if len(self.in_flight) == 1 else None
            if exchange is None:
                return await ask(None, params)
            context = exchange.context.copy()
            task = asyncio.get_running_loop().create_task(_awaited(ask, exchange, params), context=context)
            try:
                return await task
            finally:
                if not task.done():
                    task.cancel()
                    await settle(task)

        return answer

    async def _listen(self, client: Client) -> None:
        """Hear of changed lists on a server of the newer protocol, which tells them only to those who ask."""
        capabilities = client.server_capabilities
        wanted: dict[str, Any] = {
            f"{kind}_list_changed": True
            for kind in ("tools", "prompts", "resources")
            if getattr(getattr(capabilities, kind, None), "list_changed", None)
        }
        if not wanted:
            return
        changed = self._callbacks.changed
        assert changed is not None
        try:
            async with client.listen(**wanted) as events:
                async for _ in events:
                    changed()
        except Exception as error:  # without it the lists are read again when the connection is a new one
            logger.debug("MCP server %r no longer tells of changes: %s", self.name, error)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        where = f"{self.name}.{params.logger}" if params.logger else self.name
        log = logging.getLogger(f"graphwright.mcp.server.{where}")
        log.log(_LEVELS.get(params.level, logging.INFO), "%s", params.data)

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            logger.warning("MCP server %r sent something that is no message: %.300s", self.name, message)
        elif self._callbacks.changed is not None and message.method.endswith("/list_changed"):
            self._callbacks.changed()


def _version() -> str:
    # Looked up when it runs: by name, an import of the package would be one of everything that it offers.
    return str(import_module("graphwright").__version__)


async def _awaited(ask: Callable[[Exchange | None, Any], Awaitable[Any]], exchange: Exchange, params: Any) -> Any:
    return await ask(exchange, params)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Incoming:
    """The messages of the server; their end is the end of the connection."""

    def __init__(self, stream: Any, connection: Connection) -> None:
        self._stream = stream
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    @property
    def last_context(self) -> Any:
        """The context of the task that the message came through, where the transport knows it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            message = await self._stream.receive()
        except BaseException:
            self._connection.stop()
            raise
        self._connection.heard_at = self._loop.time()
        return message

    async def aclose(self) -> None:
        """Read no more."""
        await self._stream.aclose()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await self._stream.__anext__()
        except BaseException:
            self._connection.stop()
            raise
        self._connection.heard_at = self._loop.time()
        return message

    async def __aenter__(self) -> _Incoming:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


class _Outgoing:
    """The messages to the server; what was handed over counts as sent."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def send(self, item: Any) -> None:
        """Hand a message over."""
        exchange = current_exchange.get()
        if exchange is None:
            await self._stream.send(item)
            return
        # A hand-over that is interrupted may still have happened.
        before, exchange.sent = exchange.sent, True
        try:
            await self._stream.send(item)
        except Exception:
            exchange.sent = before
            raise

    async def aclose(self) -> None:
        """Send no more."""
        await self._stream.aclose()

    async def __aenter__(self) -> _Outgoing:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)
