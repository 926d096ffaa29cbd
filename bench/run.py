"""Run our columns and the baselines side by side and print every target with its figure.

    python bench/run.py [--python PYTHON]... [--harness FOLDER] [--repeats 5] [--only W3,W4] [--json FILE]

Standard library only. Every column runs in fresh processes of the same interpreter, interleaved with the others; the
order is rotated each repeat. The exit status is 1 when a target is missed or a process failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from harness import Run, find_harness, measure, version_of
from imports import as_figures, measure_imports
from targets import TARGETS, Verdict, judge, workloads_by_column

# One process a group: W6 measures memory, which what ran before it in the process has grown already.
GROUPS = (("W3", "W4", "W5", "W7"), ("W6",))
EVERY = ("W1", *(workload for group in GROUPS for workload in group))


def main() -> None:
    """Measure, print the table, and say with the exit status whether every target is met."""
    options = _options()
    harness = find_harness(options.harness)
    only = options.only.split(",") if options.only else list(EVERY)
    unknown = sorted(set(only) - set(EVERY))
    if unknown:
        raise SystemExit(f"unknown workload {', '.join(unknown)}; there are {', '.join(EVERY)}")
    pythons = options.python or [sys.executable]
    interpreters = {version_of(python): python for python in pythons}
    if len(interpreters) < len(pythons):
        raise SystemExit(f"two of {', '.join(pythons)} are the same version of Python; give one of each")
    record: dict[str, dict[str, dict[str, dict[int, float]]]] = {}
    problems: list[str] = []
    loads: list[float] = []
    for version, python in interpreters.items():
        record[version] = {}
        if "W1" in only:
            record[version].update(as_figures(*measure_imports(python)))
        for repeat, run in _measured(python, version, harness, only, options):
            loads.append(os.getloadavg()[0])
            problems += [f"Python {version}, repeat {repeat}, {run.column}: {text}" for text in run.problems]
            own = record[version].setdefault(run.column, {})
            for workload, figures in run.results.items():
                for name, value in figures.items():
                    own.setdefault(f"{workload}.{name}", {})[repeat] = value
    verdicts = {
        version: [judge(target, figures, version) for target in TARGETS if target.figure.partition(".")[0] in only]
        for version, figures in record.items()
    }
    _print(verdicts, repeats=options.repeats, loads=loads, problems=problems)
    if options.json:
        Path(options.json).write_text(json.dumps({"load": loads, "figures": record, "problems": problems}, indent=1))
    bad = any(verdict.outcome in ("MISSED", "no figures") for row in verdicts.values() for verdict in row)
    raise SystemExit(1 if bad or problems else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Graphwright against loops written by hand.")
    parser.add_argument("--python", action="append", help="an interpreter; may be given several times")
    parser.add_argument("--harness", help="folder of the side-by-side harness")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="workloads, such as W3,W4")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one process may take")
    parser.add_argument("--json", help="file for every single figure")
    return parser.parse_args()


def _measured(
    python: str, version: str, harness: Path, only: list[str], options: argparse.Namespace
) -> Iterator[tuple[int, Run]]:
    """Yield what each process measured, with the number of its repeat."""
    needed = workloads_by_column([workload for workload in only if workload != "W1"])
    columns = list(needed)
    for repeat in range(1, options.repeats + 1):
        turn = repeat % len(columns) if columns else 0
        for group in GROUPS:
            for column in (*columns[turn:], *columns[:turn]):
                workloads = [workload for workload in group if workload in needed[column]]
                if not workloads:
                    continue
                run = measure(python, harness, column, workloads, timeout=options.timeout)
                print(
                    f"Python {version}, repeat {repeat} of {options.repeats}, {'+'.join(workloads)}, {column}: "
                    f"{run.seconds:.1f} s, load {os.getloadavg()[0]:.1f}",
                    file=sys.stderr,
                )
                yield repeat, run


def _print(verdicts: dict[str, list[Verdict]], *, repeats: int, loads: list[float], problems: list[str]) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, {repeats} repeats", end="")
    print(f", load {min(loads):.1f} - {max(loads):.1f}" if loads else "")
    print("\nJudged is the median over the repeats of the ratio inside one repeat (in brackets: least - most).\n")
    heads = ("target", "Python", "column", "figure", "reference", "judged", "limit", "outcome")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for version, row in verdicts.items():
        for verdict in row:
            print("| " + " | ".join(_cells(verdict, version)) + " |")
    for problem in problems:
        print(f"\nproblem: {problem}")


def _cells(verdict: Verdict, version: str) -> list[str]:
    target = verdict.target
    if verdict.outcome == "no figures":
        return [target.name, version, target.column, "", "", "", _limit(verdict), verdict.outcome]
    unit = f" {target.unit}" if target.unit else ""
    referred = target.against or (target.over or "").partition(".")[2]
    reference = "" if verdict.reference is None else f"{verdict.reference:.1f}{unit} ({referred})"
    times = "x" if verdict.reference is not None or target.unit == "x" else unit
    low, high = min(verdict.ratios), max(verdict.ratios)
    spread = f" ({low:.2f} - {high:.2f})" if len(verdict.ratios) > 1 else ""
    return [
        target.name,
        version,
        target.column,
        f"{verdict.figure:.2f}{unit}",
        reference,
        f"{verdict.judged:.2f}{times}{spread}",
        _limit(verdict),
        verdict.outcome,
    ]


def _limit(verdict: Verdict) -> str:
    if verdict.limit is None:
        return "-"
    return f"{'<' if verdict.target.strict else '<='} {verdict.limit:g}"


if __name__ == "__main__":
    main()
