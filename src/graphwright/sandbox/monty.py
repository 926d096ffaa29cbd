"""Sandboxes for Python programs alone, in the interpreter of `pydantic-monty`, which has no network or processes."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path, PurePosixPath
from typing import Any

from graphwright._internal.optional import is_installed
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError, SandboxUnavailableError, ToolError
from graphwright.sandbox._children import at_exit
from graphwright.sandbox.base import CommandResult, Enforcement, SandboxConfig, SandboxSession
from graphwright.sandbox.bubblewrap import isolation_arguments

__all__ = ["MontyBackend", "MontySession"]

_LIMITS = {
    "files": "a temporary folder of the session, reached by name through the interpreter alone",
    "network": "the interpreter has none",
    "processes": "the interpreter can start none",
    "memory": "counted by the interpreter",
    "cpu": "one core: a program is one thread of one process",
    "pids": "one",
    "disk": "counted on every write",
    "time, output": "the interpreter, and the process that started it",
}
_PYTHONS = frozenset({"python", "python3", "python3.11", "python3.12", "python3.13", "python3.14"})
_GRACE_SECONDS = 2.0


class MontyBackend:
    """Make sandboxes with `pydantic-monty`; its worker runs inside of bubblewrap where that is installed."""

    name = "monty"

    async def check(self, config: SandboxConfig) -> Enforcement:
        """Try a program."""
        problem = _problem(config)
        if not problem:
            try:
                async with await self.open(config):
                    pass
            except SandboxUnavailableError as error:
                problem = str(error)
        return Enforcement(backend=self.name, problem=problem, limits=_LIMITS)

    async def open(self, config: SandboxConfig) -> MontySession:
        """Start a session and try a program in it."""
        if problem := _problem(config):
            raise SandboxUnavailableError(problem)
        session = MontySession(config)
        try:
            result = await session.run(["python3", "-c", "print(6 * 7)"], timeout=min(10.0, config.timeout))
        except TimeoutError as error:
            await session.cleanup()
            raise SandboxUnavailableError(f"monty does not work here: {error}") from error
        except BaseException:
            await session.cleanup()
            raise
        if result.stdout.strip() != "42":
            await session.cleanup()
            raise SandboxUnavailableError(f"monty does not work here: {result.stderr.strip() or result.stdout!r}")
        return session


def _problem(config: SandboxConfig) -> str:
    if not is_installed("pydantic_monty"):
        return "pydantic-monty is not installed; install it with: pip install 'graphwright[sandbox]'"
    if config.network != "none":
        return (
            f'network={config.network!r} cannot be given by monty, which has no network; use "none" or another back end'
        )
    if config.mounts:
        return "mounts cannot be given by monty; use another back end, or write the files into the workspace"
    if config.env:
        return "env cannot be given by monty, which has no environment; use another back end"
    if 0 < config.cpu < 1:
        return f"cpu={config.cpu!r} cannot be enforced by monty, whose programs use up to one core; use 1"
    return ""


class MontySession(SandboxSession):
    """Run one program after the other, each in a fresh interpreter; the files stay from one to the next."""

    def __init__(self, config: SandboxConfig) -> None:
        from pydantic_monty import AsyncMonty, MountDir

        self.config = config
        self._monty: Any = AsyncMonty
        self._mount_dir: Any = MountDir
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix="graphwright-sandbox-"))
        (self._folder / "files").mkdir()
        self._worker = _contained_worker(self._folder)
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        folder = self._folder
        self._forget: Callable[[], None] = at_exit(lambda: _remove(folder))

    @property
    def is_open(self) -> bool:
        """Whether it still takes programs."""
        return self._folder is not None

    async def run(
        self,
        command: list[str] | str,
        *,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        workdir: str | None = None,
    ) -> CommandResult:
        """Run `python3 -c PROGRAM`, or `python3 -` with the program as `stdin`; there is nothing else to run."""
        seconds = self.config.timeout if timeout is None else min(timeout, self.config.timeout)
        if not seconds > 0:
            raise ConfigurationError(f"timeout is {timeout!r}; give seconds above 0")
        program = _program_of(command, stdin)
        if program is None:
            return CommandResult(
                exit_code=127, stderr="this sandbox runs Python programs only: no shell, no commands\n"
            )
        return await self._feed(program, seconds, cwd=self._placed(workdir or "."))

    async def _feed(
        self, program: str, seconds: float, *, cwd: str | None = None, inputs: dict[str, Any] | None = None
    ) -> CommandResult:
        from pydantic_monty import MontyCrashedError, MontyError

        started = time.monotonic()
        output = _Output(self.config.max_output)
        stopped, code = "", 0
        async with self._turn:
            try:
                async with asyncio.timeout(seconds + _GRACE_SECONDS):
                    await self._watched(self._run_once(program, output, seconds, cwd, inputs))
            except MontyCrashedError as error:
                if error.timed_out:
                    raise self._late(seconds) from None
                code, stopped = 1, "crash"
                output.write("stderr", f"{error}\n")
            except MontyError as error:
                inner = error.exception()
                if isinstance(inner, TimeoutError) and "limit exceeded" in str(inner):
                    raise self._late(seconds) from None
                code = 1
                output.write("stderr", f"{_told(error)}\n")
            except TimeoutError:
                raise self._late(seconds) from None
        return CommandResult(
            exit_code=None if stopped else code,
            stdout=output.text("stdout"),
            stderr=output.text("stderr"),
            stopped=stopped,
            truncated=output.truncated,
            duration=time.monotonic() - started,
        )

    async def _watched(self, program: Coroutine[Any, Any, None]) -> None:
        """Run a program so that `cleanup` can end it."""
        task = asyncio.ensure_future(program)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await task
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if self._folder is None and own is not None and not own.cancelling():
                raise SandboxUnavailableError("the sandbox was cleaned up within a program") from None
            raise

    def _late(self, seconds: float) -> TimeoutError:
        return TimeoutError(f"the command took longer than {seconds:g} s and was stopped")

    async def _run_once(
        self, program: str, output: _Output, seconds: float, cwd: str | None, inputs: dict[str, Any] | None
    ) -> None:
        if self._folder is None:
            raise SandboxUnavailableError("the sandbox was cleaned up; open another session")
        files = self._folder / "files"
        used = await run_in_thread(_size_of, files)
        limits = {
            "max_memory": self.config.memory_bytes,
            "max_feed_duration_secs": seconds,
            "max_total_sleep_secs": seconds,
        }
        with self._mount_dir(
            host_path=files,
            virtual_path=self.config.workdir,
            mode="read-write",
            write_bytes_limit=max(self.config.disk_bytes - used, 0),
        ) as mount:
            async with (
                self._monty(binary_path=self._worker, max_processes=1, request_timeout=seconds + 1) as pool,
                pool.checkout(limits=limits, script_name="program.py", print_flush_interval=0.05) as session,
            ):
                await session.feed_run(program, print_callback=output.write, mount=mount, cwd=cwd, inputs=inputs)

    def _placed(self, path: str) -> str:
        if not path or "\0" in path:
            raise ToolError(f"{path!r} is no path; give one such as 'data/result.txt'")
        return str(PurePosixPath(self.config.workdir) / path)

    async def _file_program(self, program: str, path: str, what: str, **inputs: Any) -> CommandResult:
        place = self._placed(path)
        result = await self._feed(
            program, self.config.timeout, cwd=self.config.workdir, inputs={"place": place, **inputs}
        )
        if result.exit_code != 0:
            lines = result.stderr.strip().splitlines()
            raise ToolError(f"{path!r} cannot be {what}: {lines[-1] if lines else result.stopped}")
        if result.truncated:
            raise ToolError(f"{path!r} is larger than {self.config.max_output} bytes; read a part of it with a program")
        return result

    async def read_file(self, path: str) -> str:
        """Return a file that the interpreter reads, so that a link leads nowhere else."""
        return (await self._file_program("print(open(place).read(), end='')", path, "read")).stdout

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Let the interpreter write a file."""
        data = content.encode() if isinstance(content, str) else content
        program = (
            "from pathlib import Path\n"
            "target = Path(place)\ntarget.parent.mkdir(parents=True, exist_ok=True)\ntarget.write_bytes(data)"
        )
        await self._file_program(program, path, "written", data=data)

    async def list_files(self, path: str = ".") -> list[str]:
        """Return the names in a folder."""
        program = (
            "from pathlib import Path\n"
            "for entry in Path(place).iterdir():\n"
            "    print(entry.name + ('/' if entry.is_dir() else ''), end='\\0')"
        )
        result = await self._file_program(program, path, "listed")
        return sorted(name for name in result.stdout.split("\0") if name)

    async def install_package(self, name: str) -> CommandResult:
        """Refuse: the interpreter takes no packages."""
        raise ToolError(f"{name!r} cannot be installed: this sandbox takes no packages; use what Python itself has")

    async def cleanup(self) -> None:
        """End the program that is at work and remove the workspace."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        for task in list(self._running):
            task.cancel()
        async with self._turn:
            await run_in_thread(_remove, folder)
        self._forget()


class _Output:
    """What a program prints, up to a limit of bytes for each stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = False

    def write(self, stream: str, text: str) -> None:
        """Add output; what is beyond the limit is dropped."""
        kept, data = self._kept[stream], text.encode(errors="replace")
        room = self._most - len(kept)
        kept += data[:room]
        self.truncated = self.truncated or len(data) > room

    def text(self, stream: str) -> str:
        """Return what was kept."""
        return self._kept[stream].decode(errors="replace")


