"""When a failed call is made again, and what an exception says about that."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.models import RetryPolicy
from graphwright.models.failures import model_error
from graphwright.models.retry import retry_after_of

NOW = 1_750_000_000.0


def wait(failure: ModelError, attempt: int = 1, **options: Any) -> float | None:
    return RetryPolicy(**options).wait_for(failure, attempt)


def passing(retry_after: float | None = None) -> ModelError:
    return ModelError("busy", retryable=True, retry_after=retry_after)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Sun, 15 Jun 2025 15:07:10 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_what_the_headers_ask_for(headers: Any, seconds: float | None) -> None:
    assert retry_after_of(headers, now=lambda: NOW) == seconds


def test_the_wait_is_what_the_provider_asks_and_a_little_more() -> None:
    waits = [wait(passing(2.0)) for _ in range(50)]

    assert all(seconds is not None and 2 <= seconds <= 3 for seconds in waits)
    assert statistics.stdev([seconds for seconds in waits if seconds is not None]) > 0


def test_backoff_grows_up_to_the_cap_and_fifty_waits_are_spread() -> None:
    top = [wait(passing(), attempt, draw=lambda: 1.0, attempts=20, cap_s=60) for attempt in range(1, 12)]
    drawn = [seconds for _ in range(50) if (seconds := wait(passing())) is not None]

    assert top == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert len(drawn) == 50
    assert statistics.stdev(drawn) > 0.05
    assert max(drawn) <= 0.5


def test_no_wait_is_given_when_trying_again_cannot_help() -> None:
    assert wait(ModelError("no")) is None
    assert wait(passing(), attempt=4) is None
    assert wait(passing(61.0)) is None
    assert wait(passing(60.0)) is not None


@pytest.mark.parametrize("options", [{"attempts": 0}, {"base_s": -1}, {"cap_s": float("inf")}, {"spread_s": -0.1}])
def test_settings_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        RetryPolicy(**options)


class Response:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def error(name: str = "SomeError", *, base: type[Exception] = Exception, **attributes: Any) -> Exception:
    made = type(name, (base,), {})("it broke")
    made.__dict__.update(attributes)
    return made


CASES: list[tuple[Exception, int | None, bool]] = [
    (error(status_code=429), 429, True),
    (error(status_code=529), 529, True),
    (error(status_code=500), 500, True),
    (error(status_code=501), 501, False),
    (error(status_code=408), 408, True),
    (error(status_code=400), 400, False),
    (error(response=Response(503)), 503, True),
    (error(code=429), 429, True),
    (error(code=404), 404, False),
    (error(status_code=200, body={"type": "error", "error": {"type": "overloaded_error"}}), 529, True),
    (error(status_code=200, body={"error": {"type": "invalid_request_error"}}), 400, False),
    (error(status_code=429, body={"code": "insufficient_quota"}), 429, False),
    (error(code="server_error"), 500, True),
    (error("ThrottlingException"), 429, True),
    (
        error(
            "ClientError",
            response={"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 429}},
        ),
        429,
        True,
    ),
    (error("ClientError", response={"Error": {"Code": "ValidationException"}}), 400, False),
    (error("ResourceExhausted"), 429, True),
    (error(code=429, status="RESOURCE_EXHAUSTED"), 429, True),
    (error("APIConnectionError"), None, True),
    (error("ReadTimeout", base=type("TransportError", (Exception,), {})), None, True),
    (error("UnsupportedProtocol", base=type("TransportError", (Exception,), {})), None, False),
    (ConnectionResetError("reset"), None, True),
    (TimeoutError(), None, True),
    (ValueError("ResponseError(code='server_error', message='oops')"), 500, True),
    (ValueError("No generation chunks were returned"), None, True),
    (ValueError("nonsense"), None, False),
    (KeyError("choices"), None, False),
    (FileNotFoundError("cert.pem"), None, False),
    (error(status_code=500, retryable=False), 500, False),
]


@pytest.mark.parametrize(
    ("given", "status", "retryable"), CASES, ids=[f"{type(case[0]).__name__}-{case[1]}" for case in CASES]
)
def test_an_exception_is_judged_by_what_the_clients_share(
    given: Exception, status: int | None, retryable: bool
) -> None:
    failure = model_error(given, model_name="m")

    assert (failure.status, failure.retryable) == (status, retryable)
    assert failure.__cause__ is given
    assert "model 'm' failed" in str(failure)
    assert type(given).__name__ in str(failure)


def test_the_wait_is_read_from_the_response_even_of_the_cause() -> None:
    inner = error(response=Response(429, retry_after="7"))
    outer = RuntimeError("wrapped")
    outer.__cause__ = inner

    failure = model_error(outer, model_name="m")

    assert (failure.status, failure.retryable, failure.retry_after) == (429, True, 7.0)
    assert failure.__cause__ is outer


def test_a_wrong_key_says_what_to_check() -> None:
    assert str(model_error(error(status_code=401), model_name="m")).endswith("; check the API key")


def test_a_model_error_is_kept_as_it_is() -> None:
    given = passing()

    assert model_error(given, model_name="m") is given
