"""`graphwright chat`: talk to an agent that plans, asks, and waits for approval, on a thread that is kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from graphwright.cli._arguments import add_agent_options, add_log_option

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "chat",
        help="talk to an agent that plans, asks and waits for approval",
        description="Talk to an agent. Its threads are kept in the run log, so a paused one can go on later.",
    )
    parser.add_argument(
        "agent", metavar="AGENT", nargs="?", help="an OrchestratorBot as module:name or FILE.py:NAME; else --model"
    )
    add_agent_options(parser)
    parser.add_argument("--mode", choices=("ask", "auto", "plan"), default="ask", help="how tools run (default: ask)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--thread", metavar="ID", help="go on with this thread, or begin it")
    place.add_argument("--resume", action="store_true", help="go on with the thread that waits, else the latest one")
    add_log_option(parser)
    parser.set_defaults(execute=_chat)


def _chat(options: argparse.Namespace) -> int:
    import asyncio

    from graphwright.cli._chat import talk

    return asyncio.run(talk(options))
