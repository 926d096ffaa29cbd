from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graphwright.orchestrator.redact import REDACTED, is_secret_key, redact, redact_text

SECRET = [
    "password",
    "Passwd",
    "user_password",
    "dbPassword",
    "passphrase",
    "pwd",
    "secret",
    "client_secret",
    "clientSecret",
    "api_key",
    "apikey",
    "API-Key",
    "apiKey",
    "X-Api-Key",
    "openai_api_key",
    "authorization",
    "Proxy-Authorization",
    "auth",
    "credential",
    "aws_credentials",
    "token",
    "access_token",
    "accessToken",
    "accesstoken",
    "refresh_token",
    "auth-token",
    "session_token",
    "access_tokens",
    "bearer",
    "bearer_token",
    "cookie",
    "Set-Cookie",
    "private_key",
    "privateKey",
    "PRIVATE_KEY",
    "secret_key",
    "aws_secret_access_key",
    "ssh_key",
    "github_token",
    "jwt",
]
HARMLESS = [
    "max_tokens",
    "maxTokens",
    "token_count",
    "tokens",
    "total_tokens",
    "max_token",
    "next_page_token",
    "tokenizer",
    "cost_per_token",
    "key",
    "keyboard",
    "primary_key",
    "foreign_key",
    "author",
    "authors",
    "secretary",
    "path",
    "session_id",
    "compass",
    "passenger",
    "",
    "_",
    7,
    None,
]


@pytest.mark.parametrize("key", SECRET)
def test_a_key_that_names_a_credential_is_found_however_it_is_spelt(key: str) -> None:
    assert is_secret_key(key)
    assert redact({key: "hunter2"}) == {key: REDACTED}


@pytest.mark.parametrize("key", HARMLESS)
def test_a_key_that_only_sounds_like_one_is_left_alone(key: Any) -> None:
    assert not is_secret_key(key)
    assert redact({key: "value"}) == {key: "value"}


def test_what_is_given_is_never_changed_and_is_searched_to_the_bottom() -> None:
    args = {
        "url": "x",
        "headers": [{"Authorization": "Bearer abc", "Accept": "text"}],
        "auth": {"user": "bob", "password": "x"},
        "deep": ({"list": ["plain", {"api_key": 5}]},),
        "limits": {"max_tokens": 5},
    }
    before = copy.deepcopy(args)

    assert redact(args) == {
        "url": "x",
        "headers": [{"Authorization": REDACTED, "Accept": "text"}],
        "auth": REDACTED,
        "deep": ({"list": ["plain", {"api_key": REDACTED}]},),
        "limits": {"max_tokens": 5},
    }
    assert args == before


def test_that_a_credential_is_missing_or_on_is_no_credential() -> None:
    args = {"password": "", "token": None, "secret": True, "password_length": 12, "token_ttl": 60}

    assert redact(args) == args
    assert redact({"password": 0, "pwd": 1234}) == {"password": REDACTED, "pwd": REDACTED}


def test_models_and_sets_are_looked_into() -> None:
    class Login(BaseModel):
        user: str
        password: str

    assert redact({"login": Login(user="bob", password="x")}) == {"login": {"user": "bob", "password": REDACTED}}
    assert redact({"password=abc"}) == {f"password={REDACTED}"}
    assert redact({frozenset({"password=abc"})}) == [{f"password={REDACTED}"}]


def test_what_holds_itself_comes_to_an_end() -> None:
    args: dict[str, Any] = {}
    args["self"] = args

    found = redact(args)
    for _ in range(59):
        found = found["self"]
    assert found == {"self": REDACTED}


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Bearer xxx", "Bearer [redacted]"),
        ("Bearer abc123def", "Bearer [redacted]"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz' http://h", "curl -H 'Authorization: [redacted]' http://h"),
        ("Authorization: Digest a=b, c=d\nHost: h", "Authorization: [redacted]\nHost: h"),
        ("authorization=abc, then go on", "authorization=[redacted], then go on"),
        ('curl -H "X-Api-Key: abc" u', 'curl -H "X-Api-Key: [redacted]" u'),
        ("mysql --password=hunter2 -u root", "mysql --password=[redacted] -u root"),
        ("DB_PASSWORD='a b' run", "DB_PASSWORD='[redacted]' run"),
        ('{"password": "a b", "user": "bob"}', '{"password": "[redacted]", "user": "bob"}'),
        ("https://h/p?access_token=abc&page=2", "https://h/p?access_token=[redacted]&page=2"),
        ("password: hunter2, user: bob", "password: [redacted], user: bob"),
        ("{'token': 'abc'}", "{'token': '[redacted]'}"),
        ("postgres://bob:pw@db:5432/x", "postgres://bob:[redacted]@db:5432/x"),
        ("use sk-" + "a1" * 12 + " now", "use [redacted] now"),
        ("AKIA" + "A1" * 8, "[redacted]"),
        ("eyJ" + "a" * 10 + "." + "b" * 10 + "." + "c" * 10, "[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", "[redacted]\nrest"),
    ],
)
def test_a_credential_inside_a_text_is_cut_out(text: str, cut: str) -> None:
    assert redact_text(text) == cut
    assert redact_text(cut) == cut
    assert redact({"command": text}) == {"command": cut}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The bearer of news came late.",
        "Basic understanding of tokens: they are counted.",
        "The secret: be kind.",
        "max_tokens=100, token_count=5",
        "https://example.com/a?b=c",
        "write to bob@example.com at 10:30",
        "password=",
        "x = 3; y: 4",
        "no password: false",
    ],
)
def test_prose_and_figures_are_left_as_they_are(text: str) -> None:
    assert redact_text(text) == text


@given(st.recursive(st.none() | st.integers() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)))
def test_redacting_twice_changes_nothing_more(value: Any) -> None:
    before = copy.deepcopy(value)
    once = redact(value)

    assert redact(once) == once
    assert value == before
