"""Keep one session with one server usable: connect when needed, notice when it breaks, and connect again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

from graphwright._internal.aio import settle
from graphwright.exceptions import GraphwrightError, MCPConnectionRejectedError, MCPError
from graphwright.mcp.client.credentials import Credential
from graphwright.mcp.client.exchange import Exchange, current_exchange
from graphwright.mcp.client.servers import ServerSpec, StdioServerSpec

if TYPE_CHECKING:
    from graphwright.mcp.client._connection import Callbacks, Connection
    from graphwright.mcp.client._failures import Failure

__all__ = ["Session"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 3
_FIRST_WAIT = 0.1
_PATIENCE_SECONDS = 4.0
_LONGEST_PAUSE = 30.0


class Session:
    """What all requests with one key share. Connections come and go beneath it."""

    def __init__(
        self, name: str, spec: ServerSpec, credential: Credential, callbacks: Callbacks, *, patient: bool = False
    ) -> None:
        self.name = name
        self.users = 0
        """Requests that hold the session now."""
        self.idle_since = 0.0
        """The loop's time when the last of them ended."""
        self.connections = 0
        """How many connections were opened so far."""
        self._spec = spec
        self._credential = credential
        self._callbacks = callbacks
        # Who was there a moment ago is waited for a little; who never was is reported at once.
        self._patient = patient
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._retired: set[Connection] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._down_until = 0.0
        self._down: MCPError | None = None
        self._closed = False

    @property
    def connection(self) -> Connection | None:
        """The connection that is open now."""
        found = self._connection
        return found if found is not None and found.alive else None

    async def connect(self) -> Connection:
        """Return the open connection, opening one where there is none; all who wait share one attempt.

        Raises:
            MCPError: it cannot be had, now or since a moment ago.
        """
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._closed:
            raise MCPError(f"the session with MCP server {self.name!r} is closed", server=self.name)
        if self._opening is None:
            self._raise_if_down()
            # In a context of its own: the connection outlives the run that happens to need it first.
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._open(), name=f"mcp {self.name} opening", context=Context())
            self._opening.add_done_callback(self._opened, context=Context())
        opening = self._opening
        await asyncio.wait({opening})
        if opening.cancelled():
            raise MCPError(f"the session with MCP server {self.name!r} is closed", server=self.name)
        return opening.result()

    async def request(
        self,
        send: Callable[[Any], Awaitable[T]],
        *,
        what: str,
        repeatable: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Send one request by `send(client)` and return its answer, within `timeout` or `call_timeout` seconds.

        It is sent again on a new connection only when the server cannot have carried it out, or when it is
        `repeatable`. Cancelling it tells the server.

        Raises:
            MCPError: the server cannot be reached, went away, or gave no answer in time.
            ToolError: the server refused the request, and says why.
        """
        lost = 0
        for attempt in range(1, _ATTEMPTS + 1):
            connection = await self.connect()
            exchange = Exchange(seconds=timeout or self._spec.call_timeout)
            outcome = await self._attempt(connection, exchange, send)
            if not isinstance(outcome, _Failed):
                return outcome
            from graphwright.mcp.client._failures import failure_of

            failure = failure_of(outcome.error, what, connection, exchange)
            lost += not failure.done and exchange.sent
            if self._connection is connection and (failure.broken or self._is_stuck(connection, exchange, outcome)):
                self.drop()
            again = failure.may_repeat and (repeatable or not failure.done) and lost < 2
            if not again or attempt == _ATTEMPTS:
                raise failure.error from outcome.error
            logger.info("MCP server %r: %s; it is sent again", self.name, failure.error)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """End the connection, and wait until nothing of it is left."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await settle(self._opening)
        self.drop()
        for connection in list(self._retired):
            self._end(connection)
        await settle(*self._closing)

    def drop(self) -> None:
        """Let go of the connection; the next request opens another. Who still waits for an answer may get one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._retired.add(connection)
            self._end_unless_waited_for(connection)

    async def _attempt(
        self, connection: Connection, exchange: Exchange, send: Callable[[Any], Awaitable[T]]
    ) -> T | _Failed:
        """Return the answer, or `_Failed`; what is not the connection's doing is raised."""
        token = current_exchange.set(exchange)
        connection.in_flight.append(exchange)
        task = asyncio.current_task()
        cancelling = task.cancelling() if task is not None else 0
        try:
            async with asyncio.timeout(exchange.seconds) as exchange.clock:
                answer = await send(connection.client)
            if exchange.signal is not None:
                raise exchange.signal
            connection.unanswered = 0
            return answer
        except asyncio.CancelledError as error:
            if task is None or task.cancelling() > cancelling:
                raise
            return _Failed(error)
        except (GraphwrightError, GeneratorExit):
            raise
        except Exception as error:
            if exchange.signal is not None:
                raise exchange.signal from None
            return _Failed(error)
        finally:
            exchange.clock = None
            connection.in_flight.remove(exchange)
            current_exchange.reset(token)
            self._end_unless_waited_for(connection)

    def _is_stuck(self, connection: Connection, exchange: Exchange, outcome: _Failed) -> bool:
        """Whether a server over stdio let two requests in a row time out and said nothing at all meanwhile.

        One may just be slow work, which a new start would throw away.
        """
        if not isinstance(outcome.error, TimeoutError) or not isinstance(self._spec, StdioServerSpec):
            return False
        heard = connection.heard_at > asyncio.get_running_loop().time() - exchange.seconds
        connection.unanswered = 0 if heard else connection.unanswered + 1
        return connection.unanswered > 1

    def _end_unless_waited_for(self, connection: Connection) -> None:
        if connection in self._retired and not (connection.in_flight and connection.alive):
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        self._retired.discard(connection)
        connection.stop()
        task = asyncio.create_task(connection.close(), name=f"mcp {self.name} closing")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if opening.cancelled():
            return
        error = opening.exception()
        if error is None:
            self._failures, self._down, self._patient = 0, None, True
            self._connection = opening.result()
        elif isinstance(error, MCPError) and not isinstance(error, MCPConnectionRejectedError):
            self._failures += 1
            pause = min(_LONGEST_PAUSE, 0.5 * 2.0**self._failures)
            self._down, self._down_until = error, asyncio.get_running_loop().time() + pause

    def _raise_if_down(self) -> None:
        left = self._down_until - asyncio.get_running_loop().time()
        if self._down is not None and left > 0:
            text = f"{self._down}; it is tried again in {left:.0f} s"
            raise MCPError(text, server=self.name, retryable=self._down.retryable)

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        self.drop()
        end, wait = loop.time() + _PATIENCE_SECONDS, _FIRST_WAIT
        while True:
            connection, failure = await self._open_once()
            if failure is None:
                return connection
            last = isinstance(self._spec, StdioServerSpec) and wait > _FIRST_WAIT
            if not failure.may_repeat or not self._patient or last or loop.time() + wait > end:
                raise failure.error from connection.error
            await asyncio.sleep(wait)
            wait *= 2

    async def _open_once(self) -> tuple[Connection, Failure | None]:
        from graphwright.mcp.client._connection import Connection
        from graphwright.mcp.client._failures import opening_failure

        connection = Connection(self.name, self._spec, self._credential.headers, self._callbacks)
        opened = False
        try:
            self.connections += 1
            await connection.open()
            opened = True
            return connection, None
        except Exception as error:
            return connection, opening_failure(error, connection, self._spec.connect_timeout)
        finally:
            if not opened:
                self._end(connection)


class _Failed:
    """An attempt that failed, as a value."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error
