"""An MCP server with a tool for everything that a client has to cope with.

Run it as `workshop.py stdio` or `workshop.py http PORT`; `LEDGER` names the file in which it writes what it did.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

LEDGER = os.environ.get("LEDGER")

# One white pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def note(text: str) -> None:
    """Write a line into the ledger."""
    if LEDGER:
        with open(LEDGER, "a", encoding="utf-8") as file:
            file.write(text + "\n")


class Size(BaseModel):
    """What is asked of a person."""

    size: int


def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def ask_model(subject: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text=f"Praise {subject}"))], max_tokens=5000)


def build() -> MCPServer:
    """Return a new server."""
    server = MCPServer("workshop", version="1.0", instructions="Measure twice.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def count() -> str:
        """Write one line; doing it twice is seen."""
        note("count")
        return "counted"

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=True))
    def set_mark() -> str:
        """Do what may be done again."""
        note("set_mark")
        return "set"

    @server.tool()
    def die() -> str:
        """End the server in the middle of the call."""
        note("die")
        os._exit(1)

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def die_once() -> str:
        """End the server the first time."""
        note("die_once")
        if LEDGER and open(LEDGER, encoding="utf-8").read().count("die_once") == 1:  # noqa: SIM115
            os._exit(1)
        return "alive"

    @server.tool()
    async def slow(ctx: Context, seconds: float) -> str:
        """Take long, and say how far it is."""
        note("slow begins")
        try:
            await ctx.report_progress(1, 2, "half")
            await asyncio.sleep(seconds)
        except BaseException:
            note("slow cancelled")
            raise
        await ctx.report_progress(2, 2, "done")
        return "slept"

    @server.tool()
    def fail() -> str:
        """Report an error."""
        raise ToolError("the saw is broken")

    @server.tool()
    async def say(ctx: Context, text: str) -> str:
        """Log a line."""
        await ctx.request_context.session.send_log_message("warning", text, "bench")
        return "said"

    @server.tool()
    def show() -> CallToolResult:
        """Return content of every kind."""
        return CallToolResult(
            content=[
                TextContent(text="look"),
                ImageContent(data=PIXEL, mime_type="image/png"),
                AudioContent(data="UklGRg==", mime_type="audio/wav"),
                ResourceLink(uri="shelf://saw", name="saw", description="a saw", mime_type="text/plain"),
                EmbeddedResource(resource=TextResourceContents(uri="shelf://note", text="cut here")),
                EmbeddedResource(
                    resource=BlobResourceContents(uri="shelf://plan", blob="AAEC", mime_type="application/x-plan")
                ),
            ]
        )

    @server.tool()
    def who(ctx: Context) -> dict[str, Any]:
        """Return what came with the request."""
        headers = ctx.headers or {}
        return {name: headers.get(name) for name in ("authorization", "x-api-key", "x-team", "mcp-session-id")}

    @server.tool()
    def cut(what: str, size: Annotated[Size, Resolve(ask_size)]) -> str:
        """Ask a person for the size, then cut."""
        note(f"cut {size.size}")
        return f"cut {what} to {size.size}"

    @server.tool()
    def praise(subject: str, reply: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
        """Let the client's model write."""
        return f"{reply.model}: {reply.content.text}"

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Get one tool more."""

        def hammer() -> str:
            """Hit."""
            return "hit"

        server.add_tool(hammer)
        await ctx.notify_tools_changed()
        await ctx.request_context.session.send_tool_list_changed()
        return "grown"

    @server.resource("shelf://saw", description="The saw", mime_type="text/plain")
    def saw() -> str:
        return "a sharp saw"

    @server.resource("drawer://{number}", description="What is in a drawer")
    def drawer(number: str) -> str:
        return f"drawer {number}"

    @server.prompt(description="How to build")
    def build_it(thing: str) -> str:
        return f"Build a {thing}."

    return server


if __name__ == "__main__":
    note(f"start {os.getpid()}")
    if sys.argv[1] == "stdio":
        build().run("stdio")
    else:
        build().run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
