"""Approval and MCP servers: the agent's own gate before a call, and the server's question during one."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

from graphwright import build_agent
from graphwright.approval import ApprovalPolicy, ApprovalRequest
from graphwright.messages import ToolMessage
from graphwright.testing import ScriptedModel, calls, says


class Sure(BaseModel):
    """What the server asks."""

    sure: bool


class Furnace:
    """A server whose tool asks before it burns, and what happened to it."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.burned: list[str] = []
        self.server = MCPServer("furnace")

        @self.server.tool()
        async def burn(what: str, ctx: Context) -> str:
            """Burn something."""
            self.called.append(what)
            answer = await ctx.elicit(f"Burn {what}?", Sure)
            if answer.action != "accept" or not answer.data.sure:
                raise ToolError("not burned")
            self.burned.append(what)
            return f"burned {what}"


async def run(serve: Any, furnace: Furnace, approval: Any) -> ToolMessage:
    async with serve(furnace.server.streamable_http_app()) as site:
        spec = {"g": {"url": site.url, "protocol": "legacy"}}
        model = ScriptedModel([calls("burn", what="oak"), says("ok")])
        async with await build_agent(model=model, servers=spec, approval=approval) as agent:
            result = await agent.ainvoke("go")
    [message] = [each for each in result.messages if isinstance(each, ToolMessage)]
    return message


@pytest.mark.parametrize("yes", [True, False])
async def test_a_handler_alone_answers_the_server_and_holds_no_call(serve: Any, yes: bool) -> None:
    furnace = Furnace()
    asked: list[ApprovalRequest] = []

    async def answer(request: ApprovalRequest) -> bool:
        asked.append(request)
        return yes

    message = await run(serve, furnace, answer)

    assert [(each.tool_name, each.arguments, each.context_summary) for each in asked] == [
        ("burn", {"what": "oak"}, "Burn oak?")
    ]
    assert asked[0].metadata == {"server": "g", "source": "elicitation"}
    assert (furnace.called, furnace.burned) == (["oak"], ["oak"] if yes else [])
    assert message.status == ("success" if yes else "error")


@pytest.mark.parametrize("pattern", ["burn", "g.burn", "g_*"])
async def test_a_policy_holds_a_servers_tool_by_any_of_its_names(serve: Any, pattern: str) -> None:
    furnace = Furnace()
    asked: list[ApprovalRequest] = []

    async def deny(request: ApprovalRequest) -> bool:
        asked.append(request)
        return False

    message = await run(serve, furnace, ApprovalPolicy(tools=[pattern], handler=deny))

    assert [each.tool_name for each in asked] == ["burn"]
    assert asked[0].tool_annotations["other_names"] == ["burn", "g.burn", "g_burn"]
    assert furnace.called == []
    assert message.status == "error"


async def test_a_policys_handler_answers_the_server_too(serve: Any) -> None:
    furnace = Furnace()
    sources: list[str | None] = []

    async def approve(request: ApprovalRequest) -> bool:
        sources.append(request.metadata.get("source"))
        return True

    message = await run(serve, furnace, ApprovalPolicy(tools=["burn"], handler=approve))

    assert sources == [None, "elicitation"]
    assert furnace.burned == ["oak"]
    assert message.status == "success"


async def test_a_handler_that_fails_declines_what_the_server_asks(serve: Any) -> None:
    furnace = Furnace()

    async def fails(request: ApprovalRequest) -> bool:
        raise RuntimeError("down")

    message = await run(serve, furnace, fails)

    assert (furnace.called, furnace.burned) == (["oak"], [])
    assert message.status == "error"
