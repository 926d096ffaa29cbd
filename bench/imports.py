"""Measure what an import costs: CPU seconds of fresh processes, and the third-party packages that it loads.

    python bench/imports.py [--python PYTHON]... [--processes 15]

Standard library only. Each program runs once unmeasured, so that the disk cache is warm, and then in turn with the
others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median

from harness import environment, version_of
from targets import TARGETS, judge

PROGRAMS = {
    "import graphwright": "import graphwright\n",
    "agent built": """
import asyncio
from graphwright import build_agent
from graphwright.models import ModelCapabilities

class Model:
    name = "fake"
    capabilities = ModelCapabilities()

    async def complete(self, request):
        raise NotImplementedError

async def search(query: str, limit: int = 5) -> dict:
    "Search the documents."
    return {"hits": [query] * limit}

asyncio.run(build_agent(model=Model(), extra_tools=[search], instructions="Answer briefly."))
""",
    "agent built, LangChain": """
import asyncio
from graphwright import build_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import StructuredTool

class Model(BaseChatModel):
    @property
    def _llm_type(self):
        return "fake"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, *args, **options):
        raise NotImplementedError

async def search(query: str, limit: int = 5) -> dict:
    "Search the documents."
    return {"hits": [query] * limit}

tool = StructuredTool.from_function(coroutine=search, name="search")
asyncio.run(build_agent(model=Model(), extra_tools=[tool], instructions="Answer briefly."))
""",
    "three LangChain names": """
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langchain_core.language_models import BaseChatModel
""",
}

_AROUND = """
import json, sys, time
started, before = time.process_time(), set(sys.modules)
{program}
used = time.process_time() - started
tops = {{name.partition(".")[0] for name in set(sys.modules) - before}}
foreign = sorted(name for name in tops - set(sys.stdlib_module_names) - {{"graphwright"}} if not name.startswith("__"))
print(json.dumps([used * 1000, foreign]))
"""


def measure_imports(python: str, *, processes: int = 15) -> tuple[dict[str, list[float]], dict[str, list[str]]]:
    """Return the CPU milliseconds of each process, and the third-party packages, of each program."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    foreign: dict[str, list[str]] = {}
    for count in range(processes + 1):
        for name, program in PROGRAMS.items():
            used, packages = _run(python, program)
            if count:
                times[name].append(used)
            foreign[name] = packages
    return times, foreign


def as_figures(times: dict[str, list[float]], foreign: dict[str, list[str]]) -> dict[str, dict[str, dict[int, float]]]:
    """Return the measurements as the targets read them. The processes are so many that one median stands for all."""
    return {
        name: {"W1.cpu_ms": {0: median(used)}, "W1.third_party": {0: float(len(foreign[name]))}}
        for name, used in times.items()
    }


def _run(python: str, program: str) -> tuple[float, list[str]]:
    code = _AROUND.format(program=program)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, env=environment())
    if done.returncode:
        raise SystemExit(f"the program failed:\n{program}\n{done.stderr}")
    used, packages = json.loads(done.stdout)
    return used, packages


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time of imports in fresh processes.")
    parser.add_argument("--python", action="append", help="an interpreter; may be given several times")
    parser.add_argument("--processes", type=int, default=15)
    options = parser.parse_args()
    for python in options.python or [sys.executable]:
        version = version_of(python)
        times, foreign = measure_imports(python, processes=options.processes)
        print(f"Python {version}, CPU ms of {options.processes} processes: median (min - max)")
        for name, used in times.items():
            packages = ", ".join(foreign[name]) or "none"
            print(f"  {name:24} {median(used):7.1f} ({min(used):.1f} - {max(used):.1f})  third-party: {packages}")
        figures = as_figures(times, foreign)
        for target in TARGETS:
            if target.figure.startswith("W1.") and target.limit is not None:
                verdict = judge(target, figures, version)
                print(f"  {target.name}: {verdict.judged:.2f}, at most {target.limit:g}: {verdict.outcome}")


if __name__ == "__main__":
    main()
