"""Make sure that a test run asks no real provider: one switch for the whole process.

While it is on, a model of a real provider refuses each request with `RealRequestForbidden` before anything is sent.
A `ScriptedModel`, a model that runs in this process, and a server on this machine are not affected. The environment
variable `GRAPHWRIGHT_FORBID_REAL_REQUESTS=1` turns it on from outside; what the program says comes first.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphwright._internal.real_requests import RealRequestForbidden, Setting, are_forbidden, set_forbidden

__all__ = [
    "RealRequestForbidden",
    "allow_real_requests",
    "forbid_real_requests",
    "no_real_requests",
    "real_requests_are_forbidden",
]


def forbid_real_requests() -> Setting:
    """Forbid requests to real providers from now on, or inside the block of `with forbid_real_requests():`."""
    return set_forbidden(True)


def allow_real_requests() -> Setting:
    """Allow requests to real providers from now on, or inside the block of `with allow_real_requests():`."""
    return set_forbidden(False)


def real_requests_are_forbidden() -> bool:
    """Whether a request to a real provider would be refused now."""
    return are_forbidden()


def no_real_requests() -> Iterator[None]:
    """Forbid real requests while a test runs; make a fixture of it in `conftest.py`.

    ```python
    forbid = pytest.fixture(autouse=True)(no_real_requests)
    ```
    """
    with forbid_real_requests():
        yield
