"""The second part of the demo: a run asks, waits for approval, is killed, and goes on in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphwright.cli._text import one_line
from graphwright.exceptions import GraphwrightError

__all__ = ["show_crash"]

_INTRODUCTION = """
Now a run that asks, needs an approval, and loses its process in the middle. What it does is kept in a
run log, so another process goes on with it. The answers are typed for you, the rest is real.
"""


def show_crash(say: Callable[[str], None]) -> None:
    """Run the scene in child processes, and tell what happens.

    Raises:
        GraphwrightError: a child did something else than it should.
    """
    say(_INTRODUCTION)
    with TemporaryDirectory(prefix="graphwright-demo-") as folder:
        with _child("begin", folder) as first:
            for told in _told(first):
                if told["type"] == "asks":
                    _answer(first, told, say)
                elif told["type"] == "thinks":
                    break
                else:
                    say(f"process 1  {told['text']}")
            else:
                raise GraphwrightError(f"the demo's first process ended early: {_last_words(first)}")
            first.kill()  # SIGKILL, where there are signals: the process can do nothing about it
            first.wait()
        say("           killed, while the model was writing its answer")
        with _child("go_on", folder) as second:
            for told in _told(second):
                say(f"process 2  {told['text']}")
            if second.wait() != 0:
                raise GraphwrightError(f"the demo's second process failed: {_last_words(second)}")
        written = Path(folder, "report.txt").read_text(encoding="utf-8").splitlines()
        say(f"           report.txt was written {len(written)} time{'' if len(written) == 1 else 's'}: {written[0]}")
        say("\nThe trace of the run, as it is in the log (your own runs: graphwright runs show RUN --trace)")
        for line in _trace(folder):
            say(line)


def _answer(child: subprocess.Popen[str], asked: dict[str, Any], say: Callable[[str], None]) -> None:
    answer = {"budget": 2, "form": "short"} if asked["kind"] == "question" else True
    for line in asked["lines"]:
        say(f"process 1  {line}")
    say(f"you        {json.dumps(answer)}")
    assert child.stdin is not None
    child.stdin.write(json.dumps(answer) + "\n")
    child.stdin.flush()


def _child(part: str, folder: str) -> subprocess.Popen[str]:
    source = str(Path(__file__).parents[2])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "graphwright.cli._demo_child", part, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if not os.environ.get("GRAPHWRIGHT_DEBUG") else None,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
    )


def _told(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    try:
        for line in child.stdout:
            yield json.loads(line)
    except BaseException:
        child.kill()
        raise


def _last_words(child: subprocess.Popen[str]) -> str:
    lines = child.stderr.read().splitlines() if child.stderr is not None else []
    return one_line(lines[-1], 300) if lines else "it said nothing; GRAPHWRIGHT_DEBUG=1 shows more"


def _trace(folder: str) -> list[str]:
    import asyncio

    from graphwright.cli._run_report import trace_lines
    from graphwright.runlog import SQLiteRunLog

    async def reading() -> list[str]:
        log = SQLiteRunLog(Path(folder, "runs.db"))
        try:
            latest = await log.latest("demo")
            rows = await log.rows(latest.run_id) if latest is not None else []
            return [one_line(line) if not line.startswith(" ") else line for line in trace_lines(rows)]
        finally:
            await log.aclose()

    return asyncio.run(reading())
