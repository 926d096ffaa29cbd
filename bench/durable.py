"""Figures of runs that are written down: many at once, many that are paused, and one that goes on in a cold process.

    python bench/durable.py

Prints one line a figure. Needs the package and nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc

from graphwright import OrchestratorBot
from graphwright.messages import AIMessage
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.runlog import MemoryRunLog, SQLiteRunLog

ROUNDS = 20
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


async def price(item: str) -> str:
    """Return a price."""
    return f"{item} costs 3"


class Model:
    """A model that calls a tool so many times and answers; it looks at the last message only."""

    name = "fake"

    def __init__(self, rounds: int) -> None:
        self.capabilities = ModelCapabilities(streaming=False)
        self._rounds = rounds

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer the last message."""
        last = request.messages[-1]
        done = int(last.tool_call_id.split("_")[1]) + 1 if last.type == "tool" else 0
        if done >= self._rounds:
            return AIMessage("done", usage_metadata=USAGE)
        call = {"name": "price", "args": {"item": f"mango {done}"}, "id": f"call_{done}"}
        return AIMessage("", tool_calls=[call], usage_metadata=USAGE)


def bot(log: object, folder: str, rounds: int = ROUNDS) -> OrchestratorBot:
    """Return a bot on a log."""
    return OrchestratorBot(
        Model(rounds), None, "Work.", [price], memory_path=folder, checkpointer=log, recursion_limit=10_000
    )


def size_of(file: str) -> int:
    """Return the bytes of a file."""
    return os.path.getsize(file)


async def many_at_once(folder: str) -> None:
    """CPU of a durable round, alone and with 100 runs at once."""
    for count in (1, 100):
        log = SQLiteRunLog(f"{folder}/many{count}.db")
        agent = bot(log, folder)
        await agent.arun("warm up")
        started = time.process_time()
        await asyncio.gather(*(agent.arun("go", thread_id=f"t{n}") for n in range(count)))
        used = (time.process_time() - started) / count / ROUNDS
        size = size_of(f"{folder}/many{count}.db")
        await log.aclose()
        print(f"durable round, {count} at once: {used * 1e3:.3f} ms CPU; file {size / 1024:.0f} KB")


async def many_paused(folder: str) -> None:
    """Memory that a paused run holds, in a log in memory."""
    log = MemoryRunLog(max_threads=2000)
    agent = bot(log, folder, 1)
    await agent.arun("warm up", mode="ask", thread_id="warm")
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for n in range(1000):
        await agent.arun("go", mode="ask", thread_id=f"t{n}")
    gc.collect()
    held = (tracemalloc.get_traced_memory()[0] - before) / 1000
    tracemalloc.stop()
    print(f"a paused run in memory: {held / 1024:.1f} KB")


async def pause_one(folder: str) -> None:
    """Leave a run of 20 rounds that is paused at its last one."""
    log = SQLiteRunLog(f"{folder}/cold.db")
    agent = bot(log, folder, 1)
    await agent.arun("go", mode="ask", thread_id="cold")
    await log.aclose()


async def go_on(folder: str) -> None:
    """Go on with it, and print how long that took beyond imports."""
    started = time.perf_counter()
    log = SQLiteRunLog(f"{folder}/cold.db")
    response = await bot(log, folder, 1).aresume("cold", True)
    took = time.perf_counter() - started
    await log.aclose()
    assert response.content == "done", response
    print(f"a paused run goes on in a cold process: {took * 1e3:.1f} ms beyond imports")


def main() -> None:
    """Print every figure."""
    if len(sys.argv) > 1:
        asyncio.run(go_on(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(many_at_once(folder))
        asyncio.run(many_paused(folder))
        asyncio.run(pause_one(folder))
        subprocess.run([sys.executable, __file__, folder], check=True)


if __name__ == "__main__":
    main()
