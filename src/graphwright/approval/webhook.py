"""Ask a web service for the decision: a signed request, answered at once or polled for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from graphwright._internal.addresses import Address, addresses_of, is_public
from graphwright._internal.optional import is_installed
from graphwright.approval.base import ApprovalDecision, ApprovalHandler, ApprovalRequest
from graphwright.approval.signing import SIGNATURE_HEADER, SignatureChecker, signed_headers
from graphwright.exceptions import ConfigurationError, GraphwrightError, MissingExtraError
from graphwright.interrupts import read_approval

if TYPE_CHECKING:
    import httpx

__all__ = ["WebhookApprovalHandler"]

_MOST_BYTES = 65_536
_SECONDS = 30.0
_DECISION_KEYS = ("approved", "modified_arguments", "reviewer_id", "reason", "timestamp", "always")
_WAITS = frozenset({202, 204, 404})
"""Statuses by which a service that is polled says that there is no decision yet."""


class WebhookApprovalHandler(ApprovalHandler):
    """Posts the request to `url` and takes the decision from the answer, or from `poll_url` while there is none.

    The body is `ApprovalRequest.to_dict()` as JSON, signed with `secret` (see `SignatureChecker`). An answer is JSON
    with `approved` in it, and may have `modified_arguments`, `reviewer_id` and `reason`; one that names another
    `request_id`, or carries a signature that does not fit, denies the call. `{"status": "pending"}` or status 202
    means that there is no decision yet.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | bytes,
        poll_url: str | None = None,
        poll_interval: float = 2.0,
        headers: Mapping[str, str] | None = None,
        http_client: Any = None,
        allow_private_networks: bool = False,
        signed_answers: bool = False,
    ) -> None:
        """Ask at `url`.

        `poll_url` may have `{request_id}` in it; else the id is added as the parameter `request_id`. `http_client` is
        an `httpx.AsyncClient` of yours, which then decides how hosts are connected to. Hosts of private networks are
        refused unless `allow_private_networks`. `signed_answers` demands a signature on every answer.

        Raises:
            ConfigurationError: an argument does not fit.
            MissingExtraError: httpx is not installed.
        """
        if not secret or not isinstance(secret, (str, bytes)):
            raise ConfigurationError("secret is empty; give the secret that the receiver checks the signature with")
        for name, value in (("url", url), ("poll_url", poll_url)):
            if value is not None:
                _check_url(name, value)
        if isinstance(poll_interval, bool) or not isinstance(poll_interval, (int, float)) or not poll_interval > 0:
            raise ConfigurationError(f"poll_interval is {poll_interval!r}; give seconds above 0")
        if http_client is None and not is_installed("httpx"):
            raise MissingExtraError("WebhookApprovalHandler", extra="http", package="httpx")
        self._url = url
        self._secret = secret
        self._poll_url = poll_url
        self._poll_interval = poll_interval
        self._headers = dict(headers or {})
        self._client = http_client
        self._allow_private = allow_private_networks
        self._signed_answers = signed_answers
        self._checker = SignatureChecker(secret)

    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return the decision of the service.

        Raises:
            GraphwrightError: it may not be asked, or gave no answer that can be trusted.
        """
        async with self._open() as client:
            decision = await self._ask(client, "POST", self._url, request, request.to_bytes())
            if decision is None and self._poll_url is None:
                raise GraphwrightError("the approval webhook gave no decision, and there is no poll_url to ask again")
            while decision is None:
                await asyncio.sleep(self._poll_interval)
                decision = await self._poll(client, request)
        return decision

    async def _poll(self, client: Any, request: ApprovalRequest) -> ApprovalDecision | None:
        import httpx

        assert self._poll_url is not None
        request_id = quote(request.request_id, safe="")
        if "{request_id}" in self._poll_url:
            url = self._poll_url.replace("{request_id}", request_id)
        else:
            url = f"{self._poll_url}{'&' if urlsplit(self._poll_url).query else '?'}request_id={request_id}"
        try:
            return await self._ask(client, "GET", url, request, b"")
        except httpx.TransportError:
            return None  # it is asked again; the policy's timeout ends this

    async def _ask(
        self, client: Any, method: str, url: str, request: ApprovalRequest, body: bytes
    ) -> ApprovalDecision | None:
        """Return the decision in the answer; `None` when there is none yet."""
        headers = {**self._headers, "X-Approval-Request-Id": request.request_id, **signed_headers(self._secret, body)}
        if body:
            headers["Content-Type"] = "application/json"
        status, answered, content = await self._send(client, method, url, headers, body)
        polled = method == "GET"
        if status in _WAITS if polled else status in (202, 204):
            return None
        if polled and status >= 500:
            return None
        if not 200 <= status < 300:
            raise GraphwrightError(f"the approval webhook answered with status {status}")
        if self._signed_answers or any(key.lower() == SIGNATURE_HEADER.lower() for key in answered):
            problem = self._checker.problem(answered, content)
            if problem:
                raise GraphwrightError(f"the answer of the approval webhook is not taken: {problem}")
        return self._read(content, request)

    def _read(self, content: bytes, request: ApprovalRequest) -> ApprovalDecision | None:
        try:
            data = json.loads(content)
        except ValueError:
            raise GraphwrightError("the answer of the approval webhook is no JSON") from None
        if not isinstance(data, dict):
            raise GraphwrightError("the answer of the approval webhook is no JSON object")
        if "approved" not in data and data.get("status") == "pending":
            return None
        named = data.get("request_id")
        if named != request.request_id and (named is not None or self._signed_answers):
            raise GraphwrightError(f"the answer of the approval webhook is for the request {named!r}")
        return read_approval({key: data[key] for key in _DECISION_KEYS if data.get(key) is not None})

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Any]:
        if self._client is not None:
            yield self._client
            return
        import httpx

        # A redirect could lead anywhere, and a proxy of the environment would connect where it likes.
        async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False) as client:
            yield client

    async def _send(
        self, client: Any, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        target = httpx.URL(url)
        addresses = await self._addresses(target)
        if self._client is not None:
            return await _exchange(client, client.build_request(method, target, headers=headers, content=body or None))
        headers = {**headers, "Host": target.netloc.decode("ascii")}
        for place, address in enumerate(addresses, 1):
            # The address goes into the URL, so what was checked is what is connected to; the name stays in the
            # Host header and in the check of the certificate.
            request = client.build_request(
                method,
                target.copy_with(host=str(address)),
                headers=headers,
                content=body or None,
                extensions={"sni_hostname": target.raw_host.decode("ascii")},
            )
            try:
                return await _exchange(client, request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if place == len(addresses):
                    raise
        raise AssertionError("a host without addresses was refused before")

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        host = url.raw_host.decode("ascii")
        if self._client is not None and self._allow_private:
            return []
        try:
            found = _number(host) or await addresses_of(host, url.port or (443 if url.scheme == "https" else 80))
        except (OSError, UnicodeError):
            raise GraphwrightError(f"there is no host {host!r} for the approval webhook") from None
        if not found or (not self._allow_private and not all(is_public(address) for address in found)):
            raise GraphwrightError(
                f"the approval webhook {host!r} leads to a private or reserved network; give a public address, or "
                "allow_private_networks=True"
            )
        return found


def _number(host: str) -> list[Address]:
    """Return the address that a host is written as; nothing for a name."""
    try:
        return [ip_address(host)]
    except ValueError:
        return []


async def _exchange(client: Any, request: Any) -> tuple[int, Mapping[str, str], bytes]:
    response: httpx.Response = await client.send(request, stream=True, follow_redirects=False)
    try:
        content = b""
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > _MOST_BYTES:
                raise GraphwrightError(f"the answer of the approval webhook is longer than {_MOST_BYTES} bytes")
    finally:
        await response.aclose()
    return response.status_code, dict(response.headers), content


def _check_url(name: str, url: Any) -> None:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{name} is {url!r}; give an http or https address")
    if parts.username or parts.password:
        raise ConfigurationError(f"{name} has a user name or password in it; send them in headers=")
