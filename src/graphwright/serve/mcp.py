"""Serve an agent as an MCP server: one tool that asks it, with its progress and its cancellation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphwright._internal.optional import is_installed
from graphwright.caller import CallerContext
from graphwright.exceptions import ConfigurationError, MissingExtraError, RunTimeoutError
from graphwright.run_events import NodeStarted, RunEvent, ToolStarted

if TYPE_CHECKING:
    from graphwright.agent import Agent

__all__ = ["mcp_server"]

logger = logging.getLogger(__name__)

_DESCRIPTION = "Ask the agent and return its answer. It knows nothing of this conversation: say all that it needs."


def mcp_server(
    agent: Agent,
    *,
    name: str = "agent",
    tool_name: str = "ask",
    description: str = _DESCRIPTION,
    caller_of: Callable[[Any], CallerContext | None] | None = None,
) -> Any:
    """Return an `MCPServer` of the official SDK, with a tool that takes a `message`.

    Run it with `server.run("stdio")`, or mount `server.streamable_http_app()`. Each call is a run of its own: its steps
    are told as progress, and a call that is cancelled ends its run. `caller_of(context)` says who calls, from the
    SDK's context of the call; without it the runs have no caller. The agent is not shut down with the server.

    Raises:
        MissingExtraError: the SDK is missing.
        ConfigurationError: `caller_of` is no function.
    """
    if not is_installed("mcp_types"):
        raise MissingExtraError("an MCP server", extra="mcp", package="mcp")
    if caller_of is not None and not callable(caller_of):
        raise ConfigurationError(f"caller_of is {caller_of!r}; give a function that takes the context of a call")
    from mcp.server.mcpserver import Context, MCPServer

    from graphwright import __version__

    async def ask(message: Any, ctx: Any) -> str:
        caller = caller_of(ctx) if caller_of is not None else None
        return await _answer(agent, message, ctx, caller)

    # The SDK reads the parameters here, and knows its own class by them.
    ask.__annotations__ = {"message": str, "ctx": Context, "return": str}
    server = MCPServer(name, version=__version__)
    server.add_tool(ask, name=tool_name, description=description)
    return server


async def _answer(agent: Agent, message: str, ctx: Any, caller: CallerContext | None) -> str:
    from mcp.server.mcpserver.exceptions import ToolError

    if not message.strip():
        raise ToolError("the message is empty; say what the agent is to do")
    run = agent.start(message, caller=caller)
    try:
        steps = 0
        async for event in run.events():
            told = _told(event)
            if told:
                steps += 1
                await ctx.report_progress(steps, None, told)
        result = await run.result()
    except RunTimeoutError as error:
        raise ToolError("the agent took too long and was stopped; ask for less") from error
    except Exception as error:
        # What went wrong inside is for the owner of the agent, not for whoever calls it.
        logger.exception("the run %s has no answer", run.run_id)
        raise ToolError(f"the agent has no answer ({type(error).__name__}, run {run.run_id})") from error
    finally:
        await run.aclose()
    if result.status == "paused":
        raise ToolError(f"the agent waits for a person (run {result.run_id}), so it has no answer yet")
    return str(result.text)


def _told(event: RunEvent) -> str:
    """Return what a step is called; empty for what is none of its own."""
    if event.path:
        return ""
    if isinstance(event, NodeStarted):
        return event.node
    return f"calls {event.call.name}" if isinstance(event, ToolStarted) else ""
