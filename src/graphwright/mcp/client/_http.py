"""Reach a server over HTTP so that one failed request fails alone, and says why."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, cast

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from graphwright.mcp.client.exchange import current_exchange
from graphwright.mcp.client.servers import HTTPServerSpec

__all__ = ["http_transport"]

# These happen before a byte of the request has left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@asynccontextmanager
async def http_transport(
    spec: HTTPServerSpec, headers: Mapping[str, str], on_broken: Callable[[Exception], None]
) -> AsyncIterator[Any]:
    """Enter the streams of a connection whose requests all carry `headers`."""
    timeout = httpx2.Timeout(spec.connect_timeout, read=None)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
    if spec.transport == "sse":

        def client(**_: Any) -> httpx2.AsyncClient:
            return _Client(headers=headers, timeout=timeout, limits=limits, verify=_tls(), on_broken=on_broken)

        async with sse_client(spec.url, httpx_client_factory=cast("Any", client)) as streams:
            yield streams
        return
    async with (
        _Client(headers=headers, timeout=timeout, limits=limits, verify=_tls()) as http,
        streamable_http_client(spec.url, http_client=http) as streams,
    ):
        yield streams


@cache
def _tls() -> ssl.SSLContext:
    """Return the one context of all connections: loading the certificates takes longer than a call."""
    return httpx2.create_ssl_context()


class _Client(httpx2.AsyncClient):
    """Turn a POST that fails into an answer that says so.

    The SDK runs all requests of a connection in one task group: an exception of one would end the others, too.
    """

    def __init__(self, *, on_broken: Callable[[Exception], None] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._on_broken = on_broken

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, noting in the current exchange what became of it."""
        exchange = current_exchange.get()
        if request.method not in ("POST", "DELETE") or exchange is None:
            response = await super().send(request, **options)
            if exchange is not None and response.status_code >= 400 and exchange.status is None:
                exchange.status = response.status_code
            return response
        try:
            response = await super().send(request, **options)
        except (httpx2.TransportError, OSError) as error:
            exchange.error = error
            exchange.sent = not isinstance(error, _NOT_SENT)
            return self._failed(request, error)
        exchange.status = response.status_code
        if response.status_code >= 400 and self._on_broken is not None:
            self._on_broken(httpx2.HTTPStatusError(f"HTTP {response.status_code}", request=request, response=response))
        elif response.status_code < 400 and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Body(response.stream)
        return response

    def _failed(self, request: httpx2.Request, error: Exception) -> httpx2.Response:
        if self._on_broken is not None:
            self._on_broken(error)
        # 405 is how a server says that a session need not be ended, which the SDK passes over in silence.
        return httpx2.Response(405 if request.method == "DELETE" else 503, request=request)


class _Body(httpx2.AsyncByteStream):
    """A body that just ends where its connection breaks."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except (httpx2.TransportError, OSError) as error:
            exchange = current_exchange.get()
            if exchange is not None:
                exchange.error = error

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._stream.aclose()
