"""Specs of servers, and the ways in which they are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.mcp.client import HTTPServerSpec, StdioServerSpec, as_servers, as_spec


def test_a_stdio_spec_has_the_documented_fields_and_defaults() -> None:
    spec = StdioServerSpec(command="uvx")

    assert (spec.command, spec.args, spec.env, spec.cwd, spec.keep_alive) == ("uvx", [], {}, None, True)
    assert not spec.isolates_callers


def test_an_http_spec_has_the_documented_fields_and_defaults() -> None:
    spec = HTTPServerSpec(url="https://host/mcp")

    assert (spec.transport, spec.headers, spec.auth, spec.audience) == ("http", {}, None, None)
    assert (spec.bearer_token, spec.api_key, spec.forward_caller_token) == (None, None, None)
    assert spec.forwards_caller_token
    assert not spec.has_api_key
    assert spec.isolates_callers


@pytest.mark.parametrize(
    ("options", "forwards"),
    [
        ({}, True),
        ({"api_key": "k"}, False),
        ({"api_key": "k", "forward_caller_token": True}, True),
        ({"forward_caller_token": False}, False),
        ({"bearer_token": "t"}, True),
    ],
)
def test_the_callers_token_is_forwarded_unless_told_otherwise_or_there_is_an_api_key(
    options: dict[str, Any], forwards: bool
) -> None:
    assert HTTPServerSpec(url="http://host", **options).forwards_caller_token is forwards


def test_no_secret_of_a_spec_is_in_its_repr() -> None:
    http = HTTPServerSpec(url="http://host", bearer_token="s3cret", api_key="s3cret", headers={"X-Key": "s3cret"})
    stdio = StdioServerSpec(command="x", env={"TOKEN": "s3cret"})

    assert "s3cret" not in repr(http) + str(http) + repr(stdio) + str(stdio)


def test_auth_is_ignored_and_says_so() -> None:
    with pytest.warns(FutureWarning, match="auth is ignored"):
        HTTPServerSpec(url="http://host", auth=object())


def test_each_field_with_a_problem_is_named_in_one_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        as_servers(
            {
                "files": {"command": 5, "args": "x", "sped": 1},
                "web": {"url": "host/mcp", "transport": "carrier-pigeon", "call_timeout": 0},
                "both": {"command": "x", "url": "http://host"},
                "none": {},
                "list": ["uvx"],
            }
        )

    assert str(caught.value).splitlines() == [
        "the MCP servers cannot be used as they are given:",
        "  - files.command: should be a valid string",
        "  - files.args: should be a valid list",
        "  - files.sped: there is no such field",
        "  - web.call_timeout: should be greater than 0",
        "  - web.url: should begin with http:// or https:// and name a host",
        "  - web.transport: should be 'http', 'streamable-http' or 'sse'",
        "  - both.command: a server has a command or a url, not both",
        "  - none.command: there is neither a command (for stdio) nor a url (for HTTP)",
        "  - list: should be a StdioServerSpec, an HTTPServerSpec or a dict, not ['uvx']",
    ]


def test_a_spec_made_by_hand_fails_in_the_same_words() -> None:
    with pytest.raises(ConfigurationError, match=r"HTTPServerSpec cannot be made: url: is required; nope: there is no"):
        HTTPServerSpec(nope=1)
    with pytest.raises(ConfigurationError, match="header 'X-Key' has characters"):
        HTTPServerSpec(url="http://host", headers={"X-Key": "a\r\nb"})


def test_an_mcp_json_of_another_client_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", "t0ken")
    monkeypatch.delenv("PORT", raising=False)
    path = tmp_path / "mcp.json"
    path.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "git": {
                        "command": "uvx",
                        "args": ["mcp-server-git"],
                        "env": {"TOKEN": "${GIT_TOKEN}"},
                        "autoApprove": ["git_log"],
                    },
                    "web": {"type": "sse", "url": "http://host:${PORT:-80}/sse", "headers": {"A": "${env:GIT_TOKEN}"}},
                    "new": {"type": "streamableHttp", "url": "http://host/mcp"},
                    "off": {"command": "nothing", "disabled": True},
                }
            }
        )
    )

    servers = as_servers(path)

    assert servers == as_servers(json.loads(path.read_text())) == as_servers(str(path))
    assert servers == {
        "git": StdioServerSpec(command="uvx", args=["mcp-server-git"], env={"TOKEN": "t0ken"}),
        "web": HTTPServerSpec(url="http://host:80/sse", transport="sse", headers={"A": "t0ken"}),
        "new": HTTPServerSpec(url="http://host/mcp"),
    }


def test_a_variable_that_is_not_set_is_a_problem_of_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)

    with pytest.raises(ConfigurationError, match=r"git\.args\[0\]: the environment variable 'NO_SUCH' is not set"):
        as_servers({"mcpServers": {"git": {"command": "x", "args": ["${NO_SUCH}"]}}})


def test_a_server_may_be_called_servers() -> None:
    assert as_servers({"servers": {"command": "x"}}) == {"servers": StdioServerSpec(command="x")}


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_file_that_is_no_mcp_json_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)

    with pytest.raises(ConfigurationError, match=r"broken\.json"):
        as_servers(path)


def test_one_spec_can_be_made_of_a_dict() -> None:
    assert as_spec({"url": "http://host"}) == HTTPServerSpec(url="http://host")
    assert as_spec(StdioServerSpec(command="x")) == StdioServerSpec(command="x")
    with pytest.raises(ConfigurationError, match="comand: there is no such field"):
        as_spec({"command": "x", "comand": "y"})
