"""Sandboxes of bubblewrap: what works in them, and every way out that was thought of."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError, SandboxUnavailableError, ToolError
from graphwright.sandbox import BubblewrapBackend, SandboxConfig
from graphwright.sandbox._seccomp import REFUSED_CALLS

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow


def python(code: str) -> list[str]:
    return ["python3", "-c", code]


async def test_commands_and_programs_run_and_files_stay_from_one_to_the_next(bwrap: Any) -> None:
    box = await bwrap()

    first = await box.run("echo out; echo err >&2; echo hi > kept; exit 3")
    second = await box.run(["python3", "-"], stdin="import sys; print(open('kept').read().strip(), sys.platform)")
    missing = await box.run(["no-such-program"])

    assert (first.exit_code, first.stdout, first.stderr, first.stopped) == (3, "out\n", "err\n", "")
    assert (second.exit_code, second.stdout) == (0, "hi linux\n")
    assert missing.exit_code == 127
    assert "no-such-program" in missing.stderr


async def test_a_command_ended_by_a_signal_says_which(bwrap: Any) -> None:
    assert (await (await bwrap()).run("kill -TERM $$")).exit_code == -signal.SIGTERM


async def test_files_are_written_read_and_listed_inside(bwrap: Any) -> None:
    box = await bwrap()

    await box.write_file("a/b c.txt", "hé\n")
    await box.write_file("-n", b"\xff")

    assert await box.read_file("a/b c.txt") == "hé\n"
    assert await box.read_file("/workspace/-n") == "\ufffd"
    assert await box.list_files() == ["-n", "a/"]
    assert await box.list_files("a") == ["b c.txt"]
    with pytest.raises(ToolError, match=r"^'nope' cannot be read: No such file"):
        await box.read_file("nope")
    with pytest.raises(ToolError, match="'nope' cannot be listed"):
        await box.list_files("nope")
    with pytest.raises(ToolError, match="cannot be written"):
        await box.write_file("/usr/x", "x")
    with pytest.raises(ToolError, match="is no path"):
        await box.read_file("a\0b")


async def test_a_link_leads_to_no_file_of_the_machine(bwrap: Any, tmp_path: Path) -> None:
    box = await bwrap()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)

    await box.run(["ln", "-s", str(secret), "link"])
    await box.run(["ln", "-s", str(tmp_path), "folder"])

    with pytest.raises(ToolError):
        await box.read_file("link")
    with pytest.raises(ToolError):
        await box.write_file("folder/new", "x")
    assert os.listdir(tmp_path) == ["secret"]


async def test_nothing_of_the_machine_is_there_but_its_programs(bwrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    box = await bwrap(env={"GIVEN": "yes"})

    names = await box.run("ls -A /; ls -A /etc /tmp /home /root 2>/dev/null")
    environment = await box.run("env; cat /proc/1/environ; ls /proc/1/fd /proc/1/root")
    identity = await box.run("id -u; hostname; cat /proc/self/status")

    assert set(names.stdout.split()) <= {
        *["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "workspace"],
        *["/etc:", "/tmp:", "ld.so.cache", "alternatives"],
    }
    assert "GIVEN=yes" in environment.stdout
    assert "hunter2" not in environment.stdout
    assert environment.stderr.count("Permission denied") == 3
    assert identity.stdout.startswith("65534\nsandbox\n")
    fields = dict(line.split(":\t", 1) for line in identity.stdout.splitlines() if ":\t" in line)
    assert {fields[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


async def test_there_is_no_network_not_even_that_of_the_machine(bwrap: Any) -> None:
    box = await bwrap()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        local = await box.run(python(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"))
        abroad = await box.run(python("import socket; socket.create_connection(('192.0.2.1', 80), 2)"))
        raw = await box.run(python("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"))
        devices = await box.run("cat /proc/net/dev")

    assert "ConnectionRefusedError" in local.stderr
    assert "Network is unreachable" in abroad.stderr
    assert "PermissionError" in raw.stderr
    assert [line.split(":")[0].strip() for line in devices.stdout.splitlines()[2:]] == ["lo"]


async def test_an_abstract_socket_of_the_machine_cannot_be_reached(bwrap: Any) -> None:
    box = await bwrap()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0graphwright-test")
        server.listen()

        result = await box.run(python("import socket; socket.socket(socket.AF_UNIX).connect('\\0graphwright-test')"))

    assert "ConnectionRefusedError" in result.stderr


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        ("unshare -U id", "Operation not permitted"),
        ("unshare -m id", "Operation not permitted"),
        ("mount -t tmpfs x /tmp", "must be superuser|not permitted"),
        ("/usr/sbin/chroot / id", "not permitted"),
        ("echo x > /usr/x", "Read-only"),
        ("echo x > /x", "Read-only"),
        ("echo x > /dev/x", "Read-only"),
        ("echo 1 > /proc/sys/kernel/panic", "Permission denied|Read-only|nonexistent"),
        ("echo b > /proc/sysrq-trigger", "Permission denied|Read-only|nonexistent"),
        ("cat /proc/kmsg", "not permitted|Permission denied"),
        ("mknod disk b 254 0", "not permitted"),
        ("kill -9 1; kill -STOP 1; exit 1", ""),
    ],
)
async def test_what_a_shell_tries_is_refused(bwrap: Any, attempt: str, complaint: str) -> None:
    box = await bwrap()

    result = await box.run(attempt)

    assert result.exit_code != 0
    assert any(part in result.stderr for part in complaint.split("|"))
    assert (await box.run("echo alive")).stdout == "alive\n"


async def test_calls_of_the_filter_fail_whatever_their_arguments(bwrap: Any) -> None:
    assert {"ptrace", "bpf", "keyctl", "mount", "setns", "unshare", "userfaultfd", "io_uring_setup"} <= set(
        REFUSED_CALLS
    )
    program = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for number in (101, 321, 250, 165, 308, 272, 323, 425):
    ctypes.set_errno(0)
    print(libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno() == errno.EPERM)
"""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")

    result = await (await bwrap()).run(python(program))

    assert result.stdout == "-1 True\n" * 8


