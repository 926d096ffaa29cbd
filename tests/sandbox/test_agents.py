"""`build_agent(sandbox=)` and the bot's tools: both doors run commands in a sandbox, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphwright import OrchestratorBot, build_agent
from graphwright.agent import CallerContext
from graphwright.exceptions import ConfigurationError, SandboxUnavailableError
from graphwright.messages import ToolMessage
from graphwright.sandbox import BubblewrapBackend, SandboxConfig, SandboxManager
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools.builtin import BashSafeTool, RunBashTool, RunPythonTool

# Real processes and servers, and waits that are the subject: CI runs these after the fast ones.
pytestmark = pytest.mark.slow


def results(messages: list[Any]) -> list[str]:
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


async def test_an_agent_uses_its_sandbox(needs_bwrap: None) -> None:
    model = ScriptedModel(
        [
            calls("sandbox_write_file", path="data/a.txt", content="1 2 3"),
            calls("sandbox_exec", command="cat data/a.txt; echo oops >&2; exit 2"),
            calls("sandbox_python", code="print(sum(map(int, open('data/a.txt').read().split())))"),
            calls("sandbox_list_files"),
            calls("sandbox_read_file", path="nope"),
            calls("sandbox_exec", command="sleep 60", timeout=0.2),
            calls("sandbox_exec", command="env | grep -c SECRET"),
            says("done"),
        ]
    )
    async with await build_agent(model=model, sandbox={"backend": "bwrap", "timeout": 20}) as agent:
        result = await agent.ainvoke("go")

    told = results(result["messages"])
    assert told[:4] == ["wrote 5 characters to data/a.txt", "1 2 3\n[stderr]\noops\n[exit code 2]", "6", '["data/"]']
    assert "'nope' cannot be read: No such file" in told[4]
    assert "longer than 0.2 s and was stopped" in told[5]
    assert told[6] == "0\n[exit code 1]"


@pytest.mark.parametrize(
    "given",
    [True, {"cpu": 1}, SandboxConfig(cpu=1), BubblewrapBackend()],
    ids=["true", "a dict", "a config", "a backend"],
)
async def test_every_way_to_ask_for_one_gives_one(needs_bwrap: None, given: Any) -> None:
    model = ScriptedModel([calls("sandbox_python", code="print(6 * 7)"), says("done")])

    async with await build_agent(model=model, sandbox=given) as agent:
        assert {"sandbox_exec", "sandbox_python"} <= set(agent.tool_names)
        assert results((await agent.ainvoke("go"))["messages"]) == ["42"]


@pytest.mark.parametrize("given", [None, False, {}])
async def test_none_is_asked_for(given: Any) -> None:
    agent = await build_agent(model=ScriptedModel([says("ok")]), sandbox=given)

    assert not [name for name in agent.tool_names if name.startswith("sandbox")]


async def test_what_cannot_be_had_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(ConfigurationError, match="no option 'netwrok'"):
        await build_agent(model=ScriptedModel([]), sandbox={"netwrok": "none"})
    with pytest.raises(ConfigurationError, match="give True, a dict"):
        await build_agent(model=ScriptedModel([]), sandbox=3)
    with pytest.raises(SandboxUnavailableError, match='network="restricted" cannot be enforced'):
        await build_agent(model=ScriptedModel([]), sandbox={"network": "restricted"})


async def test_callers_of_one_agent_see_nothing_of_each_other(needs_bwrap: None) -> None:
    script = [calls("sandbox_exec", command="ls; echo $0 > file-of-mine"), says("ok")]
    async with await build_agent(model=ScriptedModel(script * 3), sandbox=True) as agent:
        seen = []
        for user in ("u", "v"):
            result = await agent.ainvoke("go", caller=CallerContext(user_id=user))
            seen += results(result["messages"])
        again = await agent.ainvoke("go", caller=CallerContext(user_id="u"))

    assert seen == ["(no output)", "(no output)"]
    assert results(again["messages"]) == ["(no output)"], "a run outside of a conversation starts anew"


async def test_shutdown_ends_the_sandboxes_but_not_those_of_somebody_else(needs_bwrap: None) -> None:
    async with SandboxManager() as manager:
        own = await build_agent(
            model=ScriptedModel([calls("sandbox_exec", command="echo a"), says("ok")]), sandbox=manager
        )
        await own.ainvoke("go")
        await own.shutdown()

        assert (await manager.run("echo still")).stdout == "still\n"


TOOLS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (RunBashTool, {"command": "echo $((6 * 7)) | tr 4 5"}, "52"),
    (BashSafeTool, {"command": "echo safe"}, "safe"),
    (RunPythonTool, {"code": "import os; print(os.getcwd())"}, "/workspace"),
]


@pytest.mark.parametrize(("kind", "arguments", "told"), TOOLS, ids=lambda value: getattr(value, "__name__", ""))
async def test_the_command_tools_run_through_either_door(
    needs_bwrap: None, kind: Callable[..., Any], arguments: dict[str, Any], told: str
) -> None:
    async with SandboxManager() as manager:
        tool = kind(sandbox=manager)
        script = [calls(tool.name, **arguments), says("done")]

        agent = await build_agent(model=ScriptedModel(script), extra_tools=[tool])
        of_agent = results((await agent.ainvoke("go"))["messages"])
        bot = OrchestratorBot(strong_model=ScriptedModel(script), instructions="Work.", tools=[tool])
        of_bot = await bot.arun("go")

    assert of_agent == [told]
    assert of_bot.content == "done"
    assert of_bot.tools_executed
    assert told in str(of_bot.tools_executed)


async def test_a_session_alone_serves_the_command_tools(bwrap: Any) -> None:
    box = await bwrap()
    model = ScriptedModel([calls("run_bash", command="sleep 60"), calls("run_bash", command="echo ok"), says("done")])
    agent = await build_agent(model=model, extra_tools=[RunBashTool(sandbox=box, command_timeout=0.2)])

    told = results((await agent.ainvoke("go"))["messages"])

    assert "took longer than 0.2 s and was stopped" in told[0]
    assert told[1] == "ok"
