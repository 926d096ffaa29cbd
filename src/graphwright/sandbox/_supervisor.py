"""Run commands one after the other as the first process of a sandbox, told by lines of JSON on the standard input.

The text of this file runs inside of the sandbox, with what Python is there, so it imports the standard library only.
Being process 1 of its namespace, it cannot be killed or stopped by a command, and after each it kills what is left.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

TICK = 0.05
CHUNK = 65536


def main() -> None:
    """Serve requests until the input ends."""
    # Not dumpable: commands of the same user cannot open its descriptors or read its memory.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    limits = json.loads(sys.argv[1])
    replies = os.dup(1)
    os.set_inheritable(replies, False)
    requests = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    reply(replies, {"ready": os.getpid()})
    for line in requests:
        request = json.loads(line)
        try:
            answer = Command(request, limits).run()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            stopping()
            answer = {"exit": 127, "out": "", "err": text64(str(error).encode()), "cut": False, "stopped": ""}
        reply(replies, answer)


def reply(descriptor: int, value: dict[str, Any]) -> None:
    """Write one line, all of it."""
    data = json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def text64(data: bytes) -> str:
    """Return bytes as text that fits a line."""
    return base64.b64encode(data).decode()


def stopping() -> None:
    """Kill and reap every other process of the namespace."""
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            return


class Command:
    """One command, with its output so far."""

    def __init__(self, request: dict[str, Any], limits: dict[str, Any]) -> None:
        self.limits = limits
        self.request = request
        self.input = base64.b64decode(request["stdin"])
        self.kept = {"out": bytearray(), "err": bytearray()}
        self.cut = False
        self.status: int | None = None

    def run(self) -> dict[str, Any]:
        """Return how it ended."""
        process = subprocess.Popen(
            self.request["argv"],
            cwd=self.request["cwd"],
            env=self.request["env"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=self.confine,
            bufsize=0,
        )
        stopped = self.watch(process)
        stopping()
        # The last reaping may have taken the status away from `process`, which then knows nothing of it.
        return {
            "exit": None if stopped else self.status,
            "out": text64(bytes(self.kept["out"])),
            "err": text64(bytes(self.kept["err"])),
            "cut": self.cut,
            "stopped": stopped,
        }

    def confine(self) -> None:
        """Set the limits of the command; it cannot raise them again."""
        limits = self.limits
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        rules = [("CORE", 0), ("NOFILE", 1024)]
        if limits["own"]:
            rules += [("NPROC", limits["pids"]), ("AS", limits["memory"])]
        for name, most in rules:
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))

    def watch(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the end; return why it was stopped, or nothing."""
        ends = time.monotonic() + self.request["timeout"]
        with selectors.DefaultSelector() as pipes:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            for name, pipe in (("out", process.stdout), ("err", process.stderr)):
                os.set_blocking(pipe.fileno(), False)
                pipes.register(pipe, selectors.EVENT_READ, name)
            opened = {"in": process.stdin, "out": process.stdout, "err": process.stderr}
            os.set_blocking(process.stdin.fileno(), False)
            pipes.register(process.stdin, selectors.EVENT_WRITE, "in")
            while True:
                for key, _ in pipes.select(TICK if pipes.get_map() else 0):
                    if not self.move(key):
                        pipes.unregister(key.fileobj)
                        opened[key.data].close()
                if self.ended(process):
                    self.drain(process)
                    return ""
                if not pipes.get_map():
                    time.sleep(TICK / 10)
                if time.monotonic() > ends:
                    return "timeout"
                if self.limits["own"] and memory_used() > self.limits["memory"]:
                    return "memory"

    def ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Reap what has ended; return whether the command has."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == process.pid:
                self.status = process.returncode = os.waitstatus_to_exitcode(status)
                return True
            if pid == 0:
                return False

    def move(self, key: selectors.SelectorKey) -> bool:
        """Move some bytes of one pipe; return whether there is more to come."""
        try:
            if key.data == "in":
                self.input = self.input[os.write(key.fd, self.input[:CHUNK]) :] if self.input else b""
                return bool(self.input)
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self.keep(key.data, data)
        return bool(data)

    def keep(self, name: str, data: bytes) -> None:
        """Add output, up to the limit."""
        kept = self.kept[name]
        room = self.limits["output"] - len(kept)
        kept += data[:room]
        self.cut = self.cut or len(data) > room

    def drain(self, process: subprocess.Popen[bytes]) -> None:
        """Take what the command had written when it ended; what others write from now on is not its own."""
        assert process.stdout is not None
        assert process.stderr is not None
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            with contextlib.suppress(OSError, ValueError):
                for _ in range(64):
                    data = os.read(pipe.fileno(), CHUNK)
                    if not data:
                        break
                    self.keep(name, data)


def memory_used() -> int:
    """Return the bytes of memory that the other processes have for themselves."""
    page = resource.getpagesize()
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError, ValueError), open("/proc/" + name + "/statm") as file:
                sizes = file.read().split()
                total += (int(sizes[1]) - int(sizes[2])) * page
    return total


if __name__ == "__main__":
    main()
