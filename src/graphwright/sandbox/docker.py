"""Sandboxes made of containers, by the command line of Docker or Podman; gVisor is Docker with another runtime."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
from typing import Any, Literal

from graphwright.exceptions import SandboxUnavailableError
from graphwright.sandbox._children import at_exit, start
from graphwright.sandbox._supervised import SupervisedSession, supervisor_command
from graphwright.sandbox.base import Enforcement, SandboxConfig

__all__ = ["DockerBackend"]

_CLIENT_VARIABLES: tuple[str, ...] = (
    "PATH",
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
)
_CLIENT_VARIABLES += ("DOCKER_TLS_VERIFY", "CONTAINER_HOST", "XDG_RUNTIME_DIR")
_ASK_SECONDS = 20.0
_TMP_BYTES = 64 << 20

_LIMITS = {
    "files": "read-only root file system of the image; the workspace and /tmp in memory",
    "network": "none, or the bridge of the engine",
    "processes": "namespaces of the engine, no capability, no new privileges, an unprivileged user",
    "system calls": "the seccomp profile of the engine",
    "memory": "cgroup, without swap",
    "cpu": "cgroup",
    "pids": "cgroup",
    "disk": "size of the file system in memory, which counts as memory too",
    "time, output": "the first process of the container",
}
_NEEDED = {"MemoryLimit": "memory", "SwapLimit": "memory without swap", "PidsLimit": "pids", "CpuCfsQuota": "cpu"}


class DockerBackend:
    """Make sandboxes with `docker`, or another command line of the same options."""

    def __init__(self, *, name: Literal["docker", "gvisor"] = "docker", binary: str | None = None) -> None:
        self.name: str = name
        self._runtime = "runsc" if name == "gvisor" else None
        self._binary = binary

    async def check(self, config: SandboxConfig) -> Enforcement:
        """Ask the engine what it can enforce, and try a sandbox as `config` has it."""
        problem = await self._problem(config)
        if not problem:
            try:
                async with await self._started(config):
                    pass
            except SandboxUnavailableError as error:
                problem = str(error)
        return Enforcement(backend=self.name, problem=problem, limits=_LIMITS)

    async def open(self, config: SandboxConfig) -> SupervisedSession:
        """Start a session in a container of its own."""
        if problem := await self._problem(config):
            raise SandboxUnavailableError(problem)
        return await self._started(config)

    async def _problem(self, config: SandboxConfig) -> str:
        program = self._program()
        if program is None:
            return "neither docker nor podman is installed; install one (Debian: apt-get install docker.io)"
        if config.network == "restricted":
            return f'network="restricted" cannot be enforced by {self.name}; use "none" or "full"'
        found = await _ask(program, "info", "--format", "{{json .}}")
        if isinstance(found, str):
            return f"the engine does not answer ({found}); start it, and let this user use it"
        if found.get("ServerErrors"):
            return f"the engine does not answer ({found['ServerErrors'][0]}); start it, and let this user use it"
        lacking = [words for key, words in _NEEDED.items() if found.get(key) is not True]
        if lacking:
            return f"the engine cannot limit {', '.join(lacking)}; give it cgroups, or use another back end"
        if not any("seccomp" in str(option) for option in found.get("SecurityOptions") or ()):
            return "the engine has no seccomp profile; start it with one"
        if self._runtime and self._runtime not in (found.get("Runtimes") or {}):
            return f"the engine has no runtime {self._runtime!r}; install gVisor and register it"
        image = await _ask(program, "image", "inspect", config.image)
        if isinstance(image, str):
            return f"the image {config.image!r} is not there, and none is pulled; run: docker pull {config.image}"
        return ""

    def _program(self) -> str | None:
        return self._binary or shutil.which("docker") or shutil.which("podman")

    async def _started(self, config: SandboxConfig) -> SupervisedSession:
        program = self._program()
        if program is None:
            raise SandboxUnavailableError("neither docker nor podman is installed")
        name = f"graphwright-{secrets.token_hex(8)}"
        removal = [program, "rm", "--force", "--volumes", name]
        forget = at_exit(lambda: _remove_at_once(removal))
        try:
            child = await start(
                [program, *_arguments(config, name, self._runtime)],
                limit=config.max_output * 3 + (1 << 16),
                env=_client_environment(),
            )
        except BaseException as error:
            await _removed(removal)
            forget()
            if isinstance(error, OSError):
                raise SandboxUnavailableError(f"{program} cannot be started: {error}") from error
            raise
        ended = False

        async def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                await _removed(removal)
                await child.end()
                forget()

        session = SupervisedSession(config, child, end=end)
        await session.ready()
        return session


def _arguments(config: SandboxConfig, name: str, runtime: str | None) -> list[str]:
    user, group = config.ids
    own = f"rw,nosuid,nodev,exec,uid={user},gid={group}"
    memory = str(config.memory_bytes)
    arguments = ["run", "--interactive", "--rm", "--pull", "never", "--name", name, "--label", "graphwright.sandbox=1"]
    arguments += ["--network", "none" if config.network == "none" else "bridge", "--hostname", "sandbox"]
    arguments += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--user", config.user]
    arguments += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(config.pids)]
    if config.cpu:
        arguments += ["--cpus", f"{config.cpu:g}"]
    arguments += ["--tmpfs", f"{config.workdir}:{own},size={config.disk_bytes},mode=0700"]
    arguments += ["--tmpfs", f"/tmp:{own},size={_TMP_BYTES},mode=1777", "--shm-size", str(_TMP_BYTES)]
    arguments += ["--log-driver", "none", "--workdir", config.workdir]
    for inside, outside in config.mounts.items():
        arguments += ["--mount", f"type=bind,source={outside},target={inside},readonly"]
    if runtime:
        arguments += ["--runtime", runtime]
    python, *rest = supervisor_command(config, "python3", own_limits=False)
    return [*arguments, "--entrypoint", python, config.image, *rest]


def _client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}


async def _ask(program: str, *words: str) -> dict[str, Any] | str:
    """Return what the engine answers, or why it does not."""
    try:
        child = await start([program, *words], limit=1 << 20, env=_client_environment())
    except OSError as error:
        return str(error)
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            out, err = await child.process.communicate()
    except TimeoutError:
        return f"no answer within {_ASK_SECONDS:g} s"
    finally:
        await child.end()
    if child.process.returncode != 0:
        return err.decode(errors="replace").strip()[-300:] or f"exit code {child.process.returncode}"
    try:
        answer = json.loads(out)
    except ValueError:
        return "the answer cannot be read"
    found = answer[0] if isinstance(answer, list) and answer else answer
    return found if isinstance(found, dict) else "the answer cannot be read"


async def _removed(removal: list[str]) -> None:
    child = await start(removal, limit=1 << 20, env=_client_environment())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ASK_SECONDS):
            await child.process.communicate()
    await child.end()


def _remove_at_once(removal: list[str]) -> None:
    subprocess.run(removal, timeout=_ASK_SECONDS, capture_output=True, check=False, env=_client_environment())
