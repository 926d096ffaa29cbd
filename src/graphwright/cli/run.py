"""`graphwright run`: give a goal to an agent with tools from Python files and from a folder."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from graphwright.cli._arguments import add_output_options, seconds, whole_number
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.cli._running import AgentPlan

__all__ = ["add_to"]

_NO_MODEL = """\
no model was given; add one of
  --model openai:NAME     or another provider: graphwright models list
  --model local           a small model on this machine, without a key
  --model FILE.py:NAME    a model object, or a function that makes one
or see an agent at work without a model: graphwright demo"""


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("run", help="run an agent on a goal", description="Run an agent on a goal.")
    parser.add_argument("goal", metavar="GOAL", help="what the agent is to do; - reads it from standard input")
    parser.add_argument("--model", metavar="STRING", help="provider:name, local, or FILE.py:NAME")
    parser.add_argument(
        "--tools", metavar="FILE.py", action="append", default=[], help="a Python file with tools; may be repeated"
    )
    parser.add_argument("--root", metavar="DIR", help="a folder whose files the agent may read")
    parser.add_argument("--hidden", action="store_true", help="let it read names that begin with a dot, too")
    parser.add_argument("--pattern", metavar="NAME|FILE.py:NAME", help="the agent's graph (default: react)")
    parser.add_argument("--instructions", metavar="TEXT", help="the system prompt")
    parser.add_argument("--max-iterations", metavar="N", type=whole_number, help="most model calls")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="most seconds for the whole run")
    add_output_options(parser)
    parser.set_defaults(execute=_run)


def _run(options: argparse.Namespace) -> int:
    from graphwright.cli._running import run_and_show
    from graphwright.cli._views import choose_view

    if options.model is None:
        raise ConfigurationError(_NO_MODEL)
    goal = sys.stdin.read() if options.goal == "-" else options.goal
    if not goal.strip():
        raise ConfigurationError("the goal is empty; say what the agent is to do")
    view = choose_view(json=options.json, quiet=options.quiet)
    return run_and_show(lambda: _plan(options), goal.strip(), view)


def _plan(options: argparse.Namespace) -> AgentPlan:
    from graphwright.cli._loading import tools_of_file
    from graphwright.cli._running import AgentPlan, model_of
    from graphwright.cli.files import file_tools
    from graphwright.cli.graph import graph_of

    tools = [tool for path in options.tools for tool in tools_of_file(path)]
    if options.root is not None:
        tools += file_tools(options.root, hidden=options.hidden)
    elif options.hidden:
        raise ConfigurationError("--hidden is about the files of --root DIR, which is missing; add it")
    return AgentPlan(
        model=model_of(options.model),
        tools=tools,
        instructions=options.instructions,
        pattern=None if options.pattern is None else graph_of(options.pattern),
        max_iterations=options.max_iterations,
        timeout=options.timeout,
    )
