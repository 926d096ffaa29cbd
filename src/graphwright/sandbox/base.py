"""The ports of sandboxes: what is asked of one, what a session in one can do, and how a command ended."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args, runtime_checkable

from graphwright.exceptions import ConfigurationError

__all__ = [
    "BackendName",
    "CommandResult",
    "Enforcement",
    "NetworkMode",
    "SandboxBackend",
    "SandboxConfig",
    "SandboxFactory",
    "SandboxSession",
]

BackendName: TypeAlias = Literal["auto", "bwrap", "docker", "gvisor", "monty"]
NetworkMode: TypeAlias = Literal["none", "restricted", "full"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_USER = re.compile(r"\d+:\d+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class SandboxConfig:
    """What a sandbox is made of and what it may use. A back end that cannot hold to it refuses to start."""

    backend: BackendName = "auto"
    """`"auto"` takes the first that works here of bwrap, docker and monty."""

    image: str = "python:3.11-slim"
    """The image of docker and gvisor; it has to be there already, since none is pulled."""

    cpu: float = 2
    """Cores; 0 is no limit."""

    memory: int | str = "4G"
    """Bytes, or a number with K, M, G or T."""

    disk: int | str = "1G"
    """Bytes that the workspace may hold, in the form of `memory`."""

    pids: int = 256
    """Processes and threads at one time."""

    network: NetworkMode = "none"
    """`"restricted"` is refused by every back end: none of them can enforce it."""

    timeout: float = 300
    """Seconds that a command may take when it is not given less."""

    workdir: str = "/workspace"
    """The folder that commands start in, the only one that lasts from one command to the next."""

    user: str = "65534:65534"
    """User and group that commands run as, as numbers; never 0."""

    read_only_rootfs: bool = True

    max_output: int = 1_000_000
    """Bytes of each of stdout and stderr that are kept; a command that writes more goes on, and the rest is dropped."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of commands. Nothing else of the environment of the agent reaches them."""

    mounts: Mapping[str, str] = field(default_factory=dict)
    """Folders of the machine by the path that they have inside: `{"/data": "/srv/data"}`. Always read only."""

    def __post_init__(self) -> None:
        _one_of("backend", self.backend, get_args(BackendName))
        _one_of("network", self.network, get_args(NetworkMode))
        _number("cpu", self.cpu, least=0)
        _number("timeout", self.timeout, least=0, above=True)
        for name in ("pids", "max_output"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"sandbox: {name} is {value!r}; give a whole number above 0")
        for name in ("memory", "disk"):
            _bytes_of(name, getattr(self, name))
        if not isinstance(self.image, str) or not self.image or self.image.startswith("-"):
            raise ConfigurationError(f"sandbox: image is {self.image!r}; give the name of an image")
        if not isinstance(self.user, str) or not _USER.fullmatch(self.user) or 0 in self.ids:
            raise ConfigurationError(f'sandbox: user is {self.user!r}; give two numbers above 0, such as "65534:65534"')
        if self.read_only_rootfs is not True:
            raise ConfigurationError(
                f"sandbox: read_only_rootfs is {self.read_only_rootfs!r}, and there is no writable one; leave it out"
            )
        self._check_places()

    def _check_places(self) -> None:
        _inside("workdir", self.workdir)
        for name, value in self.env.items():
            if (
                not isinstance(name, str)
                or not _VARIABLE.fullmatch(name)
                or not isinstance(value, str)
                or "\0" in value
            ):
                raise ConfigurationError(f"sandbox: env holds {name!r}, which is no variable with a text; correct it")
        for inside, outside in self.mounts.items():
            _inside("mounts", inside)
            if not isinstance(outside, str) or not outside.startswith("/") or "\0" in outside:
                raise ConfigurationError(f"sandbox: mounts holds {outside!r}; give the whole path of a folder")
            if PurePosixPath(inside).is_relative_to(self.workdir) or PurePosixPath(self.workdir).is_relative_to(inside):
                raise ConfigurationError(f"sandbox: the mount {inside!r} overlaps workdir; give it a place of its own")

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes."""
        return _bytes_of("memory", self.memory)

    @property
    def disk_bytes(self) -> int:
        """The limit of the workspace in bytes."""
        return _bytes_of("disk", self.disk)

    @property
    def ids(self) -> tuple[int, int]:
        """User and group as numbers."""
        user, _, group = self.user.partition(":")
        return int(user), int(group)

    @classmethod
    def of(cls, value: Any) -> SandboxConfig | None:
        """Return what `sandbox=` asks for: True, a dict of fields or a config; `None` where it asks for none.

        Raises:
            ConfigurationError: it is something else, or a key is unknown.
        """
        if value is None or value is False:
            return None
        if value is True:
            return cls()
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ConfigurationError(
                f"sandbox is {value!r}; give True, a dict of SandboxConfig fields or a SandboxConfig"
            )
        known = [entry.name for entry in fields(cls)]
        for key in value:
            if key not in known:
                raise ConfigurationError(f"sandbox has no option {key!r}; there are {', '.join(known)}")
        return cls(**value)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(f"sandbox: {name} is {value!r}; choose one of {', '.join(known)}")


def _number(name: str, value: Any, *, least: float, above: bool = False) -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < least or (above and value == least):
        raise ConfigurationError(
            f"sandbox: {name} is {value!r}; give a number {'above' if above else 'from'} {least:g}"
        )


def _bytes_of(name: str, value: int | str) -> int:
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        size = int(float(match[1]) * _UNITS[match[2].lower()])
    else:
        size = value if isinstance(value, int) and not isinstance(value, bool) else 0
    if size < 1 << 20:
        raise ConfigurationError(f'sandbox: {name} is {value!r}; give a size of at least 1M, such as "512M"')
    return size


def _inside(name: str, path: Any) -> None:
    plain = isinstance(path, str) and path.startswith("/") and str(PurePosixPath(path)) == path and ".." not in path
    if not plain or path == "/" or any(mark in path for mark in ":,\n\0"):
        raise ConfigurationError(f"sandbox: {name} holds {path!r}; give a plain path below '/', such as '/workspace'")
    if path.split("/")[1] in _TAKEN:
        raise ConfigurationError(f"sandbox: {name} holds {path!r}, a place of the system; choose another folder")


_TAKEN = frozenset({"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "tmp", "usr"})


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """How a command ended."""

    exit_code: int | None
    """`None` where the command was stopped."""

    stdout: str = ""
    stderr: str = ""

    stopped: str = ""
    """Why the sandbox stopped it, such as "memory" or "disk"; empty where it ended by itself."""

    truncated: bool = False
    """Whether it wrote more than `max_output`."""

    duration: float = 0.0
    """Seconds it took."""


@dataclass(frozen=True, kw_only=True)
class Enforcement:
    """What a back end can do on this machine."""

    backend: str
    problem: str = ""
    """Why it cannot be used, and what helps; empty where it can."""

    limits: Mapping[str, str] = field(default_factory=dict)
    """How it holds each limit, in words for people."""

    @property
    def works(self) -> bool:
        """Whether it can be used."""
        return not self.problem


class SandboxSession(ABC):
    """One sandbox with its workspace. Commands run one after the other; nothing outlives `cleanup`."""

    config: SandboxConfig

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether it still takes commands; one that was cancelled within a command does not."""

    @abstractmethod
    async def run(
        self,
        command: list[str] | str,
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """Run a command (a text goes to a shell) and return how it ended.

        What it started and left behind is killed. A cancelled command takes the whole sandbox with it.

        Raises:
            TimeoutError: it took longer than `timeout` seconds, or `SandboxConfig.timeout`, and was stopped.
            SandboxUnavailableError: the sandbox is gone.
        """

    async def execute(
        self, command: list[str] | str, timeout: float | None = None, workdir: str | None = None
    ) -> CommandResult:
        """Run a command as `run` does, but return a result with `stopped="timeout"` where it took too long."""
        try:
            return await self.run(command, timeout=timeout, workdir=workdir)
        except TimeoutError as error:
            return CommandResult(exit_code=None, stderr=str(error), stopped="timeout")

    @abstractmethod
    async def read_file(self, path: str) -> str:
        """Return the text of a file, as the sandbox sees it; a relative path starts in the workspace.

        Raises:
            ToolError: there is no such file, or it is larger than `max_output`.
        """

    @abstractmethod
    async def write_file(self, path: str, content: str | bytes) -> None:
        """Write a file in the sandbox, with the folders it needs.

        Raises:
            ToolError: it cannot be written there.
        """

    @abstractmethod
    async def list_files(self, path: str = ".") -> list[str]:
        """Return the sorted names in a folder; those of folders end with a slash.

        Raises:
            ToolError: there is no such folder.
        """

    @abstractmethod
    async def install_package(self, name: str) -> CommandResult:
        """Install a Python package into the workspace.

        Raises:
            ToolError: the sandbox has no network, or the name is none of a package.
        """

    @abstractmethod
    async def cleanup(self) -> None:
        """Stop every process and remove the workspace. Safe to call again."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cleanup()


@runtime_checkable
class SandboxBackend(Protocol):
    """A way to make sandboxes."""

    name: str

    async def check(self, config: SandboxConfig) -> Enforcement:
        """Return whether this machine can hold to `config`, after trying it."""
        ...

    async def open(self, config: SandboxConfig) -> SandboxSession:
        """Start a session.

        Raises:
            SandboxUnavailableError: it cannot start.
        """
        ...


SandboxFactory: TypeAlias = Callable[[], Awaitable[SandboxSession]]
"""Makes a new session."""
