"""Credentials of an OpenID Connect provider, by the client credentials grant."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from graphwright._internal.optional import is_installed
from graphwright.exceptions import ConfigurationError, IdentityError, MissingExtraError
from graphwright.identity._tokens import checked
from graphwright.identity.base import Credential

__all__ = ["OIDCSource"]


class OIDCSource:
    """Asks a provider for access tokens. The token endpoint is found by the issuer's discovery document."""

    def __init__(
        self,
        issuer: str,
        *,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        audience_parameter: str = "audience",
        token_endpoint: str | None = None,
        authenticate_by: str = "basic",
        extra: Mapping[str, str] | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Prepare; nobody is asked yet.

        `audience_parameter` is how the provider wants to be told the audience: `"audience"`, or `"resource"` as in
        RFC 8707. `authenticate_by` is `"basic"` or `"post"`. `token_endpoint` leaves the discovery out. `timeout` is
        in seconds and holds for each request.

        Raises:
            ConfigurationError: an argument does not fit, or a URL is neither https nor of this machine.
            MissingExtraError: httpx is missing.
        """
        if not is_installed("httpx"):
            raise MissingExtraError("an OIDC identity", extra="http", package="httpx")
        if not client_id or not client_secret:
            raise ConfigurationError("client_id and client_secret of an OIDC identity have to be given")
        if authenticate_by not in ("basic", "post"):
            raise ConfigurationError(f"authenticate_by is {authenticate_by!r}; use 'basic' or 'post'")
        self.issuer = _safe(issuer, "issuer").rstrip("/")
        self.client_id = client_id
        self._secret = client_secret
        self._scope = scope
        self._audience_parameter = audience_parameter
        self._endpoint = None if token_endpoint is None else _safe(token_endpoint, "token_endpoint")
        self._by = authenticate_by
        self._extra = dict(extra or {})
        self._timeout = timeout

    @property
    def subject(self) -> str:
        """Who the tokens are for, where they do not say."""
        return self.client_id

    async def fetch(self, audience: str | None) -> Credential:
        """Ask for a token."""
        import httpx

        async with httpx.AsyncClient(timeout=self._timeout, follow_redirects=False) as client:
            try:
                if self._endpoint is None:
                    self._endpoint = await self._discover(client)
                form = self._form(audience)
                auth: Any = httpx.USE_CLIENT_DEFAULT
                if self._by == "basic":
                    # Both are encoded before they are joined, as RFC 6749 wants it.
                    auth = httpx.BasicAuth(quote(self.client_id, safe=""), quote(self._secret, safe=""))
                asked = time.time()
                response = await client.post(self._endpoint, data=form, auth=auth)
            except httpx.HTTPError as error:
                raise IdentityError(f"the issuer {self.issuer!r} cannot be asked: {type(error).__name__}") from error
        return self._read(response, asked)

    async def _discover(self, client: Any) -> str:
        response = await client.get(f"{self.issuer}/.well-known/openid-configuration")
        found = _object_in(response)
        if response.status_code != 200 or not found:
            raise IdentityError(f"the issuer {self.issuer!r} answers its discovery with {response.status_code}")
        if str(found.get("issuer", "")).rstrip("/") != self.issuer:
            raise IdentityError(f"the issuer {self.issuer!r} says that it is {found.get('issuer')!r}; nothing was sent")
        try:
            return _safe(str(found.get("token_endpoint", "")), "token_endpoint")
        except ConfigurationError as error:
            raise IdentityError(f"the issuer {self.issuer!r} cannot be used: {error}") from error

    def _form(self, audience: str | None) -> dict[str, str]:
        form = {"grant_type": "client_credentials", **self._extra}
        if self._scope is not None:
            form["scope"] = self._scope
        if audience is not None:
            form[self._audience_parameter] = audience
        if self._by == "post":
            form |= {"client_id": self.client_id, "client_secret": self._secret}
        return form

    def _read(self, response: Any, asked: float) -> Credential:
        found = _object_in(response)
        if response.status_code != 200:
            told = str(found.get("error", ""))[:100] if found else ""
            reason = f" ({told!r})" if told else ""
            raise IdentityError(f"the issuer {self.issuer!r} gave no token: status {response.status_code}{reason}")
        if str(found.get("token_type", "bearer")).lower() != "bearer":
            raise IdentityError(f"the issuer {self.issuer!r} gave a {found['token_type']!r} token; only bearer will do")
        lives = found.get("expires_in")
        if isinstance(lives, str) and lives.isdigit():
            lives = int(lives)
        known = isinstance(lives, (int, float)) and not isinstance(lives, bool)
        ends = asked + float(lives or 0) if known else None
        return checked(found.get("access_token"), f"the issuer {self.issuer!r}", ends)


def _object_in(response: Any) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _safe(url: str, name: str) -> str:
    """Return a URL to which a secret may be sent."""
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        raise ConfigurationError(f"the {name} {url!r} is no https URL; a secret is sent there")
    return url
