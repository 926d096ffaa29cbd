"""`graphwright runs`: list, read, go on with, and delete the runs of a run log."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from graphwright.cli._arguments import (
    Parser,
    add_agent_options,
    add_log_option,
    add_output_options,
    seconds,
    whole_number,
)
from graphwright.cli._exits import ANSWERED, NO_ANSWER, USAGE
from graphwright.cli._servers import add_server_option

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.runlog import RunInfo, RunLog, SQLiteRunLog

__all__ = ["add_to", "find_run"]

_STATUSES = ("running", "paused", "completed", "aborted", "limit", "rejected", "failed", "abandoned")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_TITLE = 50
_LOOKED_AT = 1000
_Work = Callable[[argparse.Namespace, "SQLiteRunLog"], Coroutine[Any, Any, int]]


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    text = "List, read, go on with, and delete the runs of a run log."
    parser = commands.add_parser("runs", help="list, read, resume and delete runs of a run log", description=text)
    parts = parser.add_subparsers(title="what to do", metavar="COMMAND", required=True, parser_class=Parser)
    _add_list(parts)
    _add_show(parts)
    _add_resume(parts)
    delete = parts.add_parser("delete", help="delete a thread with its runs", description="Delete a thread.")
    delete.add_argument("thread", metavar="THREAD")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    _finish(delete, _delete)
    prune = parts.add_parser("prune", help="delete old threads; paused ones stay", description="Delete old threads.")
    prune.add_argument("--older-than", metavar="AGE", type=_age, help="such as 30d, 12h: not written for so long")
    prune.add_argument("--keep", metavar="N", type=whole_number, help="keep the newest N threads")
    _finish(prune, _prune)


def _add_list(parts: Commands) -> None:
    listing = parts.add_parser("list", help="list runs, the latest first", description="List runs.")
    listing.add_argument("--status", choices=_STATUSES)
    listing.add_argument("--thread", metavar="ID", help="the runs of this thread only")
    listing.add_argument("--limit", metavar="N", type=whole_number, default=20, help="most runs (default: 20)")
    listing.add_argument("--json", action="store_true", help="print one JSON object a line")
    _finish(listing, _list)


def _add_show(parts: Commands) -> None:
    show = parts.add_parser("show", help="show a run", description="Show what was said, called and asked in a run.")
    show.add_argument("run", metavar="RUN|THREAD", help="a run, its beginning, or a thread for its latest run")
    show.add_argument("--trace", action="store_true", help="show the rows of the log, too")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    _finish(show, _show)


def _add_resume(parts: Commands) -> None:
    text = "Go on with a run that is paused or was cut off. Without answers, they are asked for at a terminal."
    resume = parts.add_parser("resume", help="go on with a run", description=text)
    resume.add_argument("run", metavar="RUN|THREAD")
    resume.add_argument("--agent", metavar="module:name", help="the agent; else it is made from the options of run")
    add_agent_options(resume)
    add_server_option(resume)
    resume.add_argument("--pattern", metavar="NAME|FILE.py:NAME", help="the agent's graph (default: react)")
    resume.add_argument("--timeout", metavar="S", type=seconds, help="most seconds for the rest of the run")
    resume.add_argument(
        "--answer", metavar="ID=JSON", action="append", default=[], help="the answer to what waits; may be repeated"
    )
    verdict = resume.add_mutually_exclusive_group()
    verdict.add_argument("--approve", action="store_true", help="approve everything that waits for a yes now")
    verdict.add_argument("--deny", metavar="WHY", nargs="?", const="", help="deny everything that waits for a yes now")
    add_output_options(resume)
    _finish(resume, _resume)


def _finish(parser: Parser, work: _Work) -> None:
    add_log_option(parser)
    parser.set_defaults(execute=lambda options: _with_log(options, work))


def _with_log(options: argparse.Namespace, work: _Work) -> int:
    from graphwright.cli._agents import existing_log
    from graphwright.cli._event_loop import run_async

    async def working() -> int:
        log = existing_log(options.log)
        try:
            return await work(options, log)
        finally:
            await log.aclose()

    return run_async(working())


async def find_run(log: RunLog, name: str) -> RunInfo:
    """Return the run of this id, the latest run of this thread, or the one run whose id begins so.

    Raises:
        ConfigurationError: there is none, or more than one.
    """
    from graphwright.exceptions import ConfigurationError

    found = await log.info(name) or await log.latest(name)
    if found is not None:
        return found
    alike = [run for run in await log.runs(limit=_LOOKED_AT) if name and run.run_id.startswith(name)]
    if len(alike) == 1:
        return alike[0]
    what = f"there are {len(alike)} runs that begin with" if alike else "there is no run or thread"
    raise ConfigurationError(f"{what} {name!r} in the run log; see: graphwright runs list")


async def _list(options: argparse.Namespace, log: SQLiteRunLog) -> int:
    from graphwright.cli._agents import age_text
    from graphwright.cli._event_json import as_json
    from graphwright.cli._run_report import info_dict
    from graphwright.cli._text import one_line

    runs = await log.runs(thread_id=options.thread, status=options.status, limit=options.limit)
    if options.json:
        for run in runs:
            print(as_json(info_dict(run)))
        return ANSWERED
    if not runs:
        print("no runs", file=sys.stderr)
        return ANSWERED
    table = [("RUN", "THREAD", "STATUS", "AGE", "TITLE")]
    table += [
        (run.run_id, one_line(run.thread_id), run.status, age_text(run.updated_at), one_line(run.title, _TITLE))
        for run in runs
    ]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        print("  ".join([*(f"{row[column]:<{widths[column]}}" for column in range(4)), row[4]]).rstrip())
    return ANSWERED


async def _show(options: argparse.Namespace, log: SQLiteRunLog) -> int:
    from graphwright.cli._event_json import as_json
    from graphwright.cli._run_report import report_dict, report_lines, trace_lines

    info = await find_run(log, options.run)
    rows = await log.rows(info.run_id)
    if options.json:
        print(as_json(report_dict(info, rows)))
        return ANSWERED
    for line in report_lines(info, rows):
        print(line)
    if options.trace:
        print("trace")
        for line in trace_lines(rows):
            print(line)
    return ANSWERED


async def _resume(options: argparse.Namespace, log: SQLiteRunLog) -> int:
    from graphwright.cli._resuming import resume

    return await resume(options, log, await find_run(log, options.run))


async def _delete(options: argparse.Namespace, log: SQLiteRunLog) -> int:
    from graphwright.cli._text import one_line
    from graphwright.exceptions import ConfigurationError

    thread = one_line(options.thread)
    latest = await log.latest(options.thread)
    if latest is None:
        raise ConfigurationError(f"there is no thread {options.thread!r} in the run log; see: graphwright runs list")
    if not options.yes:
        if not sys.stdin.isatty():
            print(f"graphwright: thread {thread} was not deleted: nobody can be asked; add --yes", file=sys.stderr)
            return USAGE
        print(f"delete thread {thread} ({one_line(latest.title, _TITLE)})? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("nothing was deleted")
            return NO_ANSWER
    await log.delete_thread(options.thread)
    print(f"deleted thread {thread}")
    return ANSWERED


async def _prune(options: argparse.Namespace, log: SQLiteRunLog) -> int:
    from graphwright.exceptions import ConfigurationError

    if options.older_than is None and options.keep is None:
        raise ConfigurationError("nothing says what is old; add --older-than AGE, --keep N, or both")
    count = await log.prune(older_than_seconds=options.older_than, keep_threads=options.keep)
    print(f"deleted {count} thread{'' if count == 1 else 's'}")
    return ANSWERED


def _age(text: str) -> float:
    match = re.fullmatch(r"(\d+)([smhdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age; write a number and s, m, h, d or w, such as 30d")
    return float(int(match[1]) * _UNITS[match[2]])