async def test_a_time_limit_stops_every_process_and_the_next_command_runs(bwrap: Any) -> None:
    box = await bwrap()

    with pytest.raises(TimeoutError, match=r"longer than 0\.3 s"):
        await box.run("setsid sleep 100 & trap '' TERM INT HUP; while :; do :; done", timeout=0.3)
    late = await box.execute("sleep 100", timeout=0.2)
    after = await box.run(python("import os; print([n for n in os.listdir('/proc') if n.isdigit() and int(n) > 1])"))

    assert (late.exit_code, late.stopped) == (None, "timeout")
    assert after.stdout.count("'") == 2, "only the program itself"


async def test_what_a_command_leaves_behind_ends_with_it(bwrap: Any) -> None:
    box = await bwrap()

    result = await box.run("(setsid sleep 100 >/dev/null 2>&1 &); (sleep 100 &); echo done", timeout=5)
    after = await box.run("ls /proc | grep -c '^[0-9]'")

    assert (result.stdout, result.stopped) == ("done\n", "")
    assert result.duration < 4
    assert int(after.stdout) <= 5


async def test_zombies_are_reaped(bwrap: Any) -> None:
    box = await bwrap(pids=64)

    for _ in range(3):
        result = await box.run("for i in $(seq 60); do (sh -c : &) ; done; echo ok")
        assert result.stdout == "ok\n"
    after = await box.run("cat /proc/[0-9]*/stat | grep -c ' Z '")

    assert after.stdout == "0\n"


