"""The requests that are made of a server, with what it may ask for in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from pydantic import TypeAdapter

from graphwright.exceptions import ToolError
from graphwright.mcp.client.elicitation import answer_inputs
from graphwright.mcp.client.progress import Report
from mcp import MCPError as ProtocolError

__all__ = ["ask_prompt", "ask_resource", "ask_tool"]

Ask = Callable[[Any], Awaitable[Any]]

_RESULT: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)


async def ask_tool(client: Any, tool: str, arguments: dict[str, Any], ask: Ask, report: Report | None) -> Any:
    """Return the `CallToolResult` of a call."""
    progress = None if report is None else _reporting(report)

    async def send(answers: Any, state: str | None) -> Any:
        # Not by the SDK's own `call_tool`: it lists the tools once more for each session, to check what comes back.
        params = types.CallToolRequestParams(
            name=tool, arguments=arguments, input_responses=answers, request_state=state
        )
        request = types.CallToolRequest(params=params)
        return await client.session.send_request(request, _RESULT, progress_callback=progress)

    try:
        return await answer_inputs(send, ask)
    except ProtocolError as error:
        if error.code == types.HEADER_MISMATCH:
            # The headers that the tool wants are in its listing, which this session has not read.
            await _list_until(client, tool)
        elif error.code == types.URL_ELICITATION_REQUIRED:
            await _visit(error, ask)
        else:
            raise
    return await answer_inputs(send, ask)


async def ask_resource(client: Any, uri: str, ask: Ask) -> Any:
    """Return the `ReadResourceResult` of a resource."""

    async def send(answers: Any, state: str | None) -> Any:
        return await client.session.read_resource(
            uri, input_responses=answers, request_state=state, allow_input_required=True
        )

    return await answer_inputs(send, ask)


async def ask_prompt(client: Any, name: str, arguments: dict[str, str], ask: Ask) -> Any:
    """Return the `GetPromptResult` of a prompt."""

    async def send(answers: Any, state: str | None) -> Any:
        return await client.session.get_prompt(
            name, arguments or None, input_responses=answers, request_state=state, allow_input_required=True
        )

    return await answer_inputs(send, ask)


async def _list_until(client: Any, tool: str) -> None:
    cursor: str | None = None
    for _ in range(100):
        page = await client.list_tools(cursor=cursor)
        cursor = page.next_cursor
        if not cursor or any(entry.name == tool for entry in page.tools):
            return


async def _visit(error: ProtocolError, ask: Ask) -> None:
    """Ask for the visits that a server wants before it does anything."""
    wanted = error.data.get("elicitations", []) if isinstance(error.data, dict) else []
    for entry in wanted:
        answer = await ask(types.ElicitRequest(params=types.ElicitRequestURLParams.model_validate(entry)))
        if getattr(answer, "action", None) != "accept":
            raise ToolError(f"the MCP server wants a page to be visited first, and it was not: {error.message}")
    if not wanted:
        raise ToolError(f"the MCP server wants something to be done first: {error.message}")


def _reporting(report: Report) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        report(progress, total, message)

    return progressed
