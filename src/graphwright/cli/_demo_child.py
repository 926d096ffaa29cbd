"""One process of the demo's second part: it tells what it does as JSON lines, and reads the answers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from graphwright.cli._forms import lines_of
from graphwright.cli._text import one_line
from graphwright.messages import text_of
from graphwright.orchestrator import OrchestratorBot
from graphwright.run_events import ModelStarted, ToolFinished, ToolStarted
from graphwright.runlog import SQLiteRunLog
from graphwright.testing import ScriptedModel, call, calls_many, says
from graphwright.tools import as_tools

__all__: list[str] = []

_THREAD = "demo"
_QUESTIONS = [
    {
        "id": "form",
        "text": "How shall the report be?",
        "type": "single_choice",
        "options": [{"value": "short"}, {"value": "long"}],
    },
    {"id": "budget", "text": "How many minutes may it take to read?", "type": "number"},
]


def _say(type: str, **told: Any) -> None:
    print(json.dumps({"type": type, **told}), flush=True)


class _Scene:
    def __init__(self, folder: Path, log: SQLiteRunLog, *, hangs: bool) -> None:
        self._folder = folder
        self._log = log
        self._hangs = hangs

    async def next_step(self, messages: list[Any]) -> Any:
        """Return what to do next, going by what the tools and the user have said."""
        results = {message.name: text_of(message) for message in messages if message.type == "tool"}
        if "survey" not in results:
            return calls_many(call("survey"), usage=None)
        if "ask_user" not in results:
            return calls_many(call("ask_user", questions=_QUESTIONS), usage=None)
        if "write_report" not in results:
            wish = json.loads(results["ask_user"].partition(": ")[2])
            text = f"{results['survey']} modules ({wish['form']}, {wish['budget']} min)"
            return calls_many(call("write_report", text=text), usage=None)
        if self._hangs:
            await self._until_kept("write_report")
            _say("thinks")
            await asyncio.Event().wait()
        return says(f"The report is written. It says: {results['write_report']}", usage=None)

    async def _until_kept(self, name: str) -> None:
        """Wait until the result of a tool is in the file, so that the end of the process does not take it along."""
        while True:
            latest = await self._log.latest(_THREAD)
            rows = await self._log.rows(latest.run_id) if latest is not None else []
            if any(row.kind == "outcome" and row.data["message"].name == name for row in rows):
                return
            await asyncio.sleep(0.01)

    def survey(self) -> str:
        """Count the modules of the installed package."""
        return str(sum(1 for _ in Path(__file__).parents[1].rglob("*.py")))

    def write_report(self, text: str) -> str:
        """Write the report."""
        with open(self._folder / "report.txt", "a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return text


async def _play(part: str, folder: Path) -> None:
    log = SQLiteRunLog(folder / "runs.db")
    scene = _Scene(folder, log, hangs=part == "begin")
    (survey,) = as_tools([scene.survey])
    survey.risk_level = 0
    bot = OrchestratorBot(
        ScriptedModel.answering(scene.next_step),
        tools=[survey, scene.write_report],
        checkpointer=log,
        memory_path=str(folder / "memory"),
        enable_user_questions=True,
    )
    bot_run = bot.start(
        "Write a report about this package." if part == "begin" else None, thread_id=_THREAD, mode="ask"
    )
    reader, seen = bot_run.events(), Counter[type]()
    while True:
        async for event in reader:
            seen[type(event)] += 1
            _tell(event)
        if not bot_run.pending:
            break
        item = bot_run.pending[0]
        _say("asks", kind=item.kind, lines=lines_of(item))
        answer = json.loads(sys.stdin.readline())
        reader = bot_run.events()
        await bot_run.answer(item.id, answer, by="demo")
    response = await bot_run.result()
    _say("tells", text=f"asked the model {_times(seen[ModelStarted])} and called a tool {_times(seen[ToolStarted])}")
    _say("tells", text=one_line(response.content, 300))
    await log.aclose()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _tell(event: Any) -> None:
    if isinstance(event, ToolStarted):
        _say("tells", text=f"calls {event.call.name}")
    elif isinstance(event, ToolFinished):
        _say("tells", text=f"{event.call.name} gave: {one_line(text_of(event.result.message), 200)}")


if __name__ == "__main__":
    asyncio.run(_play(sys.argv[1], Path(sys.argv[2])))
