"""Sandboxes of the back ends that this machine has."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from graphwright.sandbox import BubblewrapBackend, MontyBackend, SandboxConfig, SandboxSession

Open = Callable[..., Awaitable[SandboxSession]]


@pytest.fixture
def until() -> Callable[..., Awaitable[None]]:
    """Look at the machine until something is so: another process tells no event of ours."""

    async def wait(true: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    return wait


def ancestors_of(pid: int) -> set[int]:
    """Return the parent of a process, its parent and so on."""
    found: set[int] = set()
    while pid > 1:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            break
        pid = int(status.split("PPid:")[1].split()[0])
        found.add(pid)
    return found


@pytest.fixture
def processes_with() -> Callable[..., list[int]]:
    """Find processes by a word of their command line, those that this one has started or all of the machine."""

    def find(mark: str, *, ours: bool = False, first: bool = False) -> list[int]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                there = words[0] == mark.encode() if first else mark.encode() in words
                if there and (not ours or os.getpid() in ancestors_of(int(folder.name))):
                    found.append(int(folder.name))
        return found

    return find


@pytest.fixture
def needs_bwrap() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("install bubblewrap (Debian: apt-get install bubblewrap)")


@pytest.fixture
def needs_monty() -> None:
    if find_spec("pydantic_monty") is None:
        pytest.skip("install pydantic-monty")


@pytest.fixture
async def bwrap(needs_bwrap: None) -> AsyncIterator[Open]:
    """Open sessions of bubblewrap, which end with the test."""
    opened = []

    async def open_one(**options: Any) -> SandboxSession:
        session = await BubblewrapBackend().open(SandboxConfig(**options))
        opened.append(session)
        return session

    yield open_one
    for session in opened:
        await session.cleanup()


@pytest.fixture
async def monty(needs_monty: None) -> AsyncIterator[Open]:
    """Open sessions of monty, which end with the test."""
    opened = []

    async def open_one(**options: Any) -> SandboxSession:
        session = await MontyBackend().open(SandboxConfig(**options))
        opened.append(session)
        return session

    yield open_one
    for session in opened:
        await session.cleanup()
