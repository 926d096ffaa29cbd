"""The switch that forbids requests to real model providers, read by whoever is about to send one."""

from __future__ import annotations

import os
from ipaddress import ip_address
from types import TracebackType
from typing import cast
from urllib.parse import urlsplit

__all__ = ["RealRequestForbidden", "Setting", "are_forbidden", "check_allowed", "set_forbidden"]

VARIABLE = "GRAPHWRIGHT_FORBID_REAL_REQUESTS"
_OFF = frozenset({"", "0", "false", "no", "off"})


class RealRequestForbidden(RuntimeError):
    """A model of a real provider was about to be asked while real requests are forbidden; nothing was sent."""

    retryable = False

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message)
        self.model = model


_forbidden: bool | None = None
"""What the program said; `None` leaves it to the environment variable."""


class Setting:
    """A change of the switch, in force from now on; as a context manager, until the block ends."""

    def __init__(self, forbidden: bool) -> None:
        global _forbidden
        self._before = _forbidden
        _forbidden = forbidden

    def __enter__(self) -> Setting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _forbidden
        _forbidden = self._before


def set_forbidden(forbidden: bool) -> Setting:
    """Forbid or allow real requests, for the whole process."""
    return Setting(forbidden)


def are_forbidden() -> bool:
    """Whether real requests are forbidden: by the program, else by the environment variable."""
    if _forbidden is not None:
        return _forbidden
    return os.environ.get(VARIABLE, "").strip().lower() not in _OFF


def check_allowed(model_name: str, *, base_url: str | None) -> None:
    """Refuse a request to `model_name` while real requests are forbidden; call it before anything is sent.

    A `base_url` on this machine (localhost or a loopback address) is always allowed; `None` is the provider's own.

    Raises:
        RealRequestForbidden: the request would leave this machine.
    """
    if not are_forbidden() or (base_url is not None and _is_loopback(base_url)):
        return
    where = f" at {_host(base_url)!r}" if base_url else ""
    raise RealRequestForbidden(
        f"a request to model {model_name!r}{where} is forbidden here, and nothing was sent; use a ScriptedModel or a "
        f"server on this machine, or allow it with allow_real_requests() (and without {VARIABLE} in the environment)",
        model=model_name,
    )


def _is_loopback(url: str) -> bool:
    host = _host(url).rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return cast(bool, (mapped or address).is_loopback)


def _host(url: str) -> str:
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return ""
