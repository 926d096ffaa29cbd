"""Post JSON to a webhook: signed, tried again where that helps, and to public addresses unless told otherwise."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from graphwright._internal import clock
from graphwright._internal.addresses import Address, addresses_of, is_public
from graphwright._internal.ids import new_call_id
from graphwright._internal.optional import is_installed
from graphwright.exceptions import ConfigurationError, GraphwrightError, MissingExtraError

if TYPE_CHECKING:
    import httpx

__all__ = ["ID_HEADER", "SIGNATURE_HEADER", "TIMESTAMP_HEADER", "Poster", "signature_of"]

ID_HEADER = "X-Webhook-Id"
TIMESTAMP_HEADER = "X-Webhook-Timestamp"
SIGNATURE_HEADER = "X-Webhook-Signature"

logger = logging.getLogger(__name__)


def signature_of(secret: str | bytes, *, message_id: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message: an HMAC with SHA-256 over `id.timestamp.body`."""
    key = secret.encode() if isinstance(secret, str) else secret
    return "v1=" + hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


class Poster:
    """Posts JSON to one address."""

    def __init__(
        self,
        url: str,
        *,
        asked_by: str,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        attempts: int = 4,
        first_wait: float = 0.5,
        allow_private_networks: bool = False,
    ) -> None:
        """Post to `url`. `timeout` and `first_wait` are seconds; each further wait is twice as long.

        Raises:
            ConfigurationError: an argument does not fit.
            MissingExtraError: httpx is not installed.
        """
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"url is {url!r}; give an http or https address")
        if parts.username or parts.password:
            raise ConfigurationError("url has a user name or password in it; send them in headers=")
        if secret is not None and (not secret or not isinstance(secret, (str, bytes))):
            raise ConfigurationError("secret is empty; give the secret that the receiver checks, or None")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ConfigurationError(f"attempts is {attempts!r}; give a whole number above 0")
        if not is_installed("httpx"):
            raise MissingExtraError(asked_by, extra="http", package="httpx")
        self._url = url
        self._secret = secret
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._attempts = attempts
        self._first_wait = first_wait
        self._allow_private = allow_private_networks

    async def post(self, data: Any, *, message_id: str = "") -> None:
        """Post `data` as JSON. Every attempt has the same id, so that a receiver can tell a repeat.

        Raises:
            GraphwrightError: the host may not be reached, or did not take it.
        """
        body = json.dumps(data, default=str, ensure_ascii=False).encode()
        message_id = message_id or new_call_id()
        for attempt in range(1, self._attempts + 1):
            problem, final = await self._try(body, message_id)
            if problem is None:
                return
            if final or attempt == self._attempts:
                raise GraphwrightError(f"the webhook did not take message {message_id}: {problem}")
            logger.info("the webhook failed, attempt %d: %s", attempt, problem)
            await clock.sleep(self._first_wait * 2 ** (attempt - 1))

    async def _try(self, body: bytes, message_id: str) -> tuple[str | None, bool]:
        """Return what went wrong, and whether it will stay so."""
        import httpx

        url = httpx.URL(self._url)
        try:
            addresses = await self._addresses(url)
            status = await self._send(url, addresses, self._signed(body, message_id), body)
        except (httpx.TransportError, OSError, UnicodeError) as error:
            return f"{type(error).__name__}: {error}", False
        if 200 <= status < 300:
            return None, False
        return f"status {status}", status < 500 and status not in (408, 409, 425, 429)

    def _signed(self, body: bytes, message_id: str) -> dict[str, str]:
        timestamp = str(int(time.time()))
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            ID_HEADER: message_id,
            TIMESTAMP_HEADER: timestamp,
        }
        if self._secret is not None:
            headers[SIGNATURE_HEADER] = signature_of(
                self._secret, message_id=message_id, timestamp=timestamp, body=body
            )
        return headers

    async def _send(self, url: httpx.URL, addresses: list[Address], headers: dict[str, str], body: bytes) -> int:
        import httpx

        headers = {**headers, "Host": url.netloc.decode("ascii")}
        # A redirect could lead anywhere, and a proxy of the environment would connect where it likes.
        async with httpx.AsyncClient(timeout=self._timeout, follow_redirects=False, trust_env=False) as client:
            for place, address in enumerate(addresses, 1):
                # The address goes into the URL, so what was checked is what is connected to.
                request = client.build_request(
                    "POST",
                    url.copy_with(host=str(address)),
                    headers=headers,
                    content=body,
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                )
                try:
                    async with asyncio.timeout(self._timeout):
                        response = await client.send(request, stream=True)
                        await response.aclose()
                        return response.status_code
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    if place == len(addresses):
                        raise
        raise AssertionError("a host without addresses was refused before")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        host = url.raw_host.decode("ascii")
        try:
            found = [ip_address(host)]
        except ValueError:
            found = await addresses_of(host, url.port or (443 if url.scheme == "https" else 80))
        if not found or (not self._allow_private and not all(is_public(address) for address in found)):
            raise GraphwrightError(
                f"the webhook {host!r} leads to a private or reserved network; give a public address, or "
                "allow_private_networks=True"
            )
        return found
