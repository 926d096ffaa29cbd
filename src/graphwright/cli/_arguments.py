"""The parser of the command line, and the arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, NoReturn

from graphwright.cli._exits import USAGE
from graphwright.cli._text import one_line

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction["Parser"]

__all__ = ["Commands", "Parser", "add_agent_options", "add_log_option", "add_output_options", "seconds", "whole_number"]


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are two lines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where to read more, and leave with the code for wrong usage."""
        self.exit(USAGE, f"{self.prog}: error: {one_line(message, 400)}\nsee: {self.prog} --help\n")


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what an agent is made of."""
    parser.add_argument("--model", metavar="STRING", help="provider:name, local, or FILE.py:NAME")
    parser.add_argument(
        "--tools", metavar="FILE.py", action="append", default=[], help="a Python file with tools; may be repeated"
    )
    parser.add_argument("--root", metavar="DIR", help="a folder whose files the agent may read")
    parser.add_argument("--hidden", action="store_true", help="let it read names that begin with a dot, too")
    parser.add_argument("--instructions", metavar="TEXT", help="the system prompt")
    parser.add_argument("--max-iterations", metavar="N", type=whole_number, help="most model calls (chat: steps)")


def add_log_option(parser: argparse.ArgumentParser, default: str = "that of the user") -> None:
    """Add the option that names a run log; `default` says what is used without."""
    parser.add_argument("--log", metavar="PATH", help=f"the file with the run log (default: {default})")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what is printed."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object a line: every event, then the result")
    form.add_argument("-q", "--quiet", action="store_true", help="print nothing but the answer on standard output")


def whole_number(text: str) -> int:
    """Return a number of things, at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return number


def seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number