def _program_of(command: list[str] | str, stdin: str | bytes | None) -> str | None:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        return None
    if not words or words[0] not in _PYTHONS:
        return None
    if len(words) == 3 and words[1] == "-c":
        return words[2]
    if words[1:] in ([], ["-"]):
        return stdin.decode(errors="replace") if isinstance(stdin, bytes) else stdin or ""
    return None


def _told(error: Any) -> str:
    display = getattr(error, "display", None)
    return str(display()) if display is not None else str(error)


def _contained_worker(folder: Path) -> str | None:
    """Write a script that starts the interpreter inside of bubblewrap; `None` leaves it as it is."""
    bwrap = shutil.which("bwrap")
    if bwrap is None or sys.platform != "linux":
        return None
    from pydantic_monty._binary import find_monty_binary

    binary = find_monty_binary()
    words = [bwrap, *isolation_arguments(), "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        place = Path("/", name)
        words += (
            ["--symlink", str(place.readlink()), str(place)]
            if place.is_symlink()
            else ["--ro-bind-try", str(place), str(place)]
        )
    words += ["--ro-bind", binary, "/worker", "--remount-ro", "/", "--chdir", "/", "--", "/worker"]
    script = folder / "worker"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    script.chmod(stat.S_IRWXU)
    return str(script)


def _size_of(folder: Path) -> int:
    return sum(entry.lstat().st_size for entry in folder.rglob("*") if entry.is_symlink() or entry.is_file())


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
