"""Time searches in one caller's 100,000 memories: `python bench/memory.py [how many]`."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from graphwright.memory import SQLiteMemoryProvider


async def main(count: int) -> None:
    """Fill a file with sentences of twenty words, drawn as in real text, and print how long a search takes."""
    draw = random.Random(7)
    words = [f"word{number}" for number in range(20_000)]
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    with tempfile.TemporaryDirectory() as folder:
        memory = SQLiteMemoryProvider(Path(folder) / "memory.db")
        began = time.perf_counter()
        for _ in range(count):
            await memory.add(" ".join(draw.choices(words, cum_weights=weights, k=20)), user_id="u")
        print(f"add: {(time.perf_counter() - began) / count * 1000:.3f} ms each")
        for name, weighted in (("five words drawn as the text is", weights), ("five words drawn evenly", None)):
            took = []
            for _ in range(100):
                query = " ".join(draw.choices(words, cum_weights=weighted, k=5))
                began = time.perf_counter()
                await memory.search(query, user_id="u")
                took.append((time.perf_counter() - began) * 1000)
            print(f"search, {name}: p50 {statistics.median(took):.2f} ms, max {max(took):.2f} ms")
        await memory.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
