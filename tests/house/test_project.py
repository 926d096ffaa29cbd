"""The project around the code: the lock, the changelog, the start script, and what CI counts as a failure."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")


def requirements_of(lines: list[str]) -> list[Requirement]:
    """Return requirements with the project's own extras replaced by what they hold."""
    found = []
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["name"]:
            for extra in sorted(requirement.extras):
                found += requirements_of(PROJECT["optional-dependencies"][extra])
        else:
            found.append(requirement)
    return found


def test_the_lock_holds_a_fitting_version_of_everything_the_tests_need() -> None:
    locked: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", LOCK, re.MULTILINE):
        locked.setdefault(name, []).append(version)
    wanted = requirements_of(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"])

    unfit = [str(need) for need in wanted if not any(need.specifier.contains(v) for v in locked.get(need.name, []))]

    assert unfit == [], "make the lock anew, as CONTRIBUTING.md says"


def test_the_lock_pins_every_file_by_its_hash_and_names_no_place() -> None:
    entries = re.findall(r"^[a-z0-9-]+==.*(?:\n    .*)*", LOCK, re.MULTILINE)

    assert len(entries) > 40
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_every_dependency_has_a_floor_and_its_reason() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    everything = requirements_of(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["all"])

    assert [str(need) for need in everything if not str(need.specifier).startswith((">=", "=="))] == []
    assert [need.name for need in everything if f"`{need.name}`" not in reasons] == []


def test_all_holds_every_extra_but_the_developers() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = map(Requirement, extras["all"])

    assert everything.extras == set(extras) - {"all", "dev"}


def test_the_changelog_tells_of_what_is_coming() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    lines = [line for line in changelog.splitlines() if line.startswith("- ")]

    assert "\n## Unreleased\n" in changelog
    assert lines
    assert [line for line in lines if ".py" in line] == [], "a changelog line says what a user can see"


def test_the_readme_tells_the_two_commands_and_ci_runs_the_second_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 scripts/start\.py .*$", readme, re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    first = re.search(r'^section "README: .*"\n(.*)$', ci, re.MULTILINE)

    assert commands[:2] == ["python3 scripts/start.py demo", "python3 scripts/start.py test"]
    assert first is not None
    before = ci[: first.start()].split("\nsection ")[1:]
    assert [section.partition("\n")[2].strip() for section in before] == ["bash scripts/servers.sh"]
    assert first[1] == commands[1]


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "2001:db8::1"])
async def test_no_test_reaches_out_of_the_machine(host: str) -> None:
    with pytest.raises(RuntimeError, match=f"a test tried to reach {host!r}; use a server on 127.0.0.1"):
        await asyncio.open_connection(host, 443)
    with pytest.raises(RuntimeError, match="use a server"), socket.socket() as sock:
        sock.connect((host, 443))


async def test_a_test_reaches_a_server_of_its_own() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        assert await reader.read() == b"hello"
        writer.close()


def test_a_test_has_no_key_of_a_provider() -> None:
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
    assert os.environ["GRAPHWRIGHT_FORBID_REAL_REQUESTS"] == "1"


@pytest.fixture
def start() -> ModuleType:
    spec = importlib.util.spec_from_file_location("start", ROOT / "scripts" / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "start.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **variables}, cwd=ROOT.anchor
    )


def test_an_unknown_command_is_told_the_known_ones(tmp_path: Path) -> None:
    done = run_start("tset", GRAPHWRIGHT_VENV=str(tmp_path / "venv"))

    assert done.returncode == 2
    assert "no command 'tset'; choose demo, test, run COMMAND or install ARGS" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    done = run_start("demo", GRAPHWRIGHT_VENV=str(tmp_path))

    assert done.returncode == 2
    assert f"{str(tmp_path)!r} is there and is no virtual environment" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_old_python_is_told_what_is_needed(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    monkeypatch.setattr(sys, "argv", ["scripts/start.py", "test"])

    assert start.main(["test"]) == 2
    assert "this is Python 3.9 and Graphwright needs 3.11 or newer" in capsys.readouterr().err


def test_an_environment_is_made_once_and_again_when_the_project_changes(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    steps: list[str] = []
    for name in ("pyproject.toml", "lock"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(start, "PYPROJECT", str(tmp_path / "pyproject.toml"))
    monkeypatch.setattr(start, "LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(start, "find_uv", lambda: None)
    monkeypatch.setattr(start.Environment, "works", lambda self: os.path.exists(self.path))
    monkeypatch.setattr(start.Environment, "create", lambda self, uv: (steps.append("create"), os.mkdir(self.path)))
    monkeypatch.setattr(start.Environment, "install", lambda self, uv, what: steps.append(what[-1]))
    environment = start.Environment(str(tmp_path / "venv"))
    dev = [str(tmp_path / "lock"), str(ROOT)]

    environment.prepare("plain")
    environment.prepare("plain")
    assert steps == ["create", str(ROOT)]

    environment.prepare("dev")
    environment.prepare("dev")
    environment.prepare("plain")
    assert steps == ["create", str(ROOT), *dev]

    (tmp_path / "lock").write_text("changed")
    environment.prepare("dev")
    assert steps == ["create", str(ROOT), *dev, *dev]


@pytest.mark.slow
def test_the_demo_runs_from_any_folder_with_pip_alone(tmp_path: Path) -> None:
    done = run_start("demo", GRAPHWRIGHT_VENV=str(tmp_path / "venv"), GRAPHWRIGHT_INSTALLER="pip")

    assert done.returncode == 0, done.stderr
    assert "with venv and pip" in done.stderr
    assert done.stdout.strip()
    assert [path.name for path in (tmp_path / "venv").glob("*.stamp")] == ["graphwright-plain.stamp"]


@pytest.mark.parametrize(("ci", "errors", "skipped"), [("true", 2, 1), ("", 0, 3)])
def test_a_skip_is_a_failure_where_ci_is_true(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, errors: int, skipped: int
) -> None:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyprojecttoml(
        "[tool.pytest.ini_options]\nmarkers = ['may_skip(reason)']\nasyncio_default_fixture_loop_scope = 'function'\n"
    )
    pytester.makepyfile(
        test_one="""
        import pytest

        def test_passes(): ...

        @pytest.mark.skipif(True, reason="no such thing here")
        def test_is_skipped(): ...

        @pytest.mark.may_skip("only on the moon")
        def test_may_be_skipped():
            pytest.skip("not on the moon")

        @pytest.mark.xfail(reason="known")
        def test_is_expected_to_fail():
            assert False
        """,
        test_two="import pytest\npytest.importorskip('no_such_module_anywhere')",
    )
    monkeypatch.setenv("CI", ci)

    result = pytester.runpytest_subprocess("-p", "no:randomly", "--continue-on-collection-errors")

    result.assert_outcomes(passed=1, errors=errors, skipped=skipped, xfailed=1)
    if errors:
        result.stdout.fnmatch_lines(["*which CI counts as a failure*"])
