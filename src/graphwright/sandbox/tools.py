"""The tools by which a model uses its sandbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphwright.exceptions import ToolError
from graphwright.sandbox.base import CommandResult
from graphwright.sandbox.manager import SandboxManager

__all__ = ["sandbox_tools"]

_SHOWN = 20_000


def sandbox_tools(manager: SandboxManager) -> list[Callable[..., Awaitable[Any]]]:
    """Return the tools of a manager that was started: those that its back end and its config allow."""
    of = _Tools(manager)
    tools: list[Callable[..., Awaitable[Any]]] = [of.sandbox_python, of.sandbox_read_file, of.sandbox_write_file]
    tools.append(of.sandbox_list_files)
    if manager.backend != "monty":
        tools.insert(0, of.sandbox_exec)
    if manager.config.network != "none":
        tools.append(of.sandbox_install_package)
    return tools


class _Tools:
    """What a model can do in the sandbox of its conversation."""

    def __init__(self, manager: SandboxManager) -> None:
        self._manager = manager

    async def sandbox_exec(self, command: str, timeout: float | None = None) -> str:
        """Run a shell command in the sandbox and return what it prints. Files in the working folder are kept.

        Args:
            command: The command line.
            timeout: Seconds after which it is stopped.
        """
        return await _shown(self._manager, ["sh", "-c", command], timeout=timeout)

    async def sandbox_python(self, code: str, timeout: float | None = None) -> str:
        """Run a Python program in the sandbox and return what it prints. Files in the working folder are kept.

        Args:
            code: The whole program; print what you want to read.
            timeout: Seconds after which it is stopped.
        """
        return await _shown(self._manager, ["python3", "-"], stdin=code, timeout=timeout)

    async def sandbox_read_file(self, path: str) -> str:
        """Return the text of a file in the sandbox.

        Args:
            path: The path, from the working folder on.
        """
        async with self._manager.session() as session:
            return _cut(await session.read_file(path))

    async def sandbox_write_file(self, path: str, content: str) -> str:
        """Write a text file in the sandbox, in place of an earlier one.

        Args:
            path: The path, from the working folder on.
            content: The whole text.
        """
        async with self._manager.session() as session:
            await session.write_file(path, content)
        return f"wrote {len(content)} characters to {path}"

    async def sandbox_list_files(self, path: str = ".") -> list[str]:
        """List a folder of the sandbox; names of folders end with a slash.

        Args:
            path: The folder, from the working folder on.
        """
        async with self._manager.session() as session:
            return await session.list_files(path)

    async def sandbox_install_package(self, name: str) -> str:
        """Install a Python package into the sandbox.

        Args:
            name: The package, such as 'requests' or 'requests==2.32'.
        """
        async with self._manager.session() as session:
            return _told(await session.install_package(name)) or f"installed {name}"


async def _shown(
    manager: SandboxManager, command: list[str], *, stdin: str | None = None, timeout: float | None = None
) -> str:
    if timeout is not None and not timeout > 0:
        raise ToolError(f"timeout is {timeout!r}; give seconds above 0, or leave it out")
    try:
        return _told(await manager.run(command, stdin=stdin, timeout=timeout)) or "(no output)"
    except TimeoutError as error:
        raise ToolError(str(error)) from None


def _told(result: CommandResult) -> str:
    parts = [_cut(result.stdout)]
    if result.stderr:
        parts.append(f"[stderr]\n{_cut(result.stderr)}")
    if result.truncated:
        parts.append("[more was written than is kept]")
    if result.stopped:
        parts.append(f"[stopped by the sandbox: {result.stopped}]")
    elif result.exit_code != 0:
        parts.append(f"[exit code {result.exit_code}]")
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n[cut: {len(text) - _SHOWN} more characters]"
