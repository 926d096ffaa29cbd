"""What the engine costs by itself: a step without a model, compaction, building a graph, many runs at once.

    python bench/engine.py

Everything runs in this process, on models that answer at once. Best of several tries, CPU time.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from langchain_core.messages import AIMessage

from graphwright.agent import build_agent
from graphwright.engine import PromptGraph, PromptGraphEngine, node
from graphwright.models import ModelCapabilities, ModelRequest

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class Counting:
    """Calls `step` as often as the question says, then answers."""

    name = "counting"
    capabilities = ModelCapabilities()

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer by what came last."""
        asked = re.fullmatch(r"left=(\d+)", str(request.messages[-1].content))
        left = int(asked[1]) if asked else 0
        if not left or not request.tools:
            return AIMessage(content='{"passes": true, "issues": []} done', usage_metadata=USAGE)
        call = {"id": f"c{left}", "name": "step", "args": {"left": left - 1}, "type": "tool_call"}
        return AIMessage(content="", tool_calls=[call], usage_metadata=USAGE)


async def step(left: int) -> str:
    """Do one step."""
    return f"left={left}"


def empty(name: str) -> Any:
    """Return a node that does nothing."""

    @node(name)
    async def run() -> None:
        return None

    return run


async def best(run: Callable[[], Awaitable[Any]], tries: int, times: int) -> float:
    """Return CPU microseconds of one call."""
    fastest = float("inf")
    for _ in range(tries):
        started = time.process_time()
        for _ in range(times):
            await run()
        fastest = min(fastest, (time.process_time() - started) / times * 1e6)
    return fastest


async def main() -> None:
    """Print one line a figure."""
    logging.disable(logging.WARNING)
    names = [f"n{number}" for number in range(10)]
    graph = PromptGraph(nodes=[empty(name) for name in names]).set_entry("n0").sequential(*names)
    engine = PromptGraphEngine(graph)
    per_step = await best(lambda: engine.ainvoke("go"), 7, 300) / 10
    print(f"ten nodes without a model: {per_step:.2f} us a step (aim <= 6)")

    rounds = {}
    for compaction in (False, None):
        agent = await build_agent(
            model=Counting(), extra_tools=[step], max_agent_iterations=1000, context_compaction=compaction
        )
        rounds[compaction] = await best(lambda agent=agent: agent.ainvoke("left=200"), 7, 3) / 200
    ratio = rounds[None] / rounds[False]
    print(f"200 rounds: {rounds[False]:.1f} us off, {rounds[None]:.1f} us on, ratio {ratio:.2f} (aim <= 1.15)")

    started = time.process_time()
    wide = PromptGraph(nodes=[empty("a"), empty("b")]).set_entry("a")
    for number in range(4000):
        wide.on_output("a", "b", "n", number)
    print(f"4,000 edges: {(time.process_time() - started) * 1000:.0f} ms (aim < 50)")

    agent = await build_agent(model=Counting(), extra_tools=[step], agent_pattern="research")
    one = await best(lambda: agent.ainvoke("left=3"), 5, 100)
    many = await best(lambda: asyncio.gather(*(agent.ainvoke("left=3") for _ in range(1000))), 3, 1) / 1000
    print(f"research: {one:.0f} us alone, {many:.0f} us a run of 1,000 at once, ratio {many / one:.2f} (aim <= 1.3)")


asyncio.run(main())
