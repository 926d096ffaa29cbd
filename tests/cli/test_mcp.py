"""`graphwright mcp`, and `graphwright run --mcp`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphwright.cli._servers import servers_of
from graphwright.exceptions import ConfigurationError

pytest.importorskip("mcp", reason="install it with: pip install 'graphwright[mcp]'")

Command = Callable[..., Any]
PLAIN = Path(__file__).parents[1] / "mcp" / "servers" / "plain.py"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A function that returns the command of a small server, with faults."""

    def command(*faults: str) -> str:
        start = f"import os,runpy,sys; os.environ['LEDGER'] = {str(tmp_path / 'ledger')!r}; sys.argv[1:] = {faults!r}"
        return shlex.join([sys.executable, "-S", "-c", f"{start}; runpy.run_path({str(PLAIN)!r}, run_name='__main__')"])

    return command


def test_listing_says_what_a_server_offers(graphwright: Command, server: Callable[..., str]) -> None:
    done = graphwright("mcp", "list", server())
    as_json = graphwright("mcp", "list", server(), "--json")

    first, *rest = done.out.splitlines()
    assert done.code == 0
    assert "plain 1, protocol 20" in first
    assert rest[0] == "  count  (tool, changes)"
    assert "  wait  (tool, reads)" in rest
    assert "  shelf://0  (resource)" in rest
    assert "  p0  (prompt)" in rest
    entries = as_json.events
    assert [entry["type"] for entry in entries] == ["tool"] * 7 + ["resource"] * 3 + ["prompt"] * 3
    assert entries[0]["input_schema"] == {"type": "object"}


def test_a_tool_is_called_with_json(graphwright: Command, server: Callable[..., str]) -> None:
    plain = graphwright("mcp", "call", server(), "count", "{}")
    as_json = graphwright("mcp", "call", server(), "count", "--json")

    assert (plain.code, plain.out.split()[0]) == (0, "count")
    assert json.loads(as_json.out)["content"][0]["type"] == "text"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("count", "[1]"), "are no JSON object"), (("count", "{"), "are no JSON"), (("cuont",), "there are count, die")],
)
def test_a_call_that_is_wrong_says_how(
    graphwright: Command, server: Callable[..., str], arguments: tuple[str, ...], said: str
) -> None:
    done = graphwright("mcp", "call", server(), *arguments)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_server_that_dies_is_told_with_what_it_said(graphwright: Command, server: Callable[..., str]) -> None:
    died = graphwright("mcp", "call", server(), "die")
    quit_at_once = graphwright("mcp", "list", server("quit"))

    assert (died.code, quit_at_once.code) == (1, 1)
    assert "Traceback" not in died.err
    assert "no licence found" in quit_at_once.err


def test_the_doctor_finds_nothing_or_says_what(graphwright: Command, server: Callable[..., str]) -> None:
    sick = graphwright("mcp", "doctor", server())
    quit_at_once = graphwright("mcp", "doctor", server("quit"))
    nowhere = graphwright("mcp", "doctor", "no-such-program --now")
    silent = graphwright("mcp", "doctor", server("silent"), "--timeout", "0.5")

    assert sick.code == 1
    assert "offers 7 tools, 3 resources, 0 templates, 3 prompts" in sick.out
    assert "  - tool count: it has no description, so a model can only guess what it does" in sick.out
    assert (quit_at_once.code, "no licence found" in quit_at_once.out) == (1, True)
    assert "the program 'no-such-program' is not there; install it, or give its whole path" in nowhere.out
    assert (nowhere.code, silent.code) == (1, 1)
    assert "0.5 s" in silent.out


@pytest.mark.slow
def test_the_doctor_is_content_with_a_good_server(graphwright: Command, tmp_path: Path) -> None:
    source = (
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('good', version='2')\n"
        "@server.tool()\n"
        "def double(n: int) -> int:\n"
        "    'Double a number.'\n"
        "    return 2 * n\n"
        "server.run('stdio')\n"
    )
    path = tmp_path / "good.py"
    path.write_text(source, encoding="utf-8")
    command = shlex.join([sys.executable, str(path)])

    done = graphwright("mcp", "doctor", command)
    called = graphwright("mcp", "call", command, "double", '{"n": 4}')
    wrong = graphwright("mcp", "call", command, "double", '{"n": "x"}')

    assert done.code == 0
    assert "good 2, protocol" in done.out
    assert (called.code, called.out) == (0, "8\n")
    assert wrong.code == 1
    assert "n" in wrong.err


def test_a_run_has_the_tools_of_the_servers_that_are_named(
    graphwright: Command, server: Callable[..., str], tmp_path: Path
) -> None:
    model = tmp_path / "script.py"
    model.write_text(
        "from graphwright.testing import ScriptedModel, calls, says\n"
        "MODEL = ScriptedModel([calls('count'), says('counted')])\n",
        encoding="utf-8",
    )
    done = graphwright("run", "count", "--model", f"{model}:MODEL", "--mcp", server(), "--json")

    assert done.code == 0
    assert [event["name"] for event in done.events if event["type"] == "tool_finished"] == ["count"]
    assert done.events[-1]["text"] == "counted"
    lines = (tmp_path / "ledger").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "end of input", "the server was ended"


def test_servers_are_named_after_what_tells_them_apart(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"files": {"command": "files"}}}), encoding="utf-8")
    texts = [
        "uvx mcp-server-git --repository .",
        "npx -y @scope/server-memory",
        "python3 srv/shop.py",
        "python3 other/shop.py",
        "https://tools.example/mcp",
        str(path),
    ]

    found = servers_of(texts)

    assert list(found) == ["mcp-server-git", "server-memory", "shop", "shop_2", "tools_example", "files"]
    assert found["mcp-server-git"].args == ["mcp-server-git", "--repository", "."]


@pytest.mark.parametrize("text", ["", "  ", "say 'no", "nowhere.json"])
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        servers_of([text])
