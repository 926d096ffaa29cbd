"""Sandboxes of a container engine, against a stand-in for its command line."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphwright.exceptions import SandboxUnavailableError
from graphwright.sandbox import DockerBackend, SandboxConfig


def stand_in_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STAND_IN = stand_in_module()


@pytest.fixture
def engine(needs_bwrap: None, tmp_path: Path) -> Any:
    return STAND_IN.StandIn(tmp_path)


async def test_a_container_is_closed_off_and_removed(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    backend = DockerBackend(binary=str(engine.program))

    async with await backend.open(
        SandboxConfig(cpu=1.5, memory="512M", disk="64M", pids=99, mounts={"/data": "/srv"})
    ) as box:
        result = await box.run("echo hi > f; cat f; echo e >&2; exit 3")
        await box.write_file("a/b", "text")
        assert await box.list_files() == ["a/", "f"]
    await box.cleanup()

    assert (result.exit_code, result.stdout, result.stderr) == (3, "hi\n", "e\n")
    ((_, *run),) = engine.asked("run")
    name = run[run.index("--name") + 1]
    options = run[: run.index("--entrypoint")]
    pairs = dict(itertools.pairwise(options))
    assert {"--rm", "--interactive", "--read-only"} <= set(options)
    assert (pairs["--network"], pairs["--cap-drop"], pairs["--security-opt"]) == ("none", "ALL", "no-new-privileges")
    assert (pairs["--user"], pairs["--pids-limit"], pairs["--cpus"]) == ("65534:65534", "99", "1.5")
    assert (pairs["--memory"], pairs["--memory-swap"]) == ("536870912", "536870912")
    assert (pairs["--pull"], pairs["--mount"]) == ("never", "type=bind,source=/srv,target=/data,readonly")
    assert "/workspace:rw,nosuid,nodev,exec,uid=65534,gid=65534,size=67108864,mode=0700" in options
    assert not {"--privileged", "--env", "--volume", "--publish", "--cap-add"} & set(options)
    assert run[run.index("--entrypoint") + 2] == "python:3.11-slim"
    assert engine.asked("rm") == [["rm", "--force", "--volumes", name]]
    assert "SECRET_TOKEN" not in engine.environments()


async def test_a_time_limit_stops_the_command_and_not_the_container(engine: Any) -> None:
    async with await DockerBackend(binary=str(engine.program)).open(SandboxConfig()) as box:
        with pytest.raises(TimeoutError):
            await box.run("sleep 100 & sleep 100", timeout=0.3)
        assert (await box.run("echo alive")).stdout == "alive\n"


async def test_a_cancelled_command_removes_the_container(engine: Any, until: Any, processes_with: Any) -> None:
    box = await DockerBackend(binary=str(engine.program)).open(SandboxConfig())
    task = asyncio.create_task(box.run(["sh", "-c", "sleep 100; :", f"mark-of-docker-{os.getpid()}"]))
    await until(lambda: processes_with(f"mark-of-docker-{os.getpid()}"))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert processes_with(f"mark-of-docker-{os.getpid()}") == []
    assert len(engine.asked("rm")) == 1
    with pytest.raises(SandboxUnavailableError, match="stopped within a command"):
        await box.run("true")


async def test_a_container_that_does_not_start_says_why_and_is_removed(engine: Any) -> None:
    engine.set(refuses="OCI runtime create failed")

    found = await DockerBackend(binary=str(engine.program)).check(SandboxConfig())

    assert "did not start: OCI runtime create failed" in found.problem
    assert len(engine.asked("rm")) == 1


@pytest.mark.parametrize(
    ("state", "options", "problem"),
    [
        ({"info": None}, {}, "does not answer (Cannot connect"),
        ({"info": {"ServerErrors": ["no daemon"]}}, {}, "does not answer (no daemon)"),
        ({"info": {**STAND_IN.INFO, "PidsLimit": False}}, {}, "cannot limit pids"),
        ({"info": {**STAND_IN.INFO, "SwapLimit": False}}, {}, "cannot limit memory without swap"),
        ({"info": {**STAND_IN.INFO, "SecurityOptions": None}}, {}, "no seccomp profile"),
        ({"images": ()}, {}, "'python:3.11-slim' is not there, and none is pulled"),
        ({}, {"network": "restricted"}, "cannot be enforced by docker"),
    ],
    ids=str,
)
async def test_an_engine_that_cannot_hold_to_it_is_refused(
    engine: Any, state: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    engine.set(**state)
    backend = DockerBackend(binary=str(engine.program))

    assert problem in (await backend.check(SandboxConfig(**options))).problem
    with pytest.raises(SandboxUnavailableError):
        await backend.open(SandboxConfig(**options))
    assert engine.asked("run") == []


async def test_gvisor_is_another_runtime_and_has_to_be_there(engine: Any) -> None:
    backend = DockerBackend(name="gvisor", binary=str(engine.program))
    missing = await backend.check(SandboxConfig(backend="gvisor"))
    engine.set(info={**STAND_IN.INFO, "Runtimes": {"runsc": {}}})
    there = await backend.check(SandboxConfig(backend="gvisor"))

    assert "no runtime 'runsc'" in missing.problem
    assert there.works
    (run,) = engine.asked("run")
    assert run[run.index("--runtime") + 1] == "runsc"


async def test_without_a_program_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "neither docker nor podman is installed" in (await DockerBackend().check(SandboxConfig())).problem
