"""Pass on what a server asks while it works: a form for a person to fill, or a completion of the model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from graphwright.exceptions import ToolError
from graphwright.mcp.client.exchange import Exchange
from graphwright.tools.json_schema import schema_problems

__all__ = ["OnElicit", "Sampling", "answer_inputs", "ask_model", "ask_person", "guarded"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnElicit = Callable[[str, str, dict[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""`(server, message, schema) -> {"action": "accept" | "decline" | "cancel", "content": {...}}`, or `None` to decline.

The schema is that of the content; to visit a page is asked with the schema `{"url": "https://..."}`. It runs with
the context variables of the call that the server asks for. A signal (a `BaseException`) that it raises ends that call
and reaches whoever made it.
"""

_MAX_ROUNDS = 10
_ACTIONS = ("accept", "decline", "cancel")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Allow servers to ask the model for completions, within limits."""

    handler: Callable[[str, dict[str, Any]], Awaitable[str]]
    """`(server, request) -> text`. The request has `messages` (dicts with `role` and `content`), `system_prompt`,
    `max_tokens`, `temperature` and `stop_sequences`."""

    max_tokens: int = 1024
    """Most tokens that one completion may ask for; a larger wish is cut to it."""

    max_calls: int = 5
    """Most completions that a server may ask for during one of our requests."""

    model_name: str = "graphwright"
    """What the server is told of the model."""


async def ask_person(server: str, on_elicit: OnElicit | None, exchange: Exchange | None, params: Any) -> Any:
    """Return the answer to an elicitation, as the SDK sends it back.

    Without a request of ours that it belongs to, nobody is asked: it could reach the wrong person.
    """
    import mcp_types as types

    if on_elicit is None or exchange is None:
        if exchange is None:
            logger.warning("MCP server %r asks for input and does not say for which request; it is declined", server)
        return types.ElicitResult(action="decline")
    url = getattr(params, "url", None)
    schema: dict[str, Any] = {"url": url} if url else _plain(params.requested_schema)
    exchange.stop_clock()
    try:
        answer = await exchange.at_home(_awaited(on_elicit(server, params.message, schema)))
    finally:
        exchange.start_clock()
    return _elicit_result(server, answer, None if url else schema)


async def _awaited(asking: Awaitable[T]) -> T:
    return await asking


def _plain(value: Any) -> dict[str, Any]:
    return (
        dict(value) if isinstance(value, Mapping) else value.model_dump(by_alias=True, exclude_none=True, mode="json")
    )


def _elicit_result(server: str, answer: Mapping[str, Any] | None, schema: dict[str, Any] | None) -> Any:
    import mcp_types as types

    action: Any = "decline" if answer is None else answer.get("action")
    if action not in _ACTIONS:
        raise ToolError(f"the answer for MCP server {server!r} has the action {action!r}; give one of {_ACTIONS}")
    content = answer.get("content") if answer is not None else None
    if action != "accept" or schema is None:
        return types.ElicitResult(action=action)
    content = dict(content or {})
    problems = schema_problems(schema, f"input for {server}")(content)
    if problems:
        listed = "; ".join(problem.line() for problem in problems)
        raise ToolError(f"the answer does not fit what MCP server {server!r} asked for: {listed}")
    return types.ElicitResult(action="accept", content=content)


async def ask_model(server: str, sampling: Sampling | None, exchange: Exchange | None, params: Any) -> Any:
    """Return the completion that a server asked for, or the refusal."""
    import mcp_types as types

    if sampling is None or exchange is None:
        return types.ErrorData(code=types.INVALID_REQUEST, message="sampling is not allowed here")
    if exchange.samples >= sampling.max_calls:
        return types.ErrorData(
            code=types.INVALID_REQUEST, message=f"no more than {sampling.max_calls} completions for one request"
        )
    if getattr(params, "tools", None):
        return types.ErrorData(code=types.INVALID_REQUEST, message="sampling with tools is not offered")
    exchange.samples += 1
    request = {
        "messages": [{"role": entry.role, "content": _sampled(entry.content)} for entry in params.messages],
        "system_prompt": params.system_prompt,
        "max_tokens": max(1, min(params.max_tokens, sampling.max_tokens)),
        "temperature": params.temperature,
        "stop_sequences": list(params.stop_sequences or ()),
    }
    text = await exchange.at_home(_awaited(sampling.handler(server, request)))
    content = types.TextContent(type="text", text=str(text))
    return types.CreateMessageResult(
        role="assistant", content=content, model=sampling.model_name, stop_reason="endTurn"
    )


def _sampled(content: Any) -> Any:
    from graphwright.mcp.client.content import content_of

    return content_of(content if isinstance(content, list) else [content])


async def guarded(exchange: Exchange | None, asking: Awaitable[Any]) -> Any:
    """Answer inside a task of the SDK: an error refuses, a signal ends the request that it belongs to."""
    import mcp_types as types

    try:
        return await asking
    except ToolError as error:
        return types.ErrorData(code=types.INTERNAL_ERROR, message=str(error))
    except Exception:  # foreign code; what it says may be nothing for the server to read
        logger.exception("a server's question could not be answered; it is refused")
        return types.ErrorData(code=types.INTERNAL_ERROR, message="the question could not be answered")
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as signal:
        if exchange is None:
            raise
        exchange.end_with(signal)
        return types.ErrorData(code=types.INVALID_REQUEST, message="the request waits for a person")


async def answer_inputs(send: Callable[[Any, str | None], Awaitable[Any]], ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return the result of `send(answers, state)`, answering what the server asks for in between.

    This is how servers of the newer protocol ask: the request ends with questions and is made again with the answers.
    """
    import mcp_types as types

    answers: dict[str, Any] | None = None
    state: str | None = None
    wait = 0.05
    for _ in range(_MAX_ROUNDS + 1):
        result = await send(answers, state)
        if not isinstance(result, types.InputRequiredResult):
            return result
        answers, state = None, result.request_state
        if result.input_requests:
            answers = {key: await _answered(request, ask) for key, request in result.input_requests.items()}
        else:
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)
    raise ToolError(f"the MCP server asked for input more than {_MAX_ROUNDS} times without an end")


async def _answered(request: Any, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    import mcp_types as types

    if isinstance(request, types.ListRootsRequest):
        return types.ListRootsResult(roots=[])
    answer = await ask(request)
    if isinstance(answer, types.ErrorData):
        raise ToolError(f"the MCP server asked for input that it does not get: {answer.message}")
    return answer
