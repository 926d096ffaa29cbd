"""Servers that others have written, as they come from their registries."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graphwright import build_agent, text_of
from graphwright.mcp.client import MCPPool
from graphwright.testing import ScriptedModel, calls, says
from graphwright.types import ToolCall

pytestmark = [
    pytest.mark.slow,
    pytest.mark.may_skip("the servers are other people's, and are installed by hand"),
    pytest.mark.usefixtures("no_task_left"),
]

FOLDER = os.environ.get("GRAPHWRIGHT_NPM_SERVERS", "")


def program(name: str) -> str:
    """Return the path of a server's program, or skip with what to do."""
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("GRAPHWRIGHT_MCP_BIN", ""), os.environ["PATH"])))
    if found is None:
        pytest.skip(f"install it with: uv tool install {name} (or name its folder in GRAPHWRIGHT_MCP_BIN)")
    return found


def script(name: str) -> dict[str, Any]:
    """Return the spec of an npm server, or skip with what to do."""
    path = Path(FOLDER) / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    node = shutil.which("node")
    if not FOLDER or node is None or not path.exists():
        pytest.skip(f"npm install @modelcontextprotocol/{name}, and name the folder in GRAPHWRIGHT_NPM_SERVERS")
    return {"command": node, "args": [str(path)]}


@asynccontextmanager
async def using(spec: dict[str, Any], **options: Any) -> AsyncIterator[Any]:
    async with MCPPool({"it": spec}, **options) as pool:
        tools = {tool.name: tool for tool in pool.tools()}

        async def run(name: str, /, **args: Any) -> Any:
            tool = tools[name]
            return await tool.run(tool.validate(args), ToolCall("1", name, args), None)

        run.tools = tools  # type: ignore[attr-defined]
        run.pool = pool  # type: ignore[attr-defined]
        yield run


async def test_an_agent_works_on_a_git_repository(tmp_path: Path) -> None:
    command = program("mcp-server-git")
    for arguments in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty"]):
        tail = ["-m", "first"] if "commit" in arguments else []
        subprocess.run(["git", *arguments, *tail], cwd=tmp_path, check=True)  # noqa: ASYNC221
    (tmp_path / "new.txt").write_text("new")

    async with MCPPool({"git": {"command": command, "args": ["--repository", str(tmp_path)]}}) as pool:
        model = ScriptedModel(
            [
                calls("git_status", repo_path=str(tmp_path)),
                calls("git_log", repo_path=str(tmp_path)),
                calls("git_show", repo_path=str(tmp_path), revision="nowhere"),
                says("One file is new."),
            ]
        )
        agent = await build_agent(model=model, extra_tools=pool.tools())
        result = await agent.ainvoke({"messages": [{"role": "user", "content": "what is new?"}]})

    status, log, show = (message for message in result["messages"] if message.type == "tool")
    assert text_of(result) == "One file is new."
    assert "new.txt" in text_of(status)
    assert "first" in text_of(log)
    assert show.status == "error"


async def test_the_time_server_tells_the_time_and_its_errors() -> None:
    async with using({"command": program("mcp-server-time")}) as run:
        told = await run("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")

    assert "+9" in told
    assert run.tools["get_current_time"].risk_level in (0, 1)


async def test_the_fetch_server_reads_a_page(serve: Any) -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            found = scope["path"] == "/mcp"
            head = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200 if found else 404, "headers": head})
            await send({"type": "http.response.body", "body": b"<html><body><p>A fine saw.</p></body></html>"})

    spec = {"command": program("mcp-server-fetch"), "args": ["--allow-private-ips"]}
    async with serve(page) as site, using(spec) as run:
        assert "A fine saw." in await run("fetch", url=site.url)


async def test_the_filesystem_server_reads_and_writes_in_its_folder(tmp_path: Path) -> None:
    spec = script("server-filesystem")
    spec["args"].append(str(tmp_path))
    async with using(spec) as run:
        await run("write_file", path=str(tmp_path / "a.txt"), content="hello")

        assert "hello" in await run("read_text_file", path=str(tmp_path / "a.txt"))
        assert run.tools["read_text_file"].risk_level == 0
        assert run.tools["write_file"].risk_level == 2
    assert (tmp_path / "a.txt").read_text() == "hello"


async def test_the_memory_server_keeps_what_it_is_told(tmp_path: Path) -> None:
    spec = {**script("server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}}
    async with using(spec) as run:
        entity = {"name": "saw", "entityType": "tool", "observations": ["is sharp"]}
        await run("create_entities", entities=[entity])

        assert "is sharp" in str(await run("search_nodes", query="saw"))


async def test_the_server_that_has_everything() -> None:
    seen: list[Any] = []

    async def on_elicit(*question: Any) -> dict[str, Any]:
        seen.append(question)
        return {"action": "cancel"}

    async with using(script("server-everything"), resources=True, prompts=True, on_elicit=on_elicit) as run:
        assert "hello" in str(await run("echo", message="hello"))
        picture = await run("get-tiny-image")
        assert any(block["type"] == "image" for block in picture)
        assert {"read_resource", "list_resources", "get_prompt"} <= run.tools.keys()
        assert await run("list_resources") != "[]"
        catalogue = run.pool.catalogues["it"]
        assert catalogue.protocol
        text = await run("get_prompt", name=catalogue.prompts[0].name)
        assert text
        task = asyncio.create_task(run("trigger-long-running-operation", duration=30, steps=3))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert "hello" in str(await run("echo", message="hello"))
