from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.tools.builtin import BashSafeTool, GetDateTimeTool, RunBashTool, RunPythonTool

MOMENT = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "2026-07-01T22:30:00+00:00 (Wednesday, UTC)"),
        ("Europe/Berlin", "2026-07-02T00:30:00+02:00 (Thursday, CEST)"),
        ("Asia/Kolkata", "2026-07-02T04:00:00+05:30 (Thursday, IST)"),
    ],
)
async def test_the_time_is_told_in_the_zone_that_was_named(zone: str, told: str, use: Any) -> None:
    assert await use(GetDateTimeTool(now=lambda: MOMENT), tz=zone) == told


async def test_the_local_time_is_the_same_moment(use: Any) -> None:
    told = await use(GetDateTimeTool(now=lambda: MOMENT))

    assert datetime.fromisoformat(told.partition(" ")[0]) == MOMENT
    assert GetDateTimeTool().risk_level == 0


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "Europe", "a\0b", "x" * 300])
async def test_a_zone_that_is_none_is_answered_with_how_to_name_one(zone: str, use: Any) -> None:
    error = await use.error(GetDateTimeTool(), tz=zone)

    assert repr(zone) in error
    assert "Europe/Berlin" in error


@dataclass
class Result:
    exit_code: int | None = 0
    stdout: str | bytes = ""
    stderr: str | bytes = ""


@dataclass
class FakeSandbox:
    result: Result | Exception = field(default_factory=Result)
    ran: list[tuple[Any, str | None, float | None]] = field(default_factory=list)

    async def run(self, command: list[str] | str, *, stdin: str | None = None, timeout: float | None = None) -> Result:
        self.ran.append((command, stdin, timeout))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("kind", "args"),
    [(RunBashTool, {"command": "ls"}), (BashSafeTool, {"command": "ls"}), (RunPythonTool, {"code": "print(1)"})],
)
async def test_nothing_runs_without_a_sandbox(
    kind: Any, args: dict[str, str], use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", started)
    monkeypatch.setattr("os.posix_spawn", started)

    error = await use.error(kind(), **args)

    assert f"{kind.__name__}(sandbox=...)" in error
    assert "without a sandbox" in error


async def test_commands_and_programs_reach_the_sandbox_as_they_are(use: Any) -> None:
    sandbox = FakeSandbox(Result(stdout="out\n"))

    assert await use(RunBashTool(sandbox=sandbox, command_timeout=7), command="ls; rm $X") == "out"
    assert await use(BashSafeTool(sandbox=sandbox), command="grep -n 'a b' f.txt") == "out"
    assert await use(RunPythonTool(sandbox=sandbox), code="print(1)") == "out"

    assert sandbox.ran == [
        (["bash", "-c", "ls; rm $X"], None, 7.0),
        (["grep", "-n", "a b", "f.txt"], None, 30.0),
        (["python3", "-"], "print(1)", 30.0),
    ]


BYPASSES = ["/bin/rm x", "ls;rm x", "ls && rm x", "ls `rm x`", "ls $(rm x)", "ls > x", "ls\nrm x", "env", "curl x"]
BYPASSES += ["tee x", "cp a b", "python3 -c 1", "find . -delete", "./ls", "", "sort -o x y", "FOO=1 ls", "ls 'x"]


@pytest.mark.parametrize("command", BYPASSES)
async def test_the_safe_shell_lets_nothing_but_its_commands_through(command: str, use: Any) -> None:
    sandbox = FakeSandbox()

    await use.error(BashSafeTool(sandbox=sandbox), command=command)

    assert sandbox.ran == []


def test_commands_are_bare_names_and_the_model_is_told_them() -> None:
    with pytest.raises(ConfigurationError, match="bare names"):
        BashSafeTool(commands=["/bin/ls"])
    with pytest.raises(ConfigurationError, match="a list of names"):
        BashSafeTool(commands="ls")

    assert BashSafeTool(commands=["b", "a"]).spec.description.endswith("Commands: a, b.")


async def test_a_failure_shows_its_output_and_its_code(use: Any) -> None:
    sandbox = FakeSandbox(Result(exit_code=2, stdout=b"half \xff\n", stderr="broken"))

    assert await use(RunBashTool(sandbox=sandbox), command="x") == "half \ufffd\n[stderr]\nbroken\n[exit code 2]"


async def test_long_output_is_cut_and_no_output_is_said(use: Any) -> None:
    sandbox = FakeSandbox(Result(stdout="x" * 50))

    assert await use(RunBashTool(sandbox=sandbox, max_chars=10), command="x") == (
        "xxxxxxxxxx\n[cut: 40 more characters]"
    )
    sandbox.result = Result()
    assert await use(RunBashTool(sandbox=sandbox), command="x") == "(no output)"


async def test_a_command_that_takes_too_long_is_told(use: Any) -> None:
    tool = RunPythonTool(sandbox=FakeSandbox(TimeoutError()), command_timeout=3)

    assert await use.error(tool, code="while 1: pass") == "the command took longer than 3 s and was stopped"


def test_shells_and_programs_are_as_risky_as_they_are() -> None:
    assert [tool.risk_level for tool in (RunBashTool(), BashSafeTool(), RunPythonTool())] == [2, 1, 2]
