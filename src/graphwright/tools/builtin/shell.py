"""Tools that run commands and programs, in a sandbox or not at all."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Protocol

from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds, cut

__all__ = ["SAFE_COMMANDS", "BashSafeTool", "CommandResult", "CommandSandbox", "RunBashTool", "RunPythonTool"]

SAFE_COMMANDS = frozenset(
    {"basename", "cat", "cut", "diff", "dirname", "du", "echo", "grep", "head", "ls", "pwd", "sha256sum", "stat", "wc"}
)
"""Commands that only read: no option of theirs writes a file or starts another program."""

_SHELL_CHARACTERS = frozenset(";&|<>`$(){}*?[]~!#\n\r\0")


class CommandResult(Protocol):
    """How a command ended."""

    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` where the command was stopped."""
        ...

    @property
    def stdout(self) -> str | bytes: ...

    @property
    def stderr(self) -> str | bytes: ...


class CommandSandbox(Protocol):
    """Where commands run without reaching the machine of the agent."""

    async def run(
        self, command: list[str] | str, *, stdin: str | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Run a command and return how it ended; `TimeoutError` where it took longer than `timeout` seconds."""
        ...


class _SandboxTool(BuiltinTool):
    """A tool that can only work inside a sandbox."""

    def __init__(
        self,
        *,
        sandbox: CommandSandbox | None = None,
        command_timeout: float = 30.0,
        max_chars: int = 20_000,
        name: str | None = None,
    ) -> None:
        self._seconds = checked_seconds(command_timeout, "command_timeout")
        self._max_chars = checked_count(max_chars, "max_chars")
        super().__init__(name=name)
        self._sandbox = sandbox

    async def _run(self, command: list[str], stdin: str | None = None) -> str:
        if self._sandbox is None:
            raise ToolError(
                f"{self.name!r} runs nothing without a sandbox, and none was given; whoever builds the agent gives one "
                f"with {type(self).__name__}(sandbox=...)"
            )
        try:
            result = await self._sandbox.run(command, stdin=stdin, timeout=self._seconds)
        except TimeoutError:
            raise ToolError(f"the command took longer than {self._seconds:g} s and was stopped") from None
        parts = [cut(_text(result.stdout), self._max_chars)]
        if errors := _text(result.stderr):
            parts.append(f"[stderr]\n{cut(errors, self._max_chars)}")
        if result.exit_code != 0:
            parts.append(f"[exit code {result.exit_code}]")
        return "\n".join(part.rstrip("\n") for part in parts if part) or "(no output)"


def _text(output: Any) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else str(output or "")


class RunBashTool(_SandboxTool):
    """Run a command line of bash in the sandbox."""

    tool_name = "run_bash"
    risk_level = 2

    async def call(self, command: str) -> str:
        """Run a bash command line and return what it prints.

        Args:
            command: The command line.
        """
        if not command.strip():
            raise ToolError("command is empty; give a command line")
        return await self._run(["bash", "-c", command])


class BashSafeTool(_SandboxTool):
    """Run one of a few commands that only read, in the sandbox, without a shell.

    `commands` takes the place of `SAFE_COMMANDS`: a command is safe only if none of its options writes or runs.
    """

    tool_name = "run_bash_safe"
    risk_level = 1

    def __init__(self, *, commands: Iterable[str] = SAFE_COMMANDS, **options: Any) -> None:
        if isinstance(commands, str):
            raise ConfigurationError(f"commands is {commands!r}; give a list of names")
        self._commands = frozenset(commands)
        bad = sorted(entry for entry in self._commands if not entry or "/" in entry or entry.split() != [entry])
        if bad:
            raise ConfigurationError(f"commands holds {bad[0]!r}; give bare names, such as 'ls'")
        super().__init__(**options)
        listed = ", ".join(sorted(self._commands))
        self.spec = type(self.spec)(
            name=self.spec.name,
            description=f"{self.spec.description} Commands: {listed}.",
            parameters=self.spec.parameters,
        )

    async def call(self, command: str) -> str:
        """Run one command that only reads. There is no shell: no pipes, redirections, variables or wildcards.

        Args:
            command: The command and its arguments; quote an argument that has spaces.
        """
        bad = sorted(_SHELL_CHARACTERS.intersection(command))
        if bad:
            raise ToolError(f"command holds {bad[0]!r}, which needs a shell; give one plain command and its arguments")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ToolError(f"command cannot be read: {error}; check its quotes") from None
        if not words or words[0] not in self._commands:
            named = words[0] if words else ""
            raise ToolError(f"{named!r} is no command of this tool; there are {', '.join(sorted(self._commands))}")
        return await self._run(words)


class RunPythonTool(_SandboxTool):
    """Run a Python program in the sandbox."""

    tool_name = "run_python"
    risk_level = 2

    def __init__(self, *, python: str = "python3", **options: Any) -> None:
        super().__init__(**options)
        self._python = python

    async def call(self, code: str) -> str:
        """Run a Python program and return what it prints.

        Args:
            code: The whole program; print what you want to read.
        """
        return await self._run([self._python, "-"], stdin=code)
