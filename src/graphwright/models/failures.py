"""Turn whatever a provider's client raises into a `ModelError` that says whether trying again can help.

Nothing of a provider is imported: an exception is judged by the attributes and the class names that the clients share.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphwright._internal import clock
from graphwright.exceptions import ModelError
from graphwright.models.retry import retry_after_of

__all__ = ["foreign_cancel", "model_error"]

_CAN_PASS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_STATUS_OF_KIND = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "internal_server_error": 500,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded": 529,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "server_is_overloaded": 503,
    "service_unavailable": 503,
    "slow_down": 503,
    "timeout_error": 504,
    "vector_store_timeout": 504,
    # Bedrock
    "AccessDeniedException": 403,
    "InternalServerException": 500,
    "ModelErrorException": 500,
    "ModelNotReadyException": 503,
    "ModelStreamErrorException": 500,
    "ModelTimeoutException": 504,
    "ResourceNotFoundException": 404,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "TooManyRequestsException": 429,
    "ValidationException": 400,
    # Class names, for errors that carry no number
    "AuthenticationError": 401,
    "BadRequestError": 400,
    "DeadlineExceeded": 504,
    "InternalServerError": 500,
    "NotFoundError": 404,
    "OverloadedError": 529,
    "PermissionDeniedError": 403,
    "RateLimitError": 429,
    "ResourceExhausted": 429,
    "ServiceUnavailable": 503,
    "ServiceUnavailableError": 503,
    # Google
    "DEADLINE_EXCEEDED": 504,
    "INTERNAL": 500,
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "UNAUTHENTICATED": 401,
    "UNAVAILABLE": 503,
}
_NEVER_PASSES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_KIND_IN_TEXT = re.compile(r"\b(server_error|rate_limit_exceeded|server_is_overloaded|overloaded_error|slow_down)\b")
_CONNECTION_NAMES = frozenset(
    {
        "APIConnectionError",
        "APITimeoutError",
        "ChunkedEncodingError",
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "DeadlineExceeded",
        "EndpointConnectionError",
        "HTTPClientError",
        "IncompleteRead",
        "ModelConnectionError",
        "ModelTimeoutError",
        "ProtocolError",
        "ReadTimeoutError",
        "ResponseStreamingError",
        "ServerDisconnectedError",
        "StreamChunkTimeoutError",
        "TimeoutError",
        "TimeoutException",
        "TransportError",
    }
)
_NOT_A_CONNECTION = frozenset({"UnsupportedProtocol", "LocalProtocolError"})
_REMEDIES = {
    400: "the provider rejects the request as it is",
    401: "check the API key",
    402: "check the account's credit",
    403: "check what the API key may do",
    404: "check the model's name and the base_url",
    413: "the request is too large; send less",
    422: "the provider rejects the request as it is",
}
_EMPTY_STREAM = "No generation chunks were returned"
_DEEPEST_CAUSE = 6


def model_error(error: Exception, *, model_name: str, now: Callable[[], float] = clock.wall_time) -> ModelError:
    """Return the `ModelError` for `error`, which becomes its `__cause__`; a `ModelError` is returned as it is."""
    if isinstance(error, ModelError):
        return error
    chain = list(_causes(error))
    status = next((found for found in map(_status, chain) if found is not None), None)
    failure = ModelError(
        _message(error, model_name, status),
        retryable=_can_pass(error, chain, status),
        status=status,
        retry_after=next((found for found in (_retry_after(link, now) for link in chain) if found is not None), None),
    )
    failure.__cause__ = error
    return failure


def foreign_cancel(error: BaseException, *, model_name: str) -> ModelError | None:
    """Return the failure when a client cancelled its own work and nobody had asked for that, else `None`."""

    # A gather that collects exceptions takes a cancelled call for its result and then trips over it.
    cancelled = isinstance(error, AttributeError) and "CancelledError" in str(error)
    if not cancelled and not isinstance(error, asyncio.CancelledError):
        return None
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        if cancelled:
            raise asyncio.CancelledError from error
        return None
    failure = ModelError(f"the client of model {model_name!r} cancelled its own request", retryable=True)
    failure.__cause__ = error
    return failure


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_DEEPEST_CAUSE):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _status(error: BaseException) -> int | None:
    kinds = _kinds(error)
    # An error in the middle of a stream comes with the status of the response that had begun well.
    for status in _statuses(error):
        if status >= 400:
            return status
    return next((_STATUS_OF_KIND[kind] for kind in kinds if kind in _STATUS_OF_KIND), None)


def _statuses(error: BaseException) -> Iterator[int]:
    response = getattr(error, "response", None)
    found: list[Any] = [getattr(error, name, None) for name in ("status_code", "http_status", "status", "code")]
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        found.append(metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None)
    else:
        found += [getattr(response, "status_code", None), getattr(response, "status", None)]
    for value in found:
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            yield int(value)


def _kinds(error: BaseException) -> list[str]:
    """Return the words by which the provider names what went wrong."""
    found: list[Any] = [getattr(error, "type", None), getattr(error, "code", None), getattr(error, "status", None)]
    response = getattr(error, "response", None)
    for body in (getattr(error, "body", None), response if isinstance(response, Mapping) else None):
        if not isinstance(body, Mapping):
            continue
        inner = body.get("error", body.get("Error", body))
        for entry in (inner, body):
            if isinstance(entry, Mapping):
                found += [entry.get(key) for key in ("type", "code", "Code", "status")]
    found += [cls.__name__ for cls in type(error).__mro__]
    if isinstance(error, ValueError):
        found += _KIND_IN_TEXT.findall(str(error))
    return [getattr(kind, "name", kind) for kind in found if isinstance(getattr(kind, "name", kind), str)]


def _can_pass(error: BaseException, chain: list[BaseException], status: int | None) -> bool:
    said = getattr(error, "retryable", None)
    if isinstance(said, bool):
        return said
    if any(kind in _NEVER_PASSES for link in chain for kind in _kinds(link)):
        return False
    if status is not None:
        return status in _CAN_PASS
    return _EMPTY_STREAM in str(error) or any(_is_connection(link) for link in chain)


def _is_connection(error: BaseException) -> bool:
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)):
        return False
    if isinstance(error, OSError):
        return True
    names = {cls.__name__ for cls in type(error).__mro__}
    return not names & _NOT_A_CONNECTION and bool(names & _CONNECTION_NAMES)


def _retry_after(error: BaseException, now: Callable[[], float]) -> float | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        headers = metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
        return retry_after_of(headers, now=now)
    wait = retry_after_of(getattr(response, "headers", None), now=now)
    return wait if wait is not None else retry_after_of(getattr(error, "headers", None), now=now)


def _message(error: Exception, model_name: str, status: int | None) -> str:
    text = str(error).strip()
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = f" with status {status}" if status is not None else ""
    remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
    return f"model {model_name!r} failed{where}: {what}{remedy}"
