import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path

from graphwright import build_agent
from graphwright.engine.interrupt import interrupt
from graphwright.runlog import SQLiteRunLog
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools import FunctionTool


async def ask(question: str) -> str:
    """Ask the boss."""
    return await interrupt("boss", {"question": question})


async def process(file: Path, steps: list, goal: str | None) -> None:
    asking = FunctionTool(ask)
    asking.reenterable = True
    async with aclosing(SQLiteRunLog(file)) as log:
        agent = await build_agent(model=ScriptedModel(steps), extra_tools=[asking], runlog=log)
        if goal is not None:
            result = await agent.ainvoke(goal, session_id="ann")
        else:
            result = await agent.resume("ann", "yes", by="the boss")
        print(result.status, [row.kind for row in await log.rows(result.run_id)])
        print([(thread.thread_id, thread.status, thread.runs) for thread in await log.threads()])
        if result.status == "completed":
            print("deleted:", await log.delete_thread("ann"))


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "runs.db")
    asyncio.run(process(file, [calls("ask", question="May we?")], "Find out whether we may."))
    asyncio.run(process(file, [says("We may.")], None))
