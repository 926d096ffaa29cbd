"""What servers ask people and models while they work, and how it is answered in a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

from graphwright import build_agent
from graphwright.agent import Agent, CallerContext
from graphwright.agent._servers import ServerOptions, ServerTools
from graphwright.cross_agent import CrossAgent
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.prebuilts import build_react_graph
from graphwright.exceptions import ConfigurationError, InterruptError
from graphwright.mcp.client import Sampling
from graphwright.messages import ToolMessage
from graphwright.runlog import MemoryRunLog
from graphwright.runtime import Resume
from graphwright.testing import ScriptedModel, calls, says

CUT = [calls("cut", what="oak"), says("cut")]


class Size(BaseModel):
    """What the saw asks."""

    size: int


class Sure(BaseModel):
    """What the gate asks."""

    sure: bool


def told(result: Any) -> list[tuple[str, Any, str]]:
    """Return what the tools of a run said: name, content, status."""
    return [(m.name, m.content, m.status) for m in result["messages"] if isinstance(m, ToolMessage)]


@pytest.fixture
async def saw(
    serve: Any, workshop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[dict[str, Any]]:
    """A spec of the workshop, which writes down what it does."""
    monkeypatch.setitem(workshop.__globals__, "LEDGER", str(tmp_path / "ledger"))
    async with serve(workshop().streamable_http_app()) as site:
        yield {"url": site.url}


async def cutting(servers: Any, log: Any) -> Agent:
    return await build_agent(model=ScriptedModel(CUT), servers=servers, runlog=log)


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_servers_question_pauses_the_run_and_its_answer_reaches_the_server(
    saw: dict[str, Any], ledger: Callable[[], list[str]], tmp_path: Path, protocol: str
) -> None:
    servers = {"w": {**saw, "protocol": protocol}}
    async with await cutting(servers, tmp_path / "log.db") as agent:
        paused = await agent.ainvoke("go")
        (item,) = paused.pending
        with pytest.raises(InterruptError, match="size"):
            await agent.resume(paused.run_id, {"action": "accept", "content": {"size": "large"}})
        with pytest.raises(InterruptError, match="no answer to MCP server"):
            await agent.resume(paused.run_id, 7)

    # Somebody else goes on with it, from the file alone.
    async with await build_agent(
        model=ScriptedModel([says("cut")]), servers=servers, runlog=tmp_path / "log.db"
    ) as agent:
        result = await agent.resume(paused.run_id, {item.id: {"action": "accept", "content": {"size": 3}}})

    assert paused.status == "paused"
    assert (item.kind, item.value["server"], item.value["tool"]) == ("mcp_input", "w", "cut")
    assert item.value["message"] == "Which size?"
    assert item.value["schema"]["properties"]["size"]["type"] == "integer"
    assert told(result) == [("cut", "cut oak to 3", "success")]
    assert [line for line in ledger() if line.startswith("cut")] == ["cut 3"], "done once"


async def test_the_content_alone_is_an_answer_and_none_declines(
    saw: dict[str, Any], ledger: Callable[[], list[str]]
) -> None:
    log = MemoryRunLog()
    for answer in ({"size": 4}, None):
        async with await cutting({"w": saw}, log) as agent:
            paused = await agent.ainvoke("go")
            result = await agent.resume(paused.run_id, answer)
        assert told(result)[0][2] == ("success" if answer else "error")

    assert [line for line in ledger() if line.startswith("cut")] == ["cut 4"]


async def test_without_a_log_the_server_is_told_that_nobody_can_be_asked(
    saw: dict[str, Any], ledger: Callable[[], list[str]]
) -> None:
    async with await cutting({"w": saw}, None) as agent:
        result = await agent.ainvoke("go")

    assert (result.status, told(result)[0][2]) == ("completed", "error")
    assert [line for line in ledger() if line.startswith("cut")] == []


async def test_the_question_of_a_peers_server_is_answered_at_the_top(saw: dict[str, Any], tmp_path: Path) -> None:
    log = MemoryRunLog()
    async with await cutting({"w": saw}, MemoryRunLog()) as peer:
        agent = await build_agent(
            model=ScriptedModel([calls("ask_agent_joiner", message="cut oak"), says("so it is")]),
            cross_agents={"joiner": CrossAgent(peer)},
            runlog=log,
        )
        paused = await agent.ainvoke("go")
        with pytest.raises(InterruptError, match="size"):
            await agent.resume(paused.run_id, {"size": "no number"})
        result = await agent.resume(paused.run_id, {"size": 5})

    assert [item.kind for item in paused.pending] == ["mcp_input"]
    assert "@joiner" in paused.pending[0].path
    assert result.text == "so it is"


async def test_a_call_that_was_cut_off_after_its_answer_is_not_made_again(serve: Any) -> None:
    server = MCPServer("slow saw")
    done: list[int] = []
    sawing = asyncio.Event()

    @server.tool()
    async def cut(ctx: Context, what: str) -> str:
        """Ask for the size, then cut for ever."""
        answer = await ctx.elicit("Which size?", Size)
        done.append(answer.data.size)
        sawing.set()
        await asyncio.Event().wait()
        return "never"

    log = MemoryRunLog()
    async with serve(server.streamable_http_app()) as site:
        servers = {"w": {"url": site.url, "protocol": "legacy"}}
        async with await cutting(servers, log) as agent:
            paused = await agent.ainvoke("go")
            run = agent.start(None, resume=Resume(run_id=paused.run_id, answers={"size": 3}))
            await sawing.wait()
            kept = await left_by_a_process_that_died_now(log, paused.run_id)
            await run.aclose()
        async with await build_agent(model=ScriptedModel([says("who knows")]), servers=servers, runlog=kept) as agent:
            result = await agent.resume(paused.run_id)

    ((name, text, status),) = told(result)
    assert (name, status) == ("cut", "error")
    assert "unknown whether it took effect" in text
    assert done == [3]


async def left_by_a_process_that_died_now(log: MemoryRunLog, run_id: str) -> MemoryRunLog:
    info = await log.info(run_id)
    assert info is not None
    kept = MemoryRunLog()
    writer = await kept.begin(info)
    writer.put(*await log.rows(run_id))
    await writer.flush()
    await writer.close("running")
    return kept


async def test_a_resumed_run_does_not_call_a_tool_that_is_gone(saw: dict[str, Any], tmp_path: Path) -> None:
    async with await cutting({"w": saw}, tmp_path / "log.db") as agent:
        paused = await agent.ainvoke("go", caller=CallerContext("ann"))

    async with await build_agent(model=ScriptedModel([says("sorry")]), runlog=tmp_path / "log.db") as other:
        with pytest.raises(PermissionError):
            await other.resume(paused.run_id, {"size": 3}, caller=CallerContext("bob"))
        result = await other.resume(paused.run_id, {"size": 3}, caller=CallerContext("ann"))

    assert told(result)[0][2] == "error"


@pytest.mark.parametrize(("says_yes", "status"), [(True, "success"), (False, "error")])
async def test_a_question_that_wants_a_yes_goes_to_whoever_approves(serve: Any, says_yes: bool, status: str) -> None:
    server = MCPServer("gate")

    @server.tool()
    async def burn(ctx: Context) -> str:
        """Burn it."""
        answer = await ctx.elicit("Burn it?", Sure)
        if answer.action != "accept" or not answer.data.sure:
            raise ToolError("not burned")
        return "burned"

    asked: list[Any] = []

    async def approve(*question: Any) -> bool:
        asked.append(question[:3])
        return says_yes

    async with serve(server.streamable_http_app()) as site:
        engine = PromptGraphEngine(build_react_graph(), ScriptedModel([calls("burn"), says("x")]))
        tools = ServerTools(
            engine, ServerOptions(servers={"g": {"url": site.url, "protocol": "legacy"}}), approver=approve
        )
        agent = Agent(engine, servers=tools)
        await agent.open()
        async with agent:
            result = await agent.ainvoke("go")

    assert asked == [("g", "burn", "Burn it?")]
    assert [entry[2] for entry in told(result)] == [status]


async def test_a_server_may_ask_the_model_only_when_it_is_allowed(saw: dict[str, Any]) -> None:
    async def run(script: list[Any], **options: Any) -> Any:
        async with await build_agent(model=ScriptedModel(script), servers={"w": saw}, **options) as agent:
            return await agent.ainvoke("go")

    allowed = await run([calls("praise", subject="oak"), says("Fine oak!"), says("x")], mcp_sampling=True)
    refused = await run([calls("praise", subject="oak"), says("x")])

    async def never(server: str, request: dict[str, Any]) -> str:
        raise AssertionError

    capped = await run([calls("praise", subject="oak"), says("x")], mcp_sampling=Sampling(handler=never, max_calls=0))

    assert told(allowed)[0][1].endswith("Fine oak!")
    assert told(refused)[0][2] == told(capped)[0][2] == "error"
    with pytest.raises(ConfigurationError, match="mcp_sampling is 3"):
        await run([], mcp_sampling=3)


async def test_a_run_in_another_loop_pauses_and_goes_on_as_well(saw: dict[str, Any]) -> None:
    async with await cutting({"w": saw}, MemoryRunLog()) as agent:
        paused = await asyncio.to_thread(agent.invoke, "go")
        result = await asyncio.to_thread(lambda: asyncio.run(agent.resume(paused.run_id, {"size": 3})))

    assert [item.kind for item in paused.pending] == ["mcp_input"]
    assert told(result) == [("cut", "cut oak to 3", "success")]
