"""Decide what a request to a server is authenticated with, and refuse to send it where that cannot be had."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphwright._internal.threads import run_in_thread
from graphwright.caller import get_current_caller
from graphwright.exceptions import MCPCredentialError
from graphwright.mcp.client.servers import HTTPServerSpec, ServerSpec

__all__ = ["Credential", "SessionKey", "TokenSource", "credential_for"]

_TOKEN = re.compile(r"[\x21-\x7e]+")


class TokenSource(Protocol):
    """Where tokens that stand for the agent come from, as an identity with a provider behind it."""

    async def token(self, audience: str | None, *, refresh: bool = False) -> str:
        """Return a token that is valid now; with `refresh`, one that was not handed out before.

        It is asked before every request, so it keeps a token until it is about to end.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What a session may be shared by: two requests with different keys never meet in one."""

    server: str

    credential: str = ""
    """A digest of the credential; empty where there is none."""

    caller: str | None = None
    """The caller's isolation key; `None` for the agent itself and for anonymous callers."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What is sent with each request of one session."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All headers of the spec, and those that authenticate."""

    renewable: bool = False
    """Whether asking again can bring another one."""

    source: str = "none"
    """Whose it is, in words for an error message."""

    def key(self, server: str, caller: str | None) -> SessionKey:
        """Return the key of the sessions that this credential opens."""
        secret = self.headers.get("Authorization", "")
        digest = hashlib.sha256(secret.encode()).hexdigest() if secret else ""
        return SessionKey(server, digest, caller)


async def credential_for(
    name: str, spec: ServerSpec, identity: TokenSource | None, *, as_caller: bool = True, refresh: bool = False
) -> Credential:
    """Return what the current request to a server is sent with.

    The caller's own token comes first, where the server takes it; then the server's own; then the agent's
    identity. `as_caller=False` leaves the caller out, as for finding out what a server has.

    Raises:
        MCPCredentialError: a credential is due and cannot be had.
    """
    if not isinstance(spec, HTTPServerSpec):
        return Credential()
    caller = get_current_caller() if as_caller else None
    if caller is not None and caller.bearer_token and spec.forwards_caller_token:
        token = _checked(caller.bearer_token, name, "the caller's bearer token")
        return Credential(_headers(spec, token, api_key=False), source="the caller's bearer token")
    if spec.bearer_token is not None:
        token = _checked(spec.bearer_token.get_secret_value(), name, "bearer_token")
        return Credential(_headers(spec, token), source="the server's bearer_token")
    if spec.token_provider is not None:
        token = await _asked(name, spec, "token_provider", _provided(spec.token_provider, refresh=refresh))
        return Credential(_headers(spec, token), renewable=True, source="the token that token_provider returned")
    if identity is not None and not any(key.lower() == "authorization" for key in spec.headers):
        token = await _asked(name, spec, "the agent's identity", identity.token(spec.audience, refresh=refresh))
        return Credential(_headers(spec, token), renewable=True, source="the credential of the agent's identity")
    return Credential(_headers(spec, None), source="what its spec says")


def _headers(spec: HTTPServerSpec, token: str | None, *, api_key: bool = True) -> dict[str, str]:
    headers = dict(spec.headers)
    if token is not None:
        for key in [key for key in headers if key.lower() == "authorization"]:
            del headers[key]
        headers["Authorization"] = f"Bearer {token}"
    if api_key and spec.api_key is not None:
        headers["x-api-key"] = spec.api_key.get_secret_value()
    return headers


async def _provided(provider: Callable[..., Any], *, refresh: bool) -> Any:
    options = {"refresh": True} if refresh and _takes_refresh(provider) else {}
    target = provider if inspect.isroutine(provider) else getattr(provider, "__call__", provider)  # noqa: B004
    if inspect.iscoroutinefunction(target):
        return await provider(**options)
    value = await run_in_thread(lambda: provider(**options))
    return await value if inspect.isawaitable(value) else value


def _takes_refresh(provider: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(provider).parameters
    except (TypeError, ValueError):
        return False
    return "refresh" in parameters or any(entry.kind is entry.VAR_KEYWORD for entry in parameters.values())


async def _asked(name: str, spec: HTTPServerSpec, what: str, asking: Any) -> str:
    try:
        async with asyncio.timeout(spec.connect_timeout):
            token = await asking
    except TimeoutError as error:
        raise MCPCredentialError(
            f"{what} gave no credential for the MCP server {name!r} within {spec.connect_timeout:g} s; "
            "nothing was sent",
            server=name,
            retryable=True,
        ) from error
    except Exception as error:  # foreign code: whatever is wrong with it, the request is not sent
        raise MCPCredentialError(
            f"{what} gave no credential for the MCP server {name!r} ({type(error).__name__}); nothing was sent",
            server=name,
            retryable=True,
        ) from error
    return _checked(token, name, what)


def _checked(token: Any, name: str, what: str) -> str:
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        kind = "an empty text" if token == "" else f"{type(token).__name__} that no header can hold"
        raise MCPCredentialError(
            f"{what} for the MCP server {name!r} is {kind}; nothing was sent. Give a token as a text without spaces",
            server=name,
        )
    return token
