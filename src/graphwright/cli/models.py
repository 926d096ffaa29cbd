"""`graphwright models`: which models there are, and what is missing to use one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from graphwright.cli._arguments import Parser
from graphwright.cli._exits import ANSWERED, USAGE
from graphwright.cli._text import one_line

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.models.providers import Provider

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    text = "List the model providers, or say what is missing to use a model. Nobody is asked over the network."
    parser = commands.add_parser("models", help="list providers, check a model string", description=text)
    parts = parser.add_subparsers(title="what to do", metavar="list|check", required=True, parser_class=Parser)
    listing = parts.add_parser("list", help="list the providers", description="List what --model can name.")
    listing.set_defaults(execute=_list)
    text = "Say what is missing to use a model. The exit code is 0 when nothing is, else 2."
    check = parts.add_parser("check", help="say what is missing to use a model", description=text)
    check.add_argument("model", metavar="STRING", help="such as openai:gpt-5-mini, or local")
    check.set_defaults(execute=_check)


def _check(options: argparse.Namespace) -> int:
    from graphwright.models import check_model

    found = check_model(options.model)
    name = one_line(options.model)
    if found.ok:
        print(f"{name}: nothing is missing")
        return ANSWERED
    print(f"{name}: cannot be used yet")
    for problem in found.problems:
        # A local model's problems are the commands that solve them.
        print(f"  - {'run: ' if problem.startswith('pip ') else ''}{one_line(problem)}")
    return USAGE


def _list(options: argparse.Namespace) -> int:
    from graphwright.models import check_model
    from graphwright.models.providers import LOCAL, PROVIDERS

    rows = [("--model", "install", "set")]
    rows += [(f"{provider.name}:NAME", _package(provider), _variables(provider)) for provider in PROVIDERS]
    lacking = check_model(LOCAL).problems
    rows.append(
        (LOCAL, _state("graphwright[local]", installed=not lacking), "nothing; see: graphwright models check local")
    )
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for row in rows:
        print(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}")
    return ANSWERED


def _package(provider: Provider) -> str:
    from graphwright.models.providers import is_available

    return _state(f"graphwright[{provider.extra}]", installed=is_available(provider))


def _state(package: str, *, installed: bool) -> str:
    return f"{package}, {'installed' if installed else 'missing'}"


def _variables(provider: Provider) -> str:
    needs = [f"{' or '.join(need.variables)}, {'set' if need.is_met({}) else 'missing'}" for need in provider.needs]
    return "; ".join(needs) or "nothing"
