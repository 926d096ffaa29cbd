"""Loopback stand-ins for what gives agents their credentials."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import BasicAuth, web


def jwt(*, lives: float = 300.0, **claims: Any) -> str:
    """Return a token that nobody has signed."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': time.time() + lives, **claims})}.c2ln"


@dataclass
class Issuer:
    """An OpenID Connect provider."""

    url: str = ""
    lives: float = 300.0
    opaque: bool = False
    says_it_is: str | None = None
    status: int = 200
    asked: list[dict[str, str]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)

    async def discover(self, request: web.Request) -> web.Response:
        endpoint = f"{self.url}/token"
        return web.json_response({"issuer": self.says_it_is or self.url, "token_endpoint": endpoint})

    async def token(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        header = request.headers.get("Authorization")
        if header:
            decoded = BasicAuth.decode(header)
            form |= {"client_id": unquote(decoded.login), "client_secret": unquote(decoded.password)}
        self.asked.append(form)
        if self.status != 200 or form.get("client_secret") != "s:cret/":
            return web.json_response({"error": "invalid_client", "secret": "s:cret/"}, status=max(self.status, 401))
        number = len(self.given)
        claims = {"sub": "agent-7", "aud": form.get("audience"), "n": number}
        self.given.append(f"opaque-{number}" if self.opaque else jwt(lives=self.lives, **claims))
        body = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.lives}
        return web.json_response(body)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", found.discover)
    app.router.add_post("/token", found.token)
    async with listening(app) as url:
        found.url = url
        yield found


class listening:
    """Serve an application on a free port of the loopback."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@pytest.fixture
def token() -> Any:
    return jwt


@pytest.fixture
def listen() -> type[listening]:
    return listening
