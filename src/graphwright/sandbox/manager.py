"""Keep the sandboxes of an agent: which back end makes them, whose each one is, and when it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from graphwright.caller import get_current_caller, get_current_session_id, isolation_key_of
from graphwright.exceptions import ConfigurationError, SandboxUnavailableError, ToolError
from graphwright.run_scope import current_run
from graphwright.sandbox.base import CommandResult, Enforcement, SandboxBackend, SandboxConfig, SandboxSession
from graphwright.sandbox.bubblewrap import BubblewrapBackend
from graphwright.sandbox.docker import DockerBackend
from graphwright.sandbox.monty import MontyBackend

__all__ = ["SandboxManager", "backends"]


def backends() -> list[SandboxBackend]:
    """Return the back ends there are, in the order in which `backend="auto"` tries them; gvisor is never chosen."""
    return [BubblewrapBackend(), DockerBackend(), MontyBackend(), DockerBackend(name="gvisor")]


@dataclass(eq=False)
class _Held:
    """The sandbox of one conversation."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: SandboxSession | None = None
    users: int = 0
    used_at: float = 0.0


class SandboxManager:
    """Give each conversation of each caller a sandbox of its own, and end those that are not used.

    Commands that are run through the manager go to the sandbox of the conversation that the current run belongs to; a
    run outside of a conversation has one for itself.
    """

    def __init__(
        self,
        config: Any = True,
        *,
        backend: SandboxBackend | None = None,
        max_sessions: int = 32,
        idle_seconds: float = 900.0,
    ) -> None:
        checked = SandboxConfig.of(config)
        if checked is None:
            raise ConfigurationError(
                f"the config of a SandboxManager is {config!r}; give True, a dict or a SandboxConfig"
            )
        if isinstance(max_sessions, bool) or not isinstance(max_sessions, int) or max_sessions < 1:
            raise ConfigurationError(f"max_sessions is {max_sessions!r}; give a whole number above 0")
        self.config = checked
        self._backend = backend
        self._max_sessions = max_sessions
        self._idle_seconds = idle_seconds
        self._ready: Enforcement | None = None
        self._starting = asyncio.Lock()
        self._held: dict[tuple[int, str, str], _Held] = {}
        self._others: set[SandboxSession] = set()
        self._closed = False

    @property
    def backend(self) -> str:
        """The name of the back end; empty until `start`."""
        return "" if self._ready is None else self._ready.backend

    async def start(self) -> Enforcement:
        """Find a back end that holds to the config here, and return what it enforces.

        Raises:
            SandboxUnavailableError: there is none; the message says what each one lacks.
        """
        async with self._starting:
            if self._ready is None:
                self._ready = await self._find()
        return self._ready

    async def _find(self) -> Enforcement:
        wanted = self.config.backend
        candidates: Sequence[SandboxBackend]
        if self._backend is not None:
            candidates = [self._backend]
        elif wanted == "auto":
            candidates = backends()[:-1]
        else:
            candidates = [each for each in backends() if each.name == wanted]
        problems = []
        for candidate in candidates:
            found = await candidate.check(self.config)
            if found.works:
                self._backend = candidate
                return found
            problems.append(f"{candidate.name}: {found.problem}")
        raise SandboxUnavailableError("no sandbox can be started here; " + "; ".join(problems))

    async def open(self) -> SandboxSession:
        """Start a session that belongs to whoever asked; it ends with the manager at the latest.

        Raises:
            SandboxUnavailableError: it cannot start, or the manager is closed.
        """
        if not self._accepting():
            raise SandboxUnavailableError("the sandboxes are closed; make another SandboxManager")
        await self.start()
        assert self._backend is not None
        session = await self._backend.open(self.config)
        self._others = {each for each in self._others if each.is_open} | {session}
        if not self._accepting():
            await session.cleanup()
            raise SandboxUnavailableError("the sandboxes were closed meanwhile")
        return session

    def _accepting(self) -> bool:
        return not self._closed

    @asynccontextmanager
    async def session(self) -> AsyncIterator[SandboxSession]:
        """Give the sandbox of the current conversation; it is not ended while it is in use.

        Raises:
            SandboxUnavailableError: it cannot start.
            ToolError: too many others are in use.
        """
        held = await self._take(_whose())
        try:
            async with held.lock:
                if held.session is None or not held.session.is_open:
                    if held.session is not None:
                        await held.session.cleanup()
                    held.session = await self.open()
                session = held.session
            yield session
        finally:
            held.users -= 1
            held.used_at = time.monotonic()

    async def run(
        self, command: list[str] | str, *, stdin: str | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Run a command in the sandbox of the current conversation."""
        async with self.session() as session:
            return await session.run(command, stdin=stdin, timeout=timeout)

    async def cleanup(self) -> None:
        """End every sandbox. Safe to call again; nothing starts afterwards."""
        self._closed = True
        sessions, self._others = self._others, set()
        self._held.clear()
        await asyncio.gather(*(session.cleanup() for session in sessions))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cleanup()

    async def _take(self, key: tuple[int, str, str]) -> _Held:
        held = self._held.pop(key, None)
        if held is None:
            held = _Held()
        held.users += 1
        # Put back at the end, so that the first ones are those that were not used for longest.
        self._held[key] = held
        try:
            await self._make_room()
        except BaseException:
            held.users -= 1
            raise
        return held

    async def _make_room(self) -> None:
        now = time.monotonic()
        free = [key for key, held in self._held.items() if held.users == 0]
        surplus = len(self._held) - self._max_sessions
        if surplus > len(free):
            busy = [key for key, held in self._held.items() if held.session is None and held.users == 1]
            if busy:
                del self._held[busy[-1]]
            raise ToolError(f"all {self._max_sessions} sandboxes are in use; try again later")
        ending = []
        for place, key in enumerate(free):
            if place < surplus or now - self._held[key].used_at > self._idle_seconds:
                held = self._held.pop(key)
                if held.session is not None:
                    ending.append(held.session)
        for session in ending:
            self._others.discard(session)
            await session.cleanup()


def _whose() -> tuple[int, str, str]:
    """Return event loop, caller and conversation of the current run; outside of a conversation, the run itself."""
    # The pipes of a sandbox belong to the loop that opened them.
    loop = id(asyncio.get_running_loop())
    caller = isolation_key_of(get_current_caller())
    conversation = get_current_session_id()
    if conversation is not None:
        return loop, str(caller), f"session {conversation}"
    run = current_run()
    return loop, str(caller), "" if run is None else f"run {run.run_id}"
