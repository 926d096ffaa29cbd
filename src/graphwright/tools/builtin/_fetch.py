"""Ask a web server on behalf of a model: every hop is checked, and secrets stay with the origin they were meant for."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphwright._internal.addresses import Address, addresses_of, is_public
from graphwright._internal.optional import is_installed
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError, MissingExtraError, ToolError
from graphwright.tools.builtin._base import checked_count, checked_seconds

if TYPE_CHECKING:
    import httpx

# What a redirect to another origin keeps; every other header may be a secret.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent"})
_OF_THE_BODY = frozenset({"content-type", "content-language"})
# Those that say how the message is sent, and so belong to the client.
_RESERVED_NAMES = """
    accept-encoding connection content-length expect host keep-alive proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade
"""
_RESERVED = frozenset(_RESERVED_NAMES.split())
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

Origin = tuple[str, bytes, int]
"""Scheme, host and port."""


@dataclass(slots=True)
class Request:
    """What is asked."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back at the end of the redirects."""

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    encoding: str


class Fetcher:
    """The way of one tool to the web, within limits that its developer set."""

    def __init__(
        self,
        *,
        what: str,
        allow_private: bool = False,
        allow_hosts: Iterable[str] = (),
        only_hosts: Iterable[str] | None = None,
        credentials: Mapping[str, Mapping[str, str]] | None = None,
        max_bytes: int = 1_000_000,
        request_timeout: float = 30.0,
        max_redirects: int = 5,
        user_agent: str = "graphwright",
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        if not is_installed("httpx"):
            raise MissingExtraError(what, extra="http", package="httpx")
        self._allow_private = allow_private
        self._allow_hosts = _host_names(allow_hosts, "allow_hosts")
        self._only_hosts = None if only_hosts is None else _host_names(only_hosts, "only_hosts")
        self._credentials = {
            _origin_of(_parsed_origin(key)): {name.lower(): value for name, value in headers.items()}
            for key, headers in (credentials or {}).items()
        }
        self._max_bytes = checked_count(max_bytes, "max_bytes")
        self._seconds = checked_seconds(request_timeout, "request_timeout")
        self._max_redirects = max_redirects
        self._user_agent = user_agent
        self._tls_context = tls_context

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import httpx

        return self._tls_context or httpx.create_ssl_context(trust_env=False)

    async def fetch(self, request: Request) -> Answer:
        """Ask, follow redirects, and return the answer.

        Raises:
            ToolError: the address may not be asked, or there was no answer in time.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(request)
        except TimeoutError:
            raise ToolError(f"{request.url!r} did not answer within {self._seconds:g} s") from None

    async def _follow(self, request: Request) -> Answer:
        import httpx

        _check_headers(request.headers)
        url = _parsed(request.url)
        if request.params:
            url = url.copy_merge_params(request.params)
        method, headers, body = request.method, dict(request.headers), request.body
        headers.setdefault("user-agent", self._user_agent)
        credentials: Mapping[Origin, Mapping[str, str]] = self._credentials
        tls = await run_in_thread(lambda: self._tls)  # reading the certificates takes a while the first time
        for _ in range(self._max_redirects + 1):
            async with httpx.AsyncClient(
                verify=tls, trust_env=False, follow_redirects=False, timeout=self._seconds
            ) as client:  # one a hop: its cookies and connections belong to one origin
                answer, location = await self._ask(
                    client, method, url, {**headers, **credentials.get(_origin_of(url), {})}, body
                )
            if location is None:
                return answer
            following = _parsed(_joined(url, location))
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
                headers = {key: value for key, value in headers.items() if key.lower() not in _OF_THE_BODY}
            if _origin_of(following) != _origin_of(url):
                if body is not None:
                    raise ToolError(
                        f"{str(url)!r} redirects to another origin, {str(following)!r}, and the body was not "
                        "sent there; ask that address yourself if it may have it"
                    )
                headers = {key: value for key, value in headers.items() if key.lower() in _HARMLESS}
                # Nor does a stranger who redirects to an origin act with what was given for it.
                credentials = {}
            url = following
        raise ToolError(f"{request.url!r} redirects more than {self._max_redirects} times; ask the last address itself")

    async def _ask(
        self, client: httpx.AsyncClient, method: str, url: httpx.URL, headers: dict[str, str], body: bytes | None
    ) -> tuple[Answer, str | None]:
        import httpx

        sent = {**headers, "Host": url.netloc.decode("ascii"), "Accept-Encoding": "gzip, deflate"}
        problem: Exception | None = None
        for address in await self._addresses(url):
            # The address goes into the URL, so what was checked is what is connected to; the name stays in the
            # Host header and in the check of the certificate.
            request = client.build_request(
                method,
                url.copy_with(host=str(address)),
                headers=sent,
                content=body,
                extensions={"sni_hostname": url.raw_host.decode("ascii")},
            )
            try:
                response = await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
                continue
            except httpx.HTTPError as error:
                raise _unanswered(url, error) from None
            try:
                return await self._read(response, url)
            except httpx.HTTPError as error:
                raise _unanswered(url, error) from None
            finally:
                await response.aclose()
        raise _unanswered(url, problem)

    async def _read(self, response: httpx.Response, url: httpx.URL) -> tuple[Answer, str | None]:
        location = response.headers.get("location") if response.status_code in _REDIRECTS else None
        body, truncated = b"", False
        if location is None:
            body, truncated = await _bounded(response, self._max_bytes)
        answer = Answer(
            status=response.status_code,
            url=str(url),
            headers={key.lower(): value for key, value in response.headers.items()},
            body=body,
            truncated=truncated,
            encoding=response.charset_encoding or "utf-8",
        )
        return answer, location

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        host, port = url.raw_host.decode("ascii").lower(), url.port or (443 if url.scheme == "https" else 80)
        names = {host, f"{host}:{port}"}
        if self._only_hosts is not None and not names & self._only_hosts:
            raise ToolError(f"{host!r} may not be asked by this tool; there are {', '.join(sorted(self._only_hosts))}")
        try:
            found = await addresses_of(host, port)
        except (OSError, UnicodeError):
            raise ToolError(f"there is no host {host!r}; check the address") from None
        if not self._allow_private and not names & self._allow_hosts:
            closed = [address for address in found if not is_public(address)]
            if closed or not found:
                raise ToolError(
                    f"{host!r} leads to a private or reserved network, which this tool may not reach; "
                    "use an address of the public internet"
                )
        return found


async def _bounded(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """Return the decoded body up to `limit` bytes; what is compressed is never unpacked further than that."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    body = bytearray()
    raw: Any = response.aiter_raw(65_536)
    async with aclosing(raw):
        pieces: Any = raw if coding in ("", "identity") else _unpacked(raw, coding, limit)
        async with aclosing(pieces):
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    return bytes(body[:limit]), True
    return bytes(body), False


async def _unpacked(raw: AsyncIterator[bytes], coding: str, limit: int) -> AsyncGenerator[bytes, None]:
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ToolError(f"the answer is encoded as {coding!r}, which was not asked for and cannot be read")
    unpacker = None if coding == "deflate" else zlib.decompressobj(zlib.MAX_WBITS | 16)
    left = limit + 1
    try:
        async for piece in raw:
            if unpacker is None:
                # Some servers send the bare stream, without the header that zlib's has.
                zlib_header = piece[:1] and piece[0] & 0x0F == 8
                unpacker = zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
            out = unpacker.decompress(piece, left)
            left -= len(out)
            yield out
            if left <= 0 or unpacker.eof:
                return
    except zlib.error:
        raise ToolError(f"the answer says that it is {coding}, and it is not") from None


def _parsed(text: str) -> httpx.URL:
    import httpx

    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError, TypeError):
        raise ToolError(f"{text[:200]!r} is no URL; give one of the form https://host/path") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolError(f"{text[:200]!r} is not of the web; give a URL that begins with http:// or https://")
    if url.userinfo:
        raise ToolError("the URL holds a user name or password; leave them out")
    return url.copy_with(fragment=None)


