"""What the tests of the command line stand on: a command run in this process, and one run in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphwright.cli.main import main

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ended]


@pytest.fixture
def graphwright(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("GRAPHWRIGHT_DEBUG", raising=False)

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[str]]:
    """Start a command in a process of its own, in pipes unless told otherwise."""

    def start(*arguments: str | Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        variables = {**os.environ, "PYTHONPATH": str(SOURCE), **(env or {})}
        variables.pop("GRAPHWRIGHT_DEBUG", None)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "graphwright", *map(str, arguments)]
        return subprocess.Popen(command, env=variables, text=True, **{**pipes, **options})

    return start


@pytest.fixture
def model_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a Python file whose `MODEL` is a scripted model with these steps, and return how `--model` names it."""

    def write(steps: str) -> str:
        path = tmp_path / "own_model.py"
        path.write_text(
            "from graphwright.testing import *\nfrom graphwright.testing import ScriptedModel\n"
            f"MODEL = ScriptedModel([{steps}])\n",
            encoding="utf-8",
        )
        return f"{path}:MODEL"

    return write


_SIDE_BY_SIDE = """
import asyncio
from graphwright import PromptGraph, PromptNode
from graphwright.engine.nodes import ParallelNode
from graphwright.testing import ScriptedModel, says

MODEL = ScriptedModel(["not asked"])

class Loud:
    "Says everything while the other one is in the middle of its text."
    name = "loud"
    capabilities = MODEL.capabilities

    def __init__(self, other_goes_on):
        self._model, self._done = ScriptedModel([says(chunks=["b1 ", "b2\\n", "b3"])]), other_goes_on

    async def complete(self, request): ...

    async def stream(self, request):
        async for piece in self._model.stream(request):
            yield piece
        self._done.set()

def make():
    loud_is_done = asyncio.Event()
    quiet = ScriptedModel([says(chunks=["a1 ", loud_is_done, "a2\\n", "a3"])])
    nodes = [PromptNode("left", model_override=quiet), PromptNode("right", model_override=Loud(loud_is_done))]
    return PromptGraph("both", nodes=[ParallelNode("fan", nodes=nodes, is_entry=True, is_terminal=True)])
"""


@pytest.fixture
def side_by_side(tmp_path: Path) -> Path:
    """Write a Python file with a graph whose two nodes write at the same time."""
    path = tmp_path / "both.py"
    path.write_text(_SIDE_BY_SIDE, encoding="utf-8")
    return path
