"""Tell what a failed request means: for whoever asked, for the connection, and for whether it may be sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import ValidationError

from graphwright.exceptions import GraphwrightError, MCPConnectionRejectedError, MCPError, ToolError
from mcp import MCPError as ProtocolError

if TYPE_CHECKING:
    from graphwright.mcp.client._connection import Connection
    from graphwright.mcp.client.exchange import Exchange

__all__ = ["Failure", "failure_of", "opening_failure"]

_SHOWN = 1000

# How the SDK begins what it says in place of a server whose answer is no message of the protocol.
_NOT_OF_THE_SERVER = ("Unexpected content type: ", "server answered a request with 202", "Redirect to ")


@dataclass(frozen=True, slots=True)
class Failure:
    """What became of one attempt."""

    error: GraphwrightError

    broken: bool = False
    """Whether the connection is of no more use."""

    may_repeat: bool = False
    """Whether another attempt can do better."""

    done: bool = True
    """Whether the server may have carried the request out."""


def failure_of(error: BaseException, what: str, connection: Connection, exchange: Exchange) -> Failure:
    """Return what an error of a request means; `what` names the request in the message."""
    name = connection.name
    if isinstance(error, TimeoutError):
        text = f"MCP server {name!r} gave no answer to {what} within {exchange.seconds:g} s"
        return Failure(MCPError(_maybe_done(text, exchange), server=name, retryable=True, sent=exchange.sent))
    if isinstance(error, ProtocolError):
        return _protocol_failure(error, what, connection, exchange)
    if isinstance(error, ValidationError):
        text = f"MCP server {name!r} answered {what} with something that the protocol does not allow"
        return Failure(MCPError(f"{text}: {_first(error)}", server=name, sent=True))
    return _died(what, connection, exchange)


def _protocol_failure(error: ProtocolError, what: str, connection: Connection, exchange: Exchange) -> Failure:
    name, status, message = connection.name, exchange.status or 0, error.message[:_SHOWN]
    if status in (401, 403):
        text = f"MCP server {name!r} rejected {what} with HTTP {status}"
        return Failure(MCPConnectionRejectedError(text, server=name), done=False)
    if status in (400, 404) and "session" in message.lower():
        text = f"MCP server {name!r} knows the session no more, and {what} was not carried out"
        return Failure(MCPError(text, server=name, retryable=True), broken=True, may_repeat=True, done=False)
    if exchange.error is not None or error.code == types.CONNECTION_CLOSED or not connection.alive:
        return _died(what, connection, exchange)
    if status == 429:
        text = f"MCP server {name!r} has too much to do (HTTP 429), and {what} was not carried out; try again later"
        return Failure(MCPError(text, server=name, retryable=True), done=False)
    if status >= 500:
        text = f"MCP server {name!r} failed with HTTP {status} at {what}: {message}"
        return Failure(MCPError(text, server=name, retryable=True, sent=True), may_repeat=True)
    if error.code == types.PARSE_ERROR or message.startswith(_NOT_OF_THE_SERVER):
        text = f"MCP server {name!r} answered {what} with something that is no message: {message}"
        return Failure(MCPError(text, server=name, sent=True))
    # What the server itself says of the request is for whoever made it to read.
    return Failure(ToolError(f"MCP server {name!r} refused {what}: {message}"))


def _died(what: str, connection: Connection, exchange: Exchange) -> Failure:
    name = connection.name
    if exchange.sent:
        reason = f" ({_reason(exchange.error)})" if exchange.error is not None else ""
        text = f"the connection to MCP server {name!r} broke{reason} while it was at {what}"
        error = MCPError(_maybe_done(text, exchange), server=name, retryable=True, sent=True)
        return Failure(error, broken=not connection.alive, may_repeat=True)
    cause = exchange.error or connection.error
    text = f"MCP server {name!r} cannot be reached" + (f" ({_reason(cause)})" if cause is not None else "")
    error = MCPError(f"{text}; {what} was not sent", server=name, retryable=True)
    return Failure(error, broken=True, may_repeat=True, done=False)


def _maybe_done(text: str, exchange: Exchange) -> str:
    return f"{text}; it may or may not have been carried out" if exchange.sent else f"{text}; it was not sent"


def opening_failure(error: BaseException, connection: Connection, seconds: float) -> Failure:
    """Return what it means that a connection could not be opened."""
    name, status = connection.name, connection.opening.status or 0
    output = connection.error_output
    said = f"; its error output ends with:\n{output[-_SHOWN:]}" if output else ""
    if status in (401, 403) and connection.opening.error is None:
        text = f"MCP server {name!r} rejected the connection with HTTP {status}; check its credentials"
        return Failure(MCPConnectionRejectedError(text, server=name), done=False)
    if isinstance(error, TimeoutError):
        text = f"MCP server {name!r} did not answer within {seconds:g} s"
        return Failure(MCPError(f"{text}{said}", server=name, retryable=True), done=False)
    cause: Any = connection.opening.error or error
    if status >= 400 and connection.opening.error is None:
        reason = f"HTTP {status}"
    elif connection.pid is not None and isinstance(cause, ProtocolError) and cause.code == types.CONNECTION_CLOSED:
        reason = "its process ended before it answered"
    else:
        reason = _reason(cause)
    # A program that is not there will not be there a moment later either; a server that starts may well be.
    passes = not isinstance(cause, OSError) or isinstance(cause, ConnectionError)
    text = f"MCP server {name!r} cannot be reached: {reason}{said}"
    return Failure(
        MCPError(text, server=name, retryable=passes), may_repeat=passes and not 400 <= status < 500, done=False
    )


def _reason(error: BaseException) -> str:
    text = str(error)[:_SHOWN]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _first(error: ValidationError) -> str:
    entry: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}"
