from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphwright.agent import AGENT_PATTERNS

Command = Callable[..., Any]

GRAPHS = """
from graphwright import PromptGraph, PromptNode, build_agent
from graphwright.testing import ScriptedModel

def make():
    graph = PromptGraph("mine", nodes=[PromptNode("first", is_entry=True), PromptNode("last", is_terminal=True)])
    return graph.always("first", "last")

GRAPH = make()
LOST = make().add_node(PromptNode("island", description="evil \\x1b[2J"))

async def slow():
    return GRAPH

async def agent():
    return await build_agent(model=ScriptedModel(), agent_pattern=GRAPH)

def fails():
    raise OSError("no disk")

NUMBER = 3
def number():
    return NUMBER
"""

MERMAID = """\
graph TD
    first(["first<br/>PromptNode"])
    last["last<br/>PromptNode"]
    __end__(("end"))
    first --> last
"""


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    path = tmp_path / "my_graphs.py"
    path.write_text(GRAPHS, encoding="utf-8")
    return path


@pytest.mark.parametrize("pattern", [name for name in AGENT_PATTERNS if name != "code-action"])
def test_every_pattern_can_be_drawn_in_both_ways(graphwright: Command, pattern: str) -> None:
    text = graphwright("graph", pattern)
    mermaid = graphwright("graph", pattern, "--format", "mermaid")

    assert (text.code, text.err, mermaid.code, mermaid.err) == (0, "", 0, "")
    assert text.out.startswith(f'PromptGraph "{pattern}"\n')
    assert mermaid.out.startswith("graph TD\n")
    assert "__end__" in mermaid.out


@pytest.mark.parametrize("name", ["GRAPH", "make", "slow", "agent"])
def test_a_graph_of_a_file_can_be_an_object_a_factory_or_an_agent(
    graphwright: Command, graphs: Path, name: str
) -> None:
    done = graphwright("graph", f"{graphs}:{name}", "--format", "mermaid")

    assert (done.code, done.out, done.err) == (0, MERMAID, "")


def test_findings_go_to_stderr_and_the_drawing_is_still_made(graphwright: Command, graphs: Path) -> None:
    done = graphwright("graph", f"{graphs}:LOST")

    assert done.code == 0
    assert done.out.splitlines()[0] == 'PromptGraph "mine"'
    assert r"evil \x1b[2J" in done.out
    assert done.err.splitlines() != []
    assert all(line.startswith("graphwright: finding: ") for line in done.err.splitlines())
    assert "'island'" in done.err


def test_an_unknown_pattern_lists_those_that_there_are(graphwright: Command) -> None:
    done = graphwright("graph", "raect")

    assert (done.code, done.out) == (2, "")
    assert f"no agent pattern named 'raect'; choose one of {', '.join(AGENT_PATTERNS)}" in done.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NUMBER", "is a int; name a PromptGraph, an agent, or a function that makes one"),
        ("number", "is a int; name a PromptGraph"),
        ("fails", "calling it failed: OSError: no disk"),
        ("gone", "there is no 'gone' in"),
    ],
)
def test_what_is_no_graph_is_said(graphwright: Command, graphs: Path, name: str, said: str) -> None:
    done = graphwright("graph", f"{graphs}:{name}")

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
