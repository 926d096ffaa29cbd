"""The switch that forbids real requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphwright._internal.real_requests import check_allowed
from graphwright.testing import (
    RealRequestForbidden,
    allow_real_requests,
    forbid_real_requests,
    no_real_requests,
    real_requests_are_forbidden,
)

VARIABLE = "GRAPHWRIGHT_FORBID_REAL_REQUESTS"


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    with forbid_real_requests(), allow_real_requests():
        yield


def _from_environment(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    from graphwright._internal import real_requests

    monkeypatch.setattr(real_requests, "_forbidden", None)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)


def test_while_allowed_nothing_is_refused() -> None:
    check_allowed("openai:gpt", base_url=None)


def test_a_refusal_names_the_model_the_host_and_the_remedy() -> None:
    with forbid_real_requests(), pytest.raises(RealRequestForbidden) as failure:
        check_allowed("openai:gpt", base_url="https://user:secret@api.example.com:8443/v1")

    assert "model 'openai:gpt' at 'api.example.com' is forbidden" in str(failure.value)
    assert "allow_real_requests()" in str(failure.value)
    assert "secret" not in str(failure.value)
    assert failure.value.model == "openai:gpt"
    assert failure.value.retryable is False


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://127.8.9.10",
        "http://localhost:11434",
        "https://LOCALHOST./v1",
        "http://models.localhost/v1",
        "http://[::1]:8000/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "127.0.0.1:8000/v1",
        "localhost:11434",
    ],
)
def test_a_server_on_this_machine_is_always_allowed(url: str) -> None:
    with forbid_real_requests():
        check_allowed("openai:local", base_url=url)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "https://api.example.com/v1",
        "http://127.0.0.1@example.com/v1",
        "http://localhost.example.com",
        "http://example.com/127.0.0.1",
        "http://example.com/#localhost",
        "http://10.0.0.1",
        "http://[::ffff:10.0.0.1]/",
        "http://[broken",
        "http://127.1.example",
    ],
)
def test_everything_else_is_refused(url: str | None) -> None:
    with forbid_real_requests(), pytest.raises(RealRequestForbidden):
        check_allowed("m", base_url=url)


def test_blocks_nest_and_put_the_switch_back_also_after_an_error() -> None:
    assert not real_requests_are_forbidden()
    with forbid_real_requests():
        with allow_real_requests():
            assert not real_requests_are_forbidden()
        assert real_requests_are_forbidden()
        with pytest.raises(KeyError), allow_real_requests():
            raise KeyError("x")
        assert real_requests_are_forbidden()
    assert not real_requests_are_forbidden()


def test_a_plain_call_lasts_until_the_next() -> None:
    forbid_real_requests()
    assert real_requests_are_forbidden()
    allow_real_requests()
    assert not real_requests_are_forbidden()


@pytest.mark.parametrize(
    ("value", "forbidden"),
    [
        (None, False),
        ("", False),
        ("0", False),
        ("false", False),
        ("Off", False),
        ("1", True),
        ("true", True),
        ("?", True),
    ],
)
def test_the_environment_decides_when_the_program_does_not(
    monkeypatch: pytest.MonkeyPatch, value: str | None, forbidden: bool
) -> None:
    _from_environment(monkeypatch, value)

    assert real_requests_are_forbidden() is forbidden


def test_what_the_program_says_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _from_environment(monkeypatch, "1")

    with allow_real_requests():
        assert not real_requests_are_forbidden()
    assert real_requests_are_forbidden()


def test_the_fixture_forbids_while_the_test_runs() -> None:
    steps = no_real_requests()

    next(steps)
    assert real_requests_are_forbidden()
    with pytest.raises(StopIteration):
        next(steps)
    assert not real_requests_are_forbidden()
