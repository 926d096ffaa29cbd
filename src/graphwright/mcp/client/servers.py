"""Say which MCP servers there are: typed specs, plain dicts, or an `mcp.json` as other clients write it."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from graphwright.exceptions import ConfigurationError

__all__ = ["HTTPServerSpec", "ServerSpec", "StdioServerSpec", "as_servers", "as_spec"]


class _SpecError(ConfigurationError):
    """The fields of one spec do not fit."""

    def __init__(self, kind: str, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(f"{kind} cannot be made: {'; '.join(problems)}")


class _Spec(BaseModel):
    """What all servers have in common. Immutable; a field that does not exist is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    connect_timeout: float = Field(default=30.0, gt=0)
    """Seconds to wait for a connection, and for what the server offers."""

    call_timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for the answer to one request. The clock stands still while a person is asked."""

    idle_timeout: float = Field(default=300.0, gt=0)
    """Seconds after which an unused session with the server is closed."""

    protocol: Literal["auto", "legacy"] = "auto"
    """`"auto"` speaks the newest version the server has; `"legacy"` leaves out the question for it."""

    per_caller: bool | None = None
    """Whether each caller gets a session of their own; `None` means yes for HTTP and no for stdio."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _SpecError(type(self).__name__, _problems(error)) from None

    @property
    def isolates_callers(self) -> bool:
        """Whether two callers never share a session with this server."""
        return isinstance(self, HTTPServerSpec) if self.per_caller is None else self.per_caller


class StdioServerSpec(_Spec):
    """A server that is started as a child process and spoken to over its standard input and output."""

    command: str = Field(min_length=1)
    """The program; looked up in the `PATH` the server gets."""

    args: list[str] = Field(default_factory=list)

    env: dict[str, str] = Field(default_factory=dict, repr=False)
    """Variables added to the few that are inherited (`PATH`, `HOME`, `USER` and the like)."""

    cwd: str | Path | None = None

    keep_alive: bool = True
    """False starts the server anew for each request and ends it afterwards."""


class HTTPServerSpec(_Spec):
    """A server that is reached over HTTP."""

    url: str

    transport: Literal["http", "streamable-http", "sse"] = "http"
    """`"http"` and `"streamable-http"` are the same; `"sse"` is the older way with two endpoints."""

    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Sent with every request."""

    auth: Any = Field(default=None, repr=False)
    """Ignored; use `bearer_token` or `token_provider`."""

    audience: str | None = None
    """For whom a credential of the agent's identity is asked; `None` leaves it to the identity."""

    bearer_token: SecretStr | None = None
    """The server's own credential, sent as `Authorization: Bearer ...`."""

    api_key: SecretStr | None = None
    """Sent as `x-api-key`."""

    token_provider: Callable[..., Any] | None = Field(default=None, repr=False)
    """Returns a bearer token before each request, sync or async; asked once more when the server answers 401.

    It is called without arguments, or with `refresh=True` after a 401 where it has that parameter.
    """

    forward_caller_token: bool | None = None
    """Whether the caller's bearer token is sent in place of the server's own credential.

    `None` means yes, except where there is an API key.
    """

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not re.match(r"https?://[^/\s]+", url):
            raise ValueError("should begin with http:// or https:// and name a host")
        return url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name) or re.search(r"[\r\n\0]", value):
                raise ValueError(f"header {name!r} has characters that no header may have")
        return headers

    @field_validator("auth")
    @classmethod
    def _warn_of_auth(cls, auth: Any) -> Any:
        if auth is not None:
            warnings.warn(
                "HTTPServerSpec.auth is ignored; give bearer_token, api_key or token_provider",
                FutureWarning,
                stacklevel=5,
            )
        return auth

    @property
    def has_api_key(self) -> bool:
        """Whether an API key is set."""
        return self.api_key is not None

    @property
    def forwards_caller_token(self) -> bool:
        """Whether the bearer token of a caller is sent to this server."""
        return not self.has_api_key if self.forward_caller_token is None else self.forward_caller_token


ServerSpec = StdioServerSpec | HTTPServerSpec


def as_spec(value: Any, name: str = "") -> ServerSpec:
    """Return a spec made from a spec or a dict: one with `command` runs over stdio, one with `url` over HTTP.

    Raises:
        ConfigurationError: it does not fit; every field with a problem is listed.
    """
    return _checked({name: value}, foreign=False)[name]


