"""`graphwright run`: give a goal to an agent with tools from Python files and from a folder."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from graphwright.cli._arguments import add_agent_options, add_log_option, add_output_options, seconds
from graphwright.cli._servers import add_server_option
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("run", help="run an agent on a goal", description="Run an agent on a goal.")
    parser.add_argument("goal", metavar="GOAL", help="what the agent is to do; - reads it from standard input")
    add_agent_options(parser)
    add_server_option(parser)
    parser.add_argument("--pattern", metavar="NAME|FILE.py:NAME", help="the agent's graph (default: react)")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="most seconds for the whole run")
    add_log_option(parser, default="none, so the run cannot go on later")
    add_output_options(parser)
    parser.set_defaults(execute=_run)


def _run(options: argparse.Namespace) -> int:
    from graphwright.cli._running import needed_model, plan_of, run_and_show
    from graphwright.cli._views import choose_view

    needed_model(options)
    goal = sys.stdin.read() if options.goal == "-" else options.goal
    if not goal.strip():
        raise ConfigurationError("the goal is empty; say what the agent is to do")
    view = choose_view(json=options.json, quiet=options.quiet)
    return run_and_show(lambda: plan_of(options, runlog=options.log), goal.strip(), view)