async def test_a_fork_bomb_ends_at_the_limit_and_with_its_time(bwrap: Any) -> None:
    box = await bwrap(pids=32)

    with pytest.raises(TimeoutError):
        await box.run(python("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), timeout=1)

    assert (await box.run("echo alive")).stdout == "alive\n"


async def test_the_limit_of_processes_holds(bwrap: Any) -> None:
    program = """
import os, time
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError as error:
    print(made, error.strerror)
"""
    result = await (await bwrap(pids=20)).run(python(program))

    assert result.stdout == "18 Resource temporarily unavailable\n", "the first process and the program count too"


async def test_output_beyond_the_limit_is_dropped_and_the_command_goes_on(bwrap: Any) -> None:
    box = await bwrap(max_output=1000)

    result = await box.run("head -c 5000000 /dev/zero | tr '\\0' x; echo err >&2; exit 4")
    with pytest.raises(TimeoutError):
        await box.run("yes", timeout=0.3)

    assert (result.exit_code, result.stdout, result.stderr, result.truncated) == (4, "x" * 1000, "err\n", True)


async def test_a_file_larger_than_the_output_limit_is_not_read_by_half(bwrap: Any) -> None:
    box = await bwrap(max_output=1000)
    await box.write_file("big", "x" * 2000)

    with pytest.raises(ToolError, match="'big' is larger than 1000 bytes"):
        await box.read_file("big")


async def test_one_process_cannot_take_more_memory_than_there_is(bwrap: Any) -> None:
    box = await bwrap(memory="128M")

    result = await box.run(python("x = b'x' * (256 << 20)"))

    assert "MemoryError" in result.stderr
    assert (await box.run("echo alive")).stdout == "alive\n"


async def test_processes_together_cannot_either(bwrap: Any) -> None:
    program = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(os.urandom(1 << 20) * 40)
        time.sleep(60)
time.sleep(60)
"""
    result = await (await bwrap(memory="128M")).run(python(program), timeout=30)

    assert (result.exit_code, result.stopped) == (None, "memory")


async def test_the_workspace_and_the_other_places_are_full_at_their_limit(bwrap: Any) -> None:
    box = await bwrap(disk="4M")

    workspace = await box.run("head -c 9000000 /dev/zero > a; head -c 9000000 /dev/zero > b; du -sk . | cut -f1")
    unlinked = await box.run(
        python(
            "import os\nf = open('u', 'wb', 0)\nos.unlink('u')\nprint(sum(f.write(b'x' * 65536) for _ in range(500)))"
        )
    )
    others = await box.run("for d in /tmp /dev/shm; do head -c 100000000 /dev/zero > $d/x; du -sk $d | cut -f1; done")

    assert int(workspace.stdout) <= 4096
    assert "No space left" in unlinked.stderr
    assert max(map(int, others.stdout.split())) <= 65536


async def test_cores_are_limited_and_cannot_be_taken_back(bwrap: Any) -> None:
    box = await bwrap(cpu=1)

    result = await box.run(
        python("import os\nprint(len(os.sched_getaffinity(0)))\nos.sched_setaffinity(0, range(os.cpu_count()))")
    )

    assert result.stdout == "1\n"
    assert "PermissionError" in result.stderr


async def test_folders_are_mounted_for_reading_only(bwrap: Any, tmp_path: Path) -> None:
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(0o755)
    (tmp_path / "data.txt").write_text("data")
    box = await bwrap(mounts={"/data": str(tmp_path)})

    result = await box.run("cat /data/data.txt; echo x > /data/new; rm /data/data.txt")

    assert result.stdout == "data"
    assert result.stderr.count("Read-only file system") == 2
    assert os.listdir(tmp_path) == ["data.txt"]


async def test_a_workspace_is_seen_by_no_other_session_and_gone_with_its_own(bwrap: Any) -> None:
    first, second = await bwrap(), await bwrap()
    await first.write_file("secret", "x")

    assert await second.list_files() == []
    await first.cleanup()
    await first.cleanup()
    assert not first.is_open
    with pytest.raises(SandboxUnavailableError, match="was cleaned up; open another"):
        await first.run("true")
    assert (await second.run("echo ok")).stdout == "ok\n"


async def test_a_cancelled_command_takes_its_sandbox_with_it(bwrap: Any, until: Any, processes_with: Any) -> None:
    box = await bwrap()
    task = asyncio.create_task(box.run(["sh", "-c", "sleep 100; :", f"mark-of-cancel-{os.getpid()}"]))
    await until(lambda: bool(processes_with(f"mark-of-cancel-{os.getpid()}")))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert processes_with(f"mark-of-cancel-{os.getpid()}") == []
    assert not box.is_open


async def test_clean_up_ends_a_command_that_is_at_work(bwrap: Any, until: Any, processes_with: Any) -> None:
    box = await bwrap()
    task = asyncio.create_task(box.run(["sh", "-c", "sleep 100; :", f"mark-of-cleanup-{os.getpid()}"]))
    await until(lambda: bool(processes_with(f"mark-of-cleanup-{os.getpid()}")))

    await box.cleanup()

    with pytest.raises(SandboxUnavailableError):
        await task
    assert processes_with(f"mark-of-cleanup-{os.getpid()}") == []


async def test_packages_need_a_network_and_a_name(bwrap: Any) -> None:
    box = await bwrap()

    with pytest.raises(ToolError, match="has no network"):
        await box.install_package("requests==2.32")
    for name in ("--index-url=x", "a; rm -rf /", "git+ssh", ""):
        with pytest.raises(ToolError, match="is no name of a package"):
            await box.install_package(name)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"network": "restricted"}, "cannot be enforced by bwrap"),
        ({"cpu": 0.5}, "whole cores; use 1"),
        ({"mounts": {"/data": "/no/such/folder"}}, "'/no/such/folder' does not exist"),
    ],
)
async def test_what_cannot_be_enforced_is_refused(needs_bwrap: None, options: dict[str, Any], problem: str) -> None:
    config = SandboxConfig(**options)

    assert problem in (await BubblewrapBackend().check(config)).problem
    with pytest.raises(SandboxUnavailableError, match=problem):
        await BubblewrapBackend().open(config)


async def test_a_program_that_is_no_bubblewrap_is_found_out(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(0o755)

    found = await BubblewrapBackend(binary=str(broken)).check(SandboxConfig())

    assert "the sandbox did not start: No permissions to create new namespace" in found.problem


async def test_a_sandbox_without_processes_of_its_own_is_found_out(tmp_path: Path) -> None:
    pretending = tmp_path / "bwrap"
    pretending.write_text('#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n')
    pretending.chmod(0o755)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(0o755)

    found = await BubblewrapBackend(binary=str(pretending)).check(SandboxConfig())

    assert "as its first, not 1" in found.problem


async def test_a_command_that_is_none_is_an_error_of_the_caller(bwrap: Any) -> None:
    box = await bwrap()
    for command in ([], ["a\0b"]):
        with pytest.raises(ConfigurationError, match="give a text or a list"):
            await box.run(command)
    with pytest.raises(ConfigurationError, match="seconds above 0"):
        await box.run("true", timeout=0)


@pytest.mark.slow
async def test_twenty_sandboxes_work_at_once(bwrap: Any) -> None:
    boxes = await asyncio.gather(*(bwrap() for _ in range(20)))

    results = await asyncio.gather(
        *(box.run(f"echo {place} > f; sleep 0.2; cat f", timeout=30) for place, box in enumerate(boxes))
    )

    assert [result.stdout for result in results] == [f"{place}\n" for place in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exit", "kill"])
async def test_nothing_outlives_the_process_that_opened_it(
    needs_bwrap: None, how: str, until: Any, processes_with: Any
) -> None:
    mark = f"mark-of-{how}-{os.getpid()}"
    program = f"""
import asyncio, os, signal
from graphwright.sandbox import BubblewrapBackend, SandboxConfig

async def main():
    box = await BubblewrapBackend().open(SandboxConfig())
    task = asyncio.create_task(box.run(["sh", "-c", "sleep 100; :", "{mark}"]))
    await asyncio.sleep(0.5)
    print("ready", flush=True)
    if "{how}" == "kill":
        await asyncio.sleep(100)
    os.write(1, b"leaving")
    loop = asyncio.get_running_loop()
    loop.stop()

loop = asyncio.new_event_loop()
loop.create_task(main())
loop.run_forever()
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    if how == "kill":
        assert processes_with(mark) != []
        process.kill()
    await process.wait()

    await until(lambda: not [pid for pid in processes_with(mark) if pid != process.pid])


@pytest.mark.slow
async def test_a_session_serves_while_threads_and_other_loops_are_at_work(bwrap: Any) -> None:
    stop = threading.Event()
    spinner = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    spinner.start()
    try:
        box = await bwrap()
        for number in range(30):
            assert (await box.run(f"echo {number}")).stdout == f"{number}\n"
    finally:
        stop.set()
        spinner.join()
