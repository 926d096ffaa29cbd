"""All MCP servers of an agent: connected side by side, each caller in sessions of their own, bounded and cleaned up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextvars import Context
from pathlib import Path
from typing import Any, Self, TypeVar

from graphwright._internal.aio import settle
from graphwright._internal.optional import is_installed
from graphwright.caller import get_current_caller
from graphwright.exceptions import ConfigurationError, MCPConnectionRejectedError, MCPError, MissingExtraError
from graphwright.mcp.client.catalogue import Catalogue, read_catalogue
from graphwright.mcp.client.credentials import Credential, SessionKey, TokenSource, credential_for
from graphwright.mcp.client.elicitation import OnElicit, Sampling, ask_model, ask_person, guarded
from graphwright.mcp.client.exchange import Exchange, calling_loop, current_exchange
from graphwright.mcp.client.offering import offered_tools
from graphwright.mcp.client.progress import OnProgress, Report, following
from graphwright.mcp.client.servers import ServerSpec, StdioServerSpec, as_servers
from graphwright.mcp.client.session import Session
from graphwright.tools.base import Tool

__all__ = ["MCPPool"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class MCPPool:
    """The MCP servers of an agent. Use it as `async with MCPPool(servers) as pool`, or call `connect` and `close`."""

    def __init__(
        self,
        servers: Mapping[str, Any] | str | Path | None,
        *,
        resources: bool = False,
        prompts: bool = False,
        identity: TokenSource | None = None,
        on_elicit: OnElicit | None = None,
        on_progress: OnProgress | None = None,
        wants_progress: Callable[[], bool] | None = None,
        sampling: Sampling | None = None,
        max_sessions: int = 50,
    ) -> None:
        """Take the servers in; nothing is started or sent yet.

        `resources` and `prompts` add the tools for those. `identity` authenticates the agent to HTTP servers without
        a bearer token of their own. Without `on_elicit` and `sampling` servers are told that they cannot ask.
        `wants_progress` is asked before each call whether its progress is to be reported.
        `max_sessions` bounds the sessions that belong to callers; the least recently used idle one makes room.

        Raises:
            ConfigurationError: a spec does not fit; every field with a problem is listed.
        """
        self.servers: dict[str, ServerSpec] = as_servers(servers)
        if isinstance(max_sessions, bool) or max_sessions < 1:
            raise ConfigurationError(f"max_sessions is {max_sessions!r}; give a number above 0")
        # A package that only the releases since 2.0 bring along.
        if self.servers and not is_installed("mcp_types"):
            raise MissingExtraError("an MCP server", extra="mcp", package="mcp")
        self.catalogues: dict[str, Catalogue] = {}
        """What each server offered when it was last reached; kept while it is down."""
        self.problems: dict[str, MCPError] = {}
        """Why a server could not be asked for what it offers, the last time that was tried."""
        self._resources, self._prompts = resources, prompts
        self._identity = identity
        self._on_elicit, self._sampling = on_elicit, sampling
        self._on_progress, self._wants_progress = on_progress, wants_progress
        self._max_sessions = max_sessions
        self._sessions: dict[SessionKey, Session] = {}
        self._own: set[SessionKey] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._stale: set[str] = set(self.servers)
        self._tools: tuple[frozenset[str], list[Tool]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._freed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def connect(self, *, strict: bool = True) -> None:
        """Connect to all servers at once and read what they offer.

        With `strict=False` a server that cannot be reached is logged and left out until a `refresh` reaches it.

        Raises:
            MCPError: a server cannot be used; with several, one error tells of all.
        """
        await self._on_loop(lambda: self._read_all(list(self.servers)))
        if strict and self.problems:
            raise _together(list(self.problems.values()))
        for name, problem in self.problems.items():
            logger.warning("MCP server %r is left out for now: %s", name, problem)

    async def refresh(self, *, force: bool = False) -> bool:
        """Read again what servers offer where that may have changed, and return whether it has.

        It may have when the server said so, or when the connection on which it would have said so was lost. Of a
        server that cannot be reached, what was known is kept.
        """
        names = [name for name in self.servers if force or name in self._stale]
        if not names:
            return False
        before = dict(self.catalogues)
        await self._on_loop(lambda: self._read_all(names))
        return before != self.catalogues

    @property
    def stale(self) -> bool:
        """Whether `refresh` has something to do."""
        return bool(self._stale)

    def tools(self, *, taken: Collection[str] = ()) -> list[Tool]:
        """Return the tools of all servers, under names that no provider refuses and that are not `taken`.

        The list is a new object when something has changed, and the same one when not.
        """
        key = frozenset(taken)
        if self._tools is None or self._tools[0] != key:
            # In the order in which the servers were given, whichever was reached first.
            known = {name: self.catalogues[name] for name in self.servers if name in self.catalogues}
            made = offered_tools(self, known, taken=key, resources=self._resources, prompts=self._prompts)
            self._tools = (key, made)
        return self._tools[1]

    async def call_tool(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, *, repeatable: bool = False
    ) -> Any:
        """Call a tool by the name its server gives it, for the current caller; return the SDK's `CallToolResult`.

        A `repeatable` call is made again when the connection broke during it; any other one never is.

        Raises:
            MCPError: the server cannot be used, or went away during the call.
            ToolError: the server refuses the call.
        """
        given = dict(arguments or {})
        if self._on_progress is None or (self._wants_progress is not None and not self._wants_progress()):
            return await self._call(server, tool, given, repeatable, None)
        async with following(self._on_progress, server, tool) as report:
            return await self._call(server, tool, given, repeatable, report)

    async def _call(
        self, server: str, tool: str, arguments: dict[str, Any], repeatable: bool, report: Report | None
    ) -> Any:
        from graphwright.mcp.client._calls import ask_tool

        return await self._on_loop(
            lambda: self._request(
                server,
                lambda client: ask_tool(client, tool, arguments, self._asker(server), report),
                what=f"the call of {tool!r}",
                repeatable=repeatable,
            )
        )

    async def read_resource(self, server: str, uri: str) -> Any:
        """Read a resource for the current caller; return the SDK's `ReadResourceResult`."""
        from graphwright.mcp.client._calls import ask_resource

        return await self._on_loop(
            lambda: self._request(
                server,
                lambda client: ask_resource(client, uri, self._asker(server)),
                what=f"the reading of {uri!r}",
                repeatable=True,
            )
        )

    async def get_prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """Fetch a prompt for the current caller; return the SDK's `GetPromptResult`."""
        from graphwright.mcp.client._calls import ask_prompt

        given = dict(arguments or {})
        return await self._on_loop(
            lambda: self._request(
                server,
                lambda client: ask_prompt(client, name, given, self._asker(server)),
                what=f"the prompt {name!r}",
                repeatable=True,
            )
        )

    async def close(self) -> None:
        """End every session, and wait until no task and no process of theirs is left."""
        if self._loop is not None:
            await self._on_loop(self._close_all)

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop that the sessions live on, which is the first that was used."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and self._loop.is_running():
                here = calling_loop.set(loop)
                try:
                    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self._loop))
                finally:
                    calling_loop.reset(here)
            # A loop that has ended took its sessions along.
            self._loop, self._freed, self._timer = loop, asyncio.Event(), None
            self._sessions.clear()
            self._own.clear()
            self._closing.clear()
        return await make()

    async def _read_all(self, names: list[str]) -> None:
        await asyncio.gather(*(self._read(name) for name in names))

    async def _read(self, name: str) -> None:
        self._stale.discard(name)
        try:
            catalogue = await self._request(
                name,
                lambda client: read_catalogue(client, name, resources=self._resources, prompts=self._prompts),
                what="the question what it offers",
                repeatable=True,
                as_caller=False,
                timeout=self.servers[name].connect_timeout,
            )
        except Exception as error:
            self._stale.add(name)
            if not isinstance(error, MCPError):
                error = MCPError(f"MCP server {name!r} cannot say what it offers: {error}", server=name)
            self.problems[name] = error
            return
        self.problems.pop(name, None)
        if self.catalogues.get(name) != catalogue:
            self.catalogues[name] = catalogue
            self._tools = None

    async def _request(
        self,
        name: str,
        send: Callable[[Any], Awaitable[T]],
        *,
        what: str,
        repeatable: bool,
        as_caller: bool = True,
        timeout: float | None = None,
    ) -> T:
        """Send one request in the session that is for it, with a renewed credential where the first was rejected."""
        spec = self.servers.get(name)
        if spec is None:
            raise ConfigurationError(f"there is no MCP server {name!r}; there are {', '.join(self.servers) or 'none'}")

        async def attempt(session: Session) -> T:
            return await session.request(send, what=what, repeatable=repeatable, timeout=timeout)

        credential = await credential_for(name, spec, self._identity, as_caller=as_caller)
        try:
            return await self._in_session(name, spec, credential, attempt, as_caller=as_caller)
        except MCPConnectionRejectedError as error:
            if not credential.renewable:
                raise MCPConnectionRejectedError(f"{error}; it was sent {credential.source}", server=name) from error
        renewed = await credential_for(name, spec, self._identity, as_caller=as_caller, refresh=True)
        try:
            return await self._in_session(name, spec, renewed, attempt, as_caller=as_caller)
        except MCPConnectionRejectedError as error:
            text = f"{error}; it was sent {credential.source}, and then a renewed one"
            raise MCPConnectionRejectedError(text, server=name) from error

    async def _in_session(
        self,
        name: str,
        spec: ServerSpec,
        credential: Credential,
        use: Callable[[Session], Awaitable[T]],
        *,
        as_caller: bool,
    ) -> T:
        """Use the session for a credential and the current caller, which is not closed meanwhile."""
        caller = get_current_caller() if as_caller and spec.isolates_callers else None
        key = credential.key(name, caller.isolation_key if caller is not None else None)
        own = not as_caller or key in self._own
        session = self._sessions.pop(key, None) or await self._room_for(key, name, spec, credential, own=own)
        self._sessions[key] = session  # the least recently used one comes first
        session.users += 1
        if not as_caller:
            self._own.add(key)
        try:
            return await use(session)
        finally:
            session.users -= 1
            if session.users == 0:
                session.idle_since = asyncio.get_running_loop().time()
                if isinstance(spec, StdioServerSpec) and not spec.keep_alive:
                    session.drop()
                self._freed.set()
                self._arm(self._idle_end(key, session))

    async def _room_for(
        self, key: SessionKey, name: str, spec: ServerSpec, credential: Credential, *, own: bool
    ) -> Session:
        end = asyncio.get_running_loop().time() + spec.connect_timeout
        while not own and len(self._sessions) - len(self._own & self._sessions.keys()) >= self._max_sessions:
            idle = next((k for k, entry in self._sessions.items() if not entry.users and k not in self._own), None)
            if idle is not None:
                self._end(idle)
                break
            self._freed.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self._freed.wait()
            except TimeoutError:
                raise MCPError(
                    f"all {self._max_sessions} sessions are in use, and none became free for MCP server {name!r} "
                    f"within {spec.connect_timeout:g} s; raise max_sessions",
                    server=name,
                    retryable=True,
                ) from None
            if key in self._sessions:
                return self._sessions.pop(key)
        return Session(name, spec, credential, self._callbacks(name, spec, own=own), patient=name in self.catalogues)

    def _end(self, key: SessionKey) -> None:
        session = self._sessions.pop(key)
        self._own.discard(key)
        task = asyncio.get_running_loop().create_task(session.close(), name=f"mcp {key.server} closing")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _arm(self, end: float | None) -> None:
        """See to it that idle sessions are looked through at `end`, or earlier."""
        if end is None or self._loop is None or (self._timer is not None and self._timer.when() <= end):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(end, self._close_idle, context=Context())

    def _close_idle(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for key, session in list(self._sessions.items()):
            end = self._idle_end(key, session)
            if end is not None and end <= now:
                self._end(key)
            else:
                self._arm(end)

    def _idle_end(self, key: SessionKey, session: Session) -> float | None:
        spec = self.servers[key.server]
        # A process that is shared by all may hold a state that somebody counts on.
        if session.users or (isinstance(spec, StdioServerSpec) and key in self._own):
            return None
        return session.idle_since + spec.idle_timeout

    async def _close_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for key in list(self._sessions):
            self._end(key)
        await settle(*self._closing)

    def _callbacks(self, name: str, spec: ServerSpec, *, own: bool) -> Any:
        from graphwright.mcp.client._connection import Callbacks

        async def elicit(exchange: Exchange | None, params: Any) -> Any:
            return await guarded(exchange, ask_person(name, self._on_elicit, exchange, params))

        async def sample(exchange: Exchange | None, params: Any) -> Any:
            return await guarded(exchange, ask_model(name, self._sampling, exchange, params))

        hears = own and not (isinstance(spec, StdioServerSpec) and not spec.keep_alive)
        return Callbacks(
            elicit=elicit if self._on_elicit is not None else None,
            sample=sample if self._sampling is not None else None,
            changed=(lambda: self._stale.add(name)) if hears else None,
        )

    def _asker(self, name: str) -> Callable[[Any], Awaitable[Any]]:
        """Return what answers the questions that come as the result of a request, in the task that made it."""

        async def ask(request: Any) -> Any:
            exchange = current_exchange.get()
            if request.method == "sampling/createMessage":
                return await ask_model(name, self._sampling, exchange, request.params)
            return await ask_person(name, self._on_elicit, exchange, request.params)

        return ask


def _together(problems: list[MCPError]) -> MCPError:
    if len(problems) == 1:
        return problems[0]
    listed = "\n".join(f"  - {problem}" for problem in problems)
    return MCPError(
        f"{len(problems)} MCP servers cannot be used:\n{listed}", retryable=any(p.retryable for p in problems)
    )
