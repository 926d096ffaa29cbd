"""Show where the time of one column goes in one workload.

    python bench/profile_run.py graphwright_native W4 [--how calls|samples] [--seconds 5] [--top 30]

`calls` counts every call with `cProfile`: exact counts, but small functions look dearer than they are. `samples` looks
every half millisecond at the line that runs, and costs next to nothing: trust its shares. What other threads do is not
in them. Standard library only; run it with the interpreter that the column is to be measured on.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import importlib
import pstats
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

from harness import COLUMNS, REPOSITORY, find_harness

TICK_SECONDS = 0.0005


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(description="Where the time of one column goes.")
    parser.add_argument("column")
    parser.add_argument("workload", choices=("W3", "W4", "W4sync", "W5", "W5sync", "W6", "W7"))
    parser.add_argument("--how", choices=("calls", "samples"), default="samples")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--top", type=int, default=30)
    parser.add_argument("--harness", help="folder of the side-by-side harness")
    options = parser.parse_args()
    sys.path[:0] = [str(REPOSITORY / "src"), str(COLUMNS)]
    sys.path += [str(folder := find_harness(options.harness)), str(folder / "columns")]
    asyncio.run(_profile(options))


async def _profile(options: argparse.Namespace) -> None:
    once, unit, units = await _work(options.column, options.workload)
    await once()
    await once()
    profiler: Any = _Sampler() if options.how == "samples" else cProfile.Profile()
    count, end, used = 0, time.perf_counter() + options.seconds, time.process_time()
    profiler.enable()
    while time.perf_counter() < end:
        await once()
        count += 1
    profiler.disable()
    each = (time.process_time() - used) / count / units * 1e6
    print(f"{options.column} {options.workload}: {count} times, {each:.2f} us of CPU a {unit} while watched")
    if isinstance(profiler, _Sampler):
        profiler.show(options.top, each, unit)
    else:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(options.top)


async def _work(column_name: str, workload: str) -> tuple[Callable[[], Awaitable[Any]], str, int]:
    """Return what to run, the word for the unit of its cost, and how many units it is."""
    common = importlib.import_module("common")
    module = importlib.import_module(column_name)
    module.load()
    column = module.Column()
    kinds = {"W4sync": "three_sync", "W5": "nap_async", "W5sync": "nap_sync"}
    agent = await column.abuild(column.tools(common.FUNCS[kinds.get(workload, "three")]), stream=workload == "W7")

    async def stream() -> None:
        async for _ in column.stream(agent, "stream please"):
            pass

    async def many() -> None:
        common.M.latency = 0.05
        await asyncio.gather(*(column.run(agent, "rounds=5") for _ in range(1000)))

    def ask(prompt: str) -> Callable[[], Awaitable[Any]]:
        return lambda: common.checked(column.run(agent, prompt))

    works = {
        "W3": (ask("hello"), "run", 1),
        "W4": (ask("rounds=50"), "round", 50),
        "W4sync": (ask("rounds=50"), "round", 50),
        "W5": (ask("wide=32:nap_async"), "turn of 32 calls", 1),
        "W5sync": (ask("wide=32:nap_sync"), "turn of 32 calls", 1),
        "W6": (many, "round", 5000),
        "W7": (stream, "chunk", common.CHUNKS),
    }
    return works[workload]


class _Sampler:
    """Counts, tick by tick, which line runs and which functions wait for it."""

    def __init__(self) -> None:
        self._lines: Counter[tuple[str, int, str]] = Counter()
        self._own: Counter[tuple[str, str]] = Counter()
        self._inside: Counter[tuple[str, str]] = Counter()
        self._ticks = 0
        # The timers of CPU time tick no finer than the kernel's scheduler, which is too coarse here.
        signal.signal(signal.SIGALRM, self._look)

    def enable(self) -> None:
        """Start to look."""
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)

    def disable(self) -> None:
        """Stop looking."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def show(self, top: int, each: float, unit: str) -> None:
        """Print the dearest functions and lines; `each` is the cost of a unit in microseconds."""
        total = self._ticks
        if not total:
            print("no sample was taken; give more --seconds")
            return
        print(f"{total} samples; us a {unit}, share")
        tables: list[tuple[str, Counter[Any]]] = [
            ("by function, its own time", self._own),
            ("by function, with what it calls", self._inside),
            ("by line", self._lines),
        ]
        for title, counter in tables:
            print(f"\n{title}")
            for key, ticks in counter.most_common(top):
                file, *rest = key
                print(f"  {ticks / total * each:8.2f} {ticks / total:6.1%}  {file}:{':'.join(map(str, rest))}")

    def _look(self, number: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        file, name = _place(frame)
        if name.endswith(("Selector.select", "_Sampler._look")):
            return  # idle, or still busy with the tick before
        self._ticks += 1
        self._lines[file, frame.f_lineno, name] += 1
        self._own[file, name] += 1
        inside = set()
        while frame is not None:
            inside.add(_place(frame))
            frame = frame.f_back
        self._inside.update(inside)


def _place(frame: FrameType) -> tuple[str, str]:
    file = frame.f_code.co_filename
    for mark in ("site-packages/", "/src/", "/lib/", "/bench/"):
        _, found, after = file.rpartition(mark)
        if found:
            file = after
            break
    return file, frame.f_code.co_qualname


if __name__ == "__main__":
    main()
