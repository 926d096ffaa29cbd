"""A session whose first process is the supervisor: the same inside of bubblewrap and of a container."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from graphwright.exceptions import ConfigurationError, SandboxUnavailableError, ToolError
from graphwright.sandbox._children import Child
from graphwright.sandbox.base import CommandResult, SandboxConfig, SandboxSession

__all__ = ["SupervisedSession", "supervisor_command"]

_PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9,._-]+\])?(?:[=<>!~]=?[A-Za-z0-9.*+!]+)?"
)
_PATH = "/usr/local/bin:/usr/bin:/bin"
_GRACE_SECONDS = 10.0
_START_SECONDS = 30.0
_PACKAGES = ".packages"


def supervisor_command(config: SandboxConfig, python: str, *, own_limits: bool) -> list[str]:
    """Return the command that a sandbox starts with.

    `own_limits` is true where no cgroup holds memory and processes.
    """
    limits = {
        "pids": config.pids,
        "memory": config.memory_bytes,
        "output": config.max_output,
        "own": own_limits,
    }
    source = Path(__file__).with_name("_supervisor.py").read_text(encoding="utf-8")
    return [python, "-I", "-S", "-B", "-c", source, json.dumps(limits)]


class SupervisedSession(SandboxSession):
    """Send commands to the supervisor of one sandbox, one at a time."""

    def __init__(
        self,
        config: SandboxConfig,
        child: Child,
        *,
        end: Callable[[], Awaitable[None]],
        path: str = _PATH,
    ) -> None:
        self.config = config
        self._child = child
        self._process = child.process
        self._end = end
        self._turn = asyncio.Lock()
        self._gone = ""
        self._env = {
            "HOME": config.workdir,
            "LANG": "C.UTF-8",
            "PATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{config.workdir}/{_PACKAGES}",
            "TMPDIR": "/tmp",
            **config.env,
        }

    @property
    def is_open(self) -> bool:
        """Whether it still takes commands."""
        return not self._gone and self._child.reachable

    async def ready(self) -> None:
        """Wait until the sandbox takes commands.

        Raises:
            SandboxUnavailableError: it did not start.
        """
        try:
            async with asyncio.timeout(_START_SECONDS):
                line = await self._line()
        except (TimeoutError, SandboxUnavailableError):
            await self.cleanup()
            raise SandboxUnavailableError(f"the sandbox did not start: {await self._complaint()}") from None
        except BaseException:
            await self.cleanup()
            raise
        if line.get("ready") != 1:
            await self.cleanup()
            raise SandboxUnavailableError(
                f"the sandbox has process {line.get('ready')!r} as its first, not 1, so it has no processes of its own"
            )

    async def run(
        self,
        command: list[str] | str,
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """Run a command after those that came before it."""
        seconds = self.config.timeout if timeout is None else min(timeout, self.config.timeout)
        if not seconds > 0:
            raise ConfigurationError(f"timeout is {timeout!r}; give seconds above 0")
        request = {
            "argv": _words(command),
            "cwd": _placed(workdir or ".", self.config),
            "env": self._env,
            "stdin": base64.b64encode(stdin.encode() if isinstance(stdin, str) else stdin or b"").decode(),
            "timeout": seconds,
        }
        async with self._turn:
            result = await self._ask(request, seconds)
        if result.stopped == "timeout":
            raise TimeoutError(f"the command took longer than {seconds:g} s and was stopped")
        return result

    async def _ask(self, request: dict[str, Any], seconds: float) -> CommandResult:
        if self._gone:
            raise SandboxUnavailableError(f"the sandbox {self._gone}; open another session")
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds + _GRACE_SECONDS):
                self._send(request)
                answer = await self._line()
        except BaseException as error:
            # The supervisor is in the middle of a command that nobody waits for: the namespace ends with it.
            await self._stop("does not answer" if isinstance(error, TimeoutError) else "was stopped within a command")
            raise
        return CommandResult(
            exit_code=answer["exit"],
            stdout=_text(answer["out"]),
            stderr=_text(answer["err"]),
            stopped=answer["stopped"],
            truncated=answer["cut"],
            duration=time.monotonic() - started,
        )

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise SandboxUnavailableError("the sandbox ended or answered with what is no answer") from None
        return answer

    async def _complaint(self) -> str:
        assert self._process.stderr is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                said = await self._process.stderr.read(2000)
                return said.decode(errors="replace").strip() or "it said nothing"
        return "it said nothing"

    async def read_file(self, path: str) -> str:
        """Return a file that is read inside of the sandbox, so that a link leads nowhere else."""
        where = _placed(path, self.config)
        result = await self.run(["cat", "--", where])
        if result.exit_code != 0:
            raise ToolError(f"{path!r} cannot be read: {_last_words(result, where)}")
        if result.truncated:
            raise ToolError(f"{path!r} is larger than {self.config.max_output} bytes; read a part of it with a command")
        return result.stdout

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Write a file inside of the sandbox."""
        where = _placed(path, self.config)
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
        result = await self.run(["sh", "-c", script, "sh", where], stdin=content)
        if result.exit_code != 0:
            raise ToolError(f"{path!r} cannot be written: {_last_words(result, where)}")

    async def list_files(self, path: str = ".") -> list[str]:
        """Return the names in a folder of the sandbox."""
        where = _placed(path, self.config)
        script = (
            'cd -- "$1" && for f in * .*; do case $f in .|..) ;; *) if [ -d "$f" ]; then printf "%s/\\0" "$f"; '
            'elif [ -e "$f" ] || [ -L "$f" ]; then printf "%s\\0" "$f"; fi;; esac; done'
        )
        result = await self.run(["sh", "-c", script, "sh", where])
        if result.exit_code != 0:
            raise ToolError(f"{path!r} cannot be listed: {_last_words(result, where)}")
        if result.truncated:
            raise ToolError(f"{path!r} has more names than {self.config.max_output} bytes hold; list them by a command")
        return sorted(name for name in result.stdout.split("\0") if name and name != f"{_PACKAGES}/")

    async def install_package(self, name: str) -> CommandResult:
        """Install a package with pip, where the sandbox has a network."""
        if not _PACKAGE.fullmatch(name):
            raise ToolError(f"{name!r} is no name of a package; give one such as 'requests' or 'requests==2.32'")
        if self.config.network == "none":
            raise ToolError(f"{name!r} cannot be installed: this sandbox has no network; use what is there")
        target = f"{self.config.workdir}/{_PACKAGES}"
        return await self.run(["python3", "-m", "pip", "install", "--quiet", "--no-input", "--target", target, name])

    async def cleanup(self) -> None:
        """End the sandbox with everything in it."""
        await self._stop("was cleaned up")

    async def _stop(self, why: str) -> None:
        self._gone = self._gone or why
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise


def _words(command: list[str] | str) -> list[str]:
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise ConfigurationError(f"command is {command!r}; give a text or a list of texts, without null characters")
    return words


def _placed(path: str, config: SandboxConfig) -> str:
    if not path or "\0" in path:
        raise ToolError(f"{path!r} is no path; give one such as 'data/result.txt'")
    return path if path.startswith("/") else f"{config.workdir}/{path}"


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode(errors="replace")


def _last_words(result: CommandResult, where: str) -> str:
    lines = result.stderr.strip().splitlines()
    if result.stopped:
        return f"the sandbox stopped it ({result.stopped})"
    return lines[-1].rpartition(f"{where}: ")[2].rpartition(f"{where}': ")[2] if lines else "no reason was given"
