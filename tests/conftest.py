"""What every test stands on: no network, no provider keys, and no silent skip where CI is true."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterator
from typing import Any

import pytest

_IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")
_KEYS = ("_API_KEY", "_API_TOKEN", "_ACCESS_KEY_ID", "_SECRET_ACCESS_KEY")


@pytest.fixture(autouse=True)
def _no_real_requests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take provider keys away and refuse every connection that leaves the machine."""
    if request.node.get_closest_marker("real") is not None:
        yield
        return
    for name in [name for name in os.environ if name.endswith(_KEYS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHWRIGHT_FORBID_REAL_REQUESTS", "1")
    real_connect, real_connect_ex = socket.socket.connect, socket.socket.connect_ex
    real_lookup = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_far(host)
        return real_lookup(host, *args, **kwargs)

    def connect(self: socket.socket, address: Any) -> None:
        _refuse_far(_host_of(self, address))
        real_connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_far(_host_of(self, address))
        return real_connect_ex(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    yield


def _host_of(sock: socket.socket, address: Any) -> Any:
    return address[0] if sock.family in (socket.AF_INET, socket.AF_INET6) else None


def _refuse_far(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name and not str(name).startswith(_LOOPBACK):
        raise RuntimeError(f"a test tried to reach {name!r}; use a server on 127.0.0.1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _IN_CI and report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("may_skip") is None:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI counts as a failure: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if _IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} skipped as a whole, which CI counts as a failure: " + _reason(
            report.longrepr
        )
    return report


def _reason(longrepr: Any) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