def _joined(url: httpx.URL, location: str) -> str:
    import httpx

    try:
        return str(url.join(location))
    except (httpx.InvalidURL, ValueError):
        raise ToolError(f"{str(url)!r} redirects to {location[:200]!r}, which is no URL") from None


def _parsed_origin(text: str) -> httpx.URL:
    try:
        return _parsed(text)
    except ToolError as error:
        raise ConfigurationError(f"credentials names {text!r}: {error}") from None


def _origin_of(url: httpx.URL) -> Origin:
    return url.scheme, url.raw_host.lower(), url.port or (443 if url.scheme == "https" else 80)


def _unanswered(url: httpx.URL, error: Exception | None) -> ToolError:
    return ToolError(f"{str(url)!r} gave no answer: {type(error).__name__}")


def _host_names(hosts: Iterable[str], keyword: str) -> frozenset[str]:
    if isinstance(hosts, str):
        raise ConfigurationError(f"{keyword} is {hosts!r}; give a list of hosts")
    names = frozenset(host.lower() for host in hosts)
    bad = sorted(name for name in names if "/" in name or not name)
    if bad:
        raise ConfigurationError(f"{keyword} holds {bad[0]!r}; give 'host' or 'host:port'")
    return names


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if name.lower() in _RESERVED:
            raise ToolError(f"header {name!r} is set by this tool itself; leave it out")
        if not name.isascii() or any(char in name + value for char in "\r\n\0") or not value.isascii():
            raise ToolError(f"header {name!r} holds characters that no header can; use one line of ASCII")
