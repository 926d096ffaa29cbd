"""Sandboxes made of Linux namespaces, by bubblewrap: no image, no service, a start of some 40 ms."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from itertools import count
from pathlib import Path

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import SandboxUnavailableError
from graphwright.sandbox import _seccomp
from graphwright.sandbox._children import start
from graphwright.sandbox._supervised import SupervisedSession, supervisor_command
from graphwright.sandbox.base import Enforcement, SandboxConfig

__all__ = ["BubblewrapBackend", "isolation_arguments"]

_SYSTEM = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates")
_starts = count()
_TMP_BYTES = 64 << 20

_LIMITS = {
    "files": "own mount namespace: /usr read only, the workspace and /tmp in memory, nothing else of the machine",
    "network": "own network namespace without a way out",
    "processes": "own pid, user, ipc and uts namespaces; no capability; no further user namespace",
    "system calls": "a filter of libseccomp",
    "memory": "rlimit for each process; their sum is looked at 20 times a second, and all are killed above it",
    "cpu": "whole cores, by affinity, which the filter keeps from being changed",
    "pids": "rlimit of the user namespace",
    "disk": "size of the file system in memory",
    "time, output": "the first process of the sandbox",
}


class BubblewrapBackend:
    """Make sandboxes with `bwrap`."""

    name = "bwrap"

    def __init__(self, *, binary: str | None = None) -> None:
        self._binary = binary

    async def check(self, config: SandboxConfig) -> Enforcement:
        """Try a sandbox as `config` has it."""
        problem = self._problem(config)
        if not problem:
            try:
                async with await self.open(config):
                    pass
            except SandboxUnavailableError as error:
                problem = str(error)
        return Enforcement(backend=self.name, problem=problem, limits=_LIMITS)

    def _problem(self, config: SandboxConfig) -> str:
        if sys.platform != "linux":
            return f"bwrap needs Linux, and this is {sys.platform}"
        if self._program() is None:
            return "bwrap is not installed; install bubblewrap (Debian: apt-get install bubblewrap)"
        if config.network == "restricted":
            return 'network="restricted" cannot be enforced by bwrap; use "none" or "full"'
        if config.cpu and config.cpu != int(config.cpu):
            return f"cpu={config.cpu!r} cannot be enforced by bwrap, which gives whole cores; use {int(config.cpu) + 1}"
        for outside in config.mounts.values():
            if not os.path.exists(outside):
                return f"the mount {outside!r} does not exist; create it or leave it out"
        if _python() is None:
            return "there is no Python below /usr and none that a sandbox may read; install python3 of the system"
        if 0 < config.cpu < len(os.sched_getaffinity(0)) and shutil.which("taskset") is None:
            return f"cpu={config.cpu!r} needs taskset; install util-linux, or give at least the cores there are"
        return _seccomp.filter_problem()

    def _program(self) -> str | None:
        return self._binary or shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin")

    async def open(self, config: SandboxConfig) -> SupervisedSession:
        """Start a session."""
        problem = await run_in_thread(self._problem, config)
        program, python = self._program(), _python()
        if problem or program is None or python is None:
            raise SandboxUnavailableError(problem)
        descriptor = _seccomp.open_filter()
        try:
            child = await start(
                [
                    *_on_cores(config),
                    program,
                    *_arguments(config, python, descriptor),
                    "--",
                    *supervisor_command(config, python, own_limits=True),
                ],
                pass_fds=(descriptor,),
                limit=config.max_output * 3 + (1 << 16),
                ids=config.ids,
            )
        except OSError as error:
            raise SandboxUnavailableError(f"bwrap cannot be started: {error}") from error
        finally:
            os.close(descriptor)
        session = SupervisedSession(
            config, child, end=child.end, path=f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin"
        )
        await session.ready()
        return session


def _cores(config: SandboxConfig) -> list[int]:
    """Return the cores of the next sandbox; none where it may use all of them."""
    allowed = sorted(os.sched_getaffinity(0))
    wanted = int(config.cpu)
    if not wanted or wanted >= len(allowed):
        return []
    first = next(_starts) * wanted % len(allowed)
    return (allowed * 2)[first : first + wanted]


def _on_cores(config: SandboxConfig) -> list[str]:
    # Set from the outside, since the filter keeps everything inside from changing it.
    cores = _cores(config)
    return [shutil.which("taskset") or "taskset", "-c", ",".join(map(str, cores))] if cores else []


def isolation_arguments() -> list[str]:
    """Return the options of bwrap that every sandbox has."""
    arguments = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    arguments += ["--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox", "--as-pid-1"]
    return arguments


def _arguments(config: SandboxConfig, python: str, seccomp: int) -> list[str]:
    user, group = config.ids
    arguments = [*isolation_arguments(), "--uid", str(user), "--gid", str(group), "--seccomp", str(seccomp)]
    arguments += ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        place = f"/{name}"
        if os.path.islink(place):
            arguments += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            arguments += ["--ro-bind", place, place]
    arguments += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    arguments += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    if config.network == "full":
        arguments += ["--share-net"]
        for place in _NETWORK_FILES:
            arguments += ["--ro-bind-try", place, place]
    prefix = str(Path(python).parent.parent)
    if not Path(python).is_relative_to("/usr"):
        arguments += ["--ro-bind", prefix, prefix]
    for inside, outside in config.mounts.items():
        arguments += ["--ro-bind", outside, inside]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    arguments += ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]
    arguments += ["--perms", "0700", "--size", str(config.disk_bytes), "--tmpfs", config.workdir]
    return [*arguments, "--remount-ro", "/", "--chdir", config.workdir]


def _python() -> str | None:
    for place in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(place):
            return place
    own = f"{sys.base_prefix}/bin/python3"
    with contextlib.suppress(OSError):
        if os.path.exists(own) and (os.getuid() != 0 or _open_to_all(Path(own))):
            return own
    return None


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)
