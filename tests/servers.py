"""Real PostgreSQL, Redis and MariaDB servers: on a free port of 127.0.0.1, with a data folder that goes away."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_QUICK_AND_PLAIN = ["--no-sync", "-E", "UTF8", "--locale=C"]


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running PostgreSQL server with one empty database."""

    host: str
    port: int
    user: str
    password: str
    database: str

    @property
    def dsn(self) -> str:
        """The address with its login."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A running Redis server that holds nothing."""

    host: str
    port: int
    password: str

    @property
    def url(self) -> str:
        """The address with its login."""
        return f"redis://:{self.password}@{self.host}:{self.port}/0"


@dataclass(frozen=True, slots=True)
class MySQLServer:
    """A running MariaDB server with one empty database."""

    host: str
    port: int
    user: str
    password: str
    database: str

    @property
    def dsn(self) -> str:
        """The address with its login."""
        return f"mysql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start PostgreSQL and yield it; skip the test where it is not installed."""
    initdb, postgres = _postgres_binary("initdb"), _postgres_binary("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed; install postgresql (Debian, Ubuntu: apt-get install postgresql)")
    user = _unprivileged_user("postgres", "nobody")
    with _data_folder("graphwright-pg-", user) as folder:
        secret = folder / "password"
        secret.write_text("secret")
        _give_to(secret, user)
        data = folder / "data"
        secret_option = f"--pwfile={secret}"
        made = subprocess.run(
            [initdb, "-D", str(data), "-U", "tester", "-A", "scram-sha-256", secret_option, *_QUICK_AND_PLAIN],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **_as_user(user),
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed: {made.stderr}")
        # No socket file: its path may be longer than the system allows.
        settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB"]
        settings += ["unix_socket_directories=", "listen_addresses=127.0.0.1", "max_connections=60"]
        options = [part for setting in settings for part in ("-c", setting)]
        with _started(lambda port: [postgres, "-D", str(data), "-p", str(port), *options], folder, user) as port:
            yield PostgresServer("127.0.0.1", port, "tester", "secret", "postgres")


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Start Redis (or Valkey) and yield it; skip the test where it is not installed."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        pytest.skip("Redis is not installed; install redis-server (Debian, Ubuntu: apt-get install redis-server)")
    user = _unprivileged_user("redis", "nobody")
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", "secret"]
    with (
        _data_folder("graphwright-redis-", user) as folder,
        _started(lambda port: [binary, "--port", str(port), "--dir", str(folder), *options], folder, user) as port,
    ):
        yield RedisServer("127.0.0.1", port, "secret")


@contextmanager
def mysql_server() -> Iterator[MySQLServer]:
    """Start MariaDB and yield it; skip the test where it is not installed."""
    install, binary = shutil.which("mariadb-install-db"), _system_binary("mariadbd")
    if install is None or binary is None:
        pytest.skip("MariaDB is not installed; install mariadb-server (Debian, Ubuntu: apt-get install mariadb-server)")
    user = _unprivileged_user("mysql", "nobody")
    with _data_folder("graphwright-my-", user) as folder:
        data = folder / "data"
        made = subprocess.run(
            [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **_as_user(user),
        )
        if made.returncode != 0:
            raise RuntimeError(f"mariadb-install-db failed: {made.stdout}{made.stderr}")
        start = folder / "start.sql"
        start.write_text(
            "CREATE DATABASE tests;\nCREATE USER tester@'%' IDENTIFIED BY 'secret';\nGRANT ALL ON *.* TO tester@'%';\n"
        )
        _give_to(start, user)
        options = [f"--datadir={data}", f"--socket={folder}/s", "--bind-address=127.0.0.1", f"--init-file={start}"]
        options += ["--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"]
        command = [binary, "--no-defaults", *options]
        with _started(lambda port: [*command, f"--port={port}"], folder, user, ready="ready for connections") as port:
            yield MySQLServer("127.0.0.1", port, "tester", "secret", "tests")


@contextmanager
def _started(
    command: Callable[[int], list[str]],
    folder: Path,
    user: pwd.struct_passwd | None,
    *,
    ready: str = "eady to accept connections",
) -> Iterator[int]:
    """Run a server until the block ends; another port is tried when the free one was taken in between."""
    log = folder / "log"
    for _ in range(3):
        port = _free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(port), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, **_as_user(user)
            )
        if _answers(process, port, log, ready):
            break
        _stop(process)
    else:
        raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
    try:
        yield port
    finally:
        _stop(process)


def _answers(process: subprocess.Popen[bytes], port: int, log: Path, ready: str) -> bool:
    """Wait until the server that was started says that it is ready and takes connections."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        # The log is looked at too, since a stranger may answer on the port.
        if ready in log.read_text(errors="replace"):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return True
            except OSError:
                pass
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    # SIGINT: PostgreSQL ends its sessions and stops at once. MariaDB does not know it.
    process.send_signal(signal.SIGTERM if "mariadbd" in str(process.args) else signal.SIGINT)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_binary(name: str) -> str | None:
    found = shutil.which(name)
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = sorted(versions, key=lambda path: (len(path.parts[-3]), path.parts[-3]))
    # The files beside a wrapper on the path may be missing, so the real place is preferred.
    return str(newest[-1]) if newest else found


def _system_binary(name: str) -> str | None:
    # Where servers are kept is not on the path of every user.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/libexec")


def _unprivileged_user(*names: str) -> pwd.struct_passwd | None:
    """Return whom the server is to run as: these refuse, or ought, to run as root. `None` is the current user."""
    if os.geteuid() != 0:
        return None
    for name in names:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip(f"the tests run as root, and there is no user to run a server as; add one of {', '.join(names)}")


def _as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    if user is None:
        return {"env": environment}
    return {"env": environment, "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _data_folder(prefix: str, user: pwd.struct_passwd | None) -> Iterator[Path]:
    # The system's own temporary folder: a folder inside a test's one may be closed to another user.
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        _give_to(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _give_to(path: Path, user: pwd.struct_passwd | None) -> None:
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)