def as_servers(servers: Mapping[str, Any] | str | Path | None) -> dict[str, ServerSpec]:
    """Return the specs in a mapping of name to spec or dict, or in an `mcp.json`, by path or as read.

    Of an `mcp.json` (a mapping under `mcpServers`, or `servers`), `${NAME}`, `${env:NAME}` and `${NAME:-default}` are
    filled from the environment, servers that are marked `disabled` are left out, and settings that only other
    clients know are ignored.

    Raises:
        ConfigurationError: the file cannot be read, or a spec does not fit; every field with a problem is listed.
    """
    if servers is None:
        return {}
    if isinstance(servers, (str, Path)):
        servers = _read(Path(servers))
        if _inner(servers) is None:
            return _checked(servers, foreign=True)
    if not isinstance(servers, Mapping):
        raise ConfigurationError(f"servers are given as a mapping of name to spec, not as {type(servers).__name__}")
    inner = _inner(servers)
    return _checked(servers, foreign=False) if inner is None else _checked(inner, foreign=True)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the server file {str(path)!r} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"the server file {str(path)!r} holds no object; write {{'mcpServers': {{...}}}}")
    return data


def _inner(servers: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for key in ("mcpServers", "servers"):
        value = servers.get(key)
        if isinstance(value, Mapping) and not {"command", "url"} & value.keys():
            return value
    return None


def _checked(servers: Mapping[str, Any], *, foreign: bool) -> dict[str, ServerSpec]:
    specs: dict[str, ServerSpec] = {}
    problems: list[str] = []
    for name, value in servers.items():
        if isinstance(value, (StdioServerSpec, HTTPServerSpec)):
            specs[name] = value
        elif not isinstance(value, Mapping):
            problems.append(f"{name}: should be a StdioServerSpec, an HTTPServerSpec or a dict, not {value!r:.60}")
        elif not (foreign and value.get("disabled") is True):
            found = _made(dict(value), foreign=foreign)
            if isinstance(found, list):
                problems += [f"{name}.{problem}" if name else problem for problem in found]
            else:
                specs[name] = found
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ConfigurationError(f"the MCP servers cannot be used as they are given:\n{listed}")
    return specs


_FOREIGN_TYPES = {"streamableHttp": "http", "streamable_http": "http"}


def _made(data: dict[str, Any], *, foreign: bool) -> ServerSpec | list[str]:
    problems: list[str] = []
    if foreign:
        data = cast("dict[str, Any]", _expanded(data, problems))
    kind = data.pop("type", None)
    kind = _FOREIGN_TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if "command" in data and "url" in data:
        return [*problems, "command: a server has a command or a url, not both"]
    if "command" not in data and "url" not in data:
        return [*problems, "command: there is neither a command (for stdio) nor a url (for HTTP)"]
    known: type[StdioServerSpec] | type[HTTPServerSpec] = StdioServerSpec if "command" in data else HTTPServerSpec
    kinds = ("stdio",) if known is StdioServerSpec else ("http", "streamable-http", "sse")
    if kind is not None and kind not in kinds:
        problems.append(f"type: should be {' or '.join(map(repr, kinds))}, not {kind!r}")
    elif kind is not None and known is HTTPServerSpec:
        data.setdefault("transport", kind)
    if foreign:
        data = {key: value for key, value in data.items() if key in known.model_fields}
    try:
        spec = known(**{str(key): entry for key, entry in data.items()})
    except _SpecError as error:
        return problems + error.problems
    return problems or spec


def _problems(error: ValidationError) -> list[str]:
    found = []
    for entry in error.errors(include_url=False, include_context=False, include_input=False):
        text = str(entry["msg"])
        for prefix in ("Value error, ", "Input "):
            text = text.removeprefix(prefix)
        if entry["type"] == "extra_forbidden":
            text = "there is no such field"
        elif entry["type"] == "missing":
            text = "is required"
        path = ".".join(str(step) for step in entry["loc"] if step not in ("str", "function-plain"))
        found.append(f"{path}: {text[:1].lower()}{text[1:]}")
    return list(dict.fromkeys(found))


_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def _expanded(value: Any, problems: list[str], path: str = "") -> Any:
    if isinstance(value, str):

        def fill(match: re.Match[str]) -> str:
            found = os.environ.get(match[1]) or match[2]
            if found is None:
                problems.append(f"{path}: the environment variable {match[1]!r} is not set")
            return found or ""

        return _VARIABLE.sub(fill, value)
    if isinstance(value, Mapping):
        return {key: _expanded(entry, problems, f"{path}.{key}" if path else str(key)) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_expanded(entry, problems, f"{path}[{place}]") for place, entry in enumerate(value)]
    return value
