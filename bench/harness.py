"""Find the side-by-side harness, and run one column of it in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
REPOSITORY = BENCH.parent
COLUMNS = BENCH / "columns"
DEFAULT_HARNESS = REPOSITORY.parent / "shared" / "bench"


@dataclass(kw_only=True, slots=True)
class Run:
    """What one process measured."""

    column: str
    results: dict[str, dict[str, float]] = field(default_factory=dict)
    """Workload -> figure -> value."""

    problems: list[str] = field(default_factory=list)
    """Why a workload has no figures."""

    seconds: float = 0.0


def find_harness(given: str | None) -> Path:
    """Return the folder of the harness, or end the program with what to do."""
    folder = Path(given) if given else DEFAULT_HARNESS
    if not (folder / "common.py").is_file():
        raise SystemExit(f"no harness in {str(folder)!r} (common.py is missing); give its folder with --harness")
    return folder.resolve()


def environment() -> dict[str, str]:
    """Return the environment of a measured process: the package as it is in this working copy, before any other."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "BENCH_COLUMNS": str(COLUMNS), "PYTHONWARNINGS": "ignore"}


def version_of(python: str) -> str:
    """Return the version of an interpreter, such as `3.12`, or end the program when it cannot run the columns."""
    code = "import sys, pydantic, langchain_core; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120)
    except OSError as error:
        raise SystemExit(f"interpreter {python!r} does not start: {error}") from error
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise SystemExit(f"interpreter {python!r} lacks what the columns import ({last}); bench/README.md says how")
    return done.stdout.strip()


def measure(python: str, harness: Path, column: str, workloads: Sequence[str], *, timeout: float) -> Run:
    """Run workloads of one column in a fresh process; what fails is a problem of the run, never an exception."""
    run = Run(column=column)
    started = time.perf_counter()
    command = [python, str(harness / "common.py"), column, ",".join(workloads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment())
    except subprocess.TimeoutExpired:
        run.problems.append(f"no end after {timeout:g} s")
    else:
        _read(done, workloads, run)
    run.seconds = time.perf_counter() - started
    return run


def _read(done: subprocess.CompletedProcess[str], workloads: Sequence[str], run: Run) -> None:
    try:
        said: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        run.problems.append(f"the process ended with {done.returncode} and no figures: {last}")
        return
    if "error" in said:
        run.problems.append(said["error"])
    for workload in workloads:
        figures = said["results"].get(workload, {})
        why = figures.get("error") or figures.get("skip")
        if why:
            run.problems.append(f"{workload}: {why}")
        elif figures:
            run.results[workload] = figures
