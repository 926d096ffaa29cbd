"""Whose sandbox it is: one for each conversation of each caller, ended when it is not used, chosen from what works."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest

from graphwright.caller import CallerContext, calling_as
from graphwright.exceptions import ConfigurationError, SandboxUnavailableError, ToolError
from graphwright.sandbox import CommandResult, Enforcement, SandboxConfig, SandboxManager, SandboxSession, sandbox_tools


class FakeSession(SandboxSession):
    """A session that keeps its files in a dict and can be told to wait."""

    def __init__(self, config: SandboxConfig, number: int) -> None:
        self.config = config
        self.number = number
        self.open = True
        self.go_on = asyncio.Event()
        self.go_on.set()

    @property
    def is_open(self) -> bool:
        return self.open

    async def run(self, command: Any, **options: Any) -> CommandResult:
        await self.go_on.wait()
        return CommandResult(exit_code=0, stdout=str(self.number))

    async def read_file(self, path: str) -> str:
        return path

    async def write_file(self, path: str, content: str | bytes) -> None: ...

    async def list_files(self, path: str = ".") -> list[str]:
        return [path]

    async def install_package(self, name: str) -> CommandResult:
        return CommandResult(exit_code=0)

    async def cleanup(self) -> None:
        self.open = False


class FakeBackend:
    """Makes fake sessions and keeps them."""

    name = "fake"

    def __init__(self, problem: str = "") -> None:
        self.sessions: list[FakeSession] = []
        self.problem = problem

    async def check(self, config: SandboxConfig) -> Enforcement:
        return Enforcement(backend=self.name, problem=self.problem)

    async def open(self, config: SandboxConfig) -> SandboxSession:
        self.sessions.append(FakeSession(config, len(self.sessions)))
        return self.sessions[-1]


async def said_to(manager: SandboxManager, user: str | None, session: str | None) -> str:
    caller = CallerContext(user_id=user) if user else None
    with calling_as(caller, session_id=session):
        return (await manager.run("x")).stdout


async def test_each_conversation_of_each_caller_has_its_own() -> None:
    async with SandboxManager(backend=FakeBackend()) as manager:
        numbers = [
            await said_to(manager, user, session)
            for user, session in [("u", "1"), ("v", "1"), ("u", "2"), ("u", "1"), (None, "1"), ("v", "1")]
        ]

    assert numbers == ["0", "1", "2", "0", "3", "1"]


async def test_everything_ends_with_the_manager() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend) as manager:
        own = await manager.open()
        await said_to(manager, "u", "1")
        assert [session.is_open for session in backend.sessions] == [True, True]

    assert own is backend.sessions[0]
    assert [session.is_open for session in backend.sessions] == [False, False]
    with pytest.raises(SandboxUnavailableError, match="are closed"):
        await manager.run("x")


async def test_the_one_that_was_not_used_for_longest_makes_room() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend, max_sessions=2) as manager:
        for session in ("1", "2", "1", "3"):
            await said_to(manager, "u", session)

        assert [session.is_open for session in backend.sessions] == [True, False, True]
        assert await said_to(manager, "u", "2") == "3"


async def test_one_that_is_in_use_is_not_ended_and_another_is_refused() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend, max_sessions=1) as manager:
        await said_to(manager, "u", "1")
        backend.sessions[0].go_on.clear()
        at_work = asyncio.create_task(said_to(manager, "u", "1"))
        await asyncio.sleep(0)

        with pytest.raises(ToolError, match="all 1 sandboxes are in use"):
            await said_to(manager, "u", "2")

        backend.sessions[0].go_on.set()
        assert await at_work == "0"
        assert await said_to(manager, "u", "2") == "1"


async def test_one_that_is_idle_for_too_long_ends() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend, idle_seconds=0) as manager:
        await said_to(manager, "u", "1")
        await said_to(manager, "u", "2")

        assert [session.is_open for session in backend.sessions] == [False, True]


async def test_one_that_is_gone_is_made_anew() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend) as manager:
        await said_to(manager, "u", "1")
        backend.sessions[0].open = False

        assert await said_to(manager, "u", "1") == "1"


async def test_calls_at_once_share_one_start() -> None:
    backend = FakeBackend()
    async with SandboxManager(backend=backend) as manager:
        numbers = await asyncio.gather(*(said_to(manager, "u", "1") for _ in range(10)))

    assert numbers == ["0"] * 10


async def test_what_cannot_start_is_refused_with_its_reason() -> None:
    manager = SandboxManager(backend=FakeBackend("no such thing"))

    with pytest.raises(SandboxUnavailableError, match="fake: no such thing"):
        await manager.start()
    assert manager.backend == ""


async def test_a_back_end_that_was_named_is_never_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, needs_monty: None
) -> None:
    named = SandboxManager({"backend": "docker"})
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailableError) as caught:
        await named.start()

    assert "docker: neither docker nor podman is installed" in str(caught.value)
    assert "monty" not in str(caught.value)


async def test_the_best_that_works_is_taken_and_the_reasons_of_all_are_told(
    needs_bwrap: None, needs_monty: None
) -> None:
    assert (await SandboxManager().start()).backend == "bwrap"
    assert (await SandboxManager({"cpu": 1, "backend": "monty"}).start()).backend == "monty"
    with pytest.raises(SandboxUnavailableError, match=r"bwrap: network=.*; docker: .*; monty: network="):
        await SandboxManager({"network": "restricted"}).start()


@pytest.mark.parametrize("options", [{"config": False}, {"config": None}, {"max_sessions": 0}])
async def test_a_manager_of_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        SandboxManager(**options)


async def test_the_tools_are_those_that_the_sandbox_can_serve(needs_bwrap: None, needs_monty: None) -> None:
    async def names(**options: Any) -> list[str]:
        manager = SandboxManager(options)
        await manager.start()
        return [tool.__name__ for tool in sandbox_tools(manager)]

    files = ["sandbox_read_file", "sandbox_write_file", "sandbox_list_files"]
    assert await names(backend="bwrap") == ["sandbox_exec", "sandbox_python", *files]
    assert await names(backend="monty") == ["sandbox_python", *files]
    assert (await names(backend="bwrap", network="full"))[-1] == "sandbox_install_package"


async def test_event_loops_that_come_and_go_are_served(needs_bwrap: None) -> None:
    program = """
import asyncio
from graphwright.caller import calling_as
from graphwright.sandbox import SandboxManager

manager = SandboxManager({"backend": "bwrap"})

async def main():
    with calling_as(None, session_id="1"):
        print((await manager.run("echo hi")).stdout, end="")

for _ in range(3):
    asyncio.run(main())
asyncio.run(manager.cleanup())
"""
    # In a process of its own: asyncio warns of a loop that is left with its processes at work.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out, _ = await process.communicate()

    assert (process.returncode, out) == (0, b"hi\nhi\nhi\n")


async def test_a_sandbox_with_a_network_reaches_the_machine(bwrap: Any) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    box = await bwrap(network="full")

    result = await box.run(
        ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port})); print(1)"]
    )

    server.close()
    await server.wait_closed()
    assert result.stdout == "1\n"
