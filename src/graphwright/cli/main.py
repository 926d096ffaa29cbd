"""The entry of the command line: choose the command, and turn what it raises into a message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from graphwright import __version__
from graphwright.cli import chat, demo, graph, mcp, models, run, runs
from graphwright.cli._arguments import Parser
from graphwright.cli._diagnostics import print_error, short_diagnostics
from graphwright.cli._exits import BROKEN_PIPE, INTERRUPTED, USAGE, exit_code_of
from graphwright.cli._signals import sigterm_interrupts

__all__ = ["main"]

COMMANDS = (
    demo,
    run,
    chat,
    runs,
    graph,
    mcp,
    models,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process when left out."""
    _print_whatever_comes()
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
        if options.execute is None:
            parser.print_help(sys.stderr)
            return USAGE
        with short_diagnostics(), sigterm_interrupts():
            code = _execute(options.execute, options)
        sys.stdout.flush()
    except SystemExit as left:  # argparse has printed why
        return left.code if isinstance(left.code, int) else USAGE
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    return code


def _execute(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return command(options)
    except KeyboardInterrupt as ended:
        code = exit_code_of(ended)
        print(f"graphwright: {'interrupted' if code == INTERRUPTED else 'terminated'}", file=sys.stderr)
        return code
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever went wrong, the user reads what and what to do
        print_error(error, options)
        return exit_code_of(error)


def _parser() -> Parser:
    parser = Parser(
        prog="graphwright",
        description="Run AI agents on an explicit graph.",
        epilog="Exit codes: 0 an answer, 1 no answer, 2 wrong usage or configuration, 3 paused, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"graphwright {__version__}")
    parser.set_defaults(execute=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def _print_whatever_comes() -> None:
    """Let the standard streams show a character that their encoding lacks as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still buffered nowhere: the interpreter would write it at its end, and nobody reads it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # a stream that is no file
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
