"""`graphwright graph`: draw the graph of a pattern, or one of the user's own."""

from __future__ import annotations

import argparse
import inspect
import sys
from typing import TYPE_CHECKING, Any

from graphwright.cli._exits import ANSWERED
from graphwright.cli._loading import call_factory, is_reference, load_reference
from graphwright.cli._text import visible
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.engine import PromptGraph

__all__ = ["add_to", "graph_of"]


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "graph", help="draw a graph", description="Draw a graph and say what is wrong with it."
    )
    parser.add_argument("graph", metavar="PATTERN|FILE.py:NAME", help="a pattern, or a graph or agent in a Python file")
    parser.add_argument("--format", choices=("text", "mermaid"), default="text", help="how to draw it (default: text)")
    parser.set_defaults(execute=_draw)


def _draw(options: argparse.Namespace) -> int:
    import asyncio

    named = graph_of(options.graph)
    graph = asyncio.run(_graph_in(named, options.graph))
    print(visible(graph.to_mermaid() if options.format == "mermaid" else graph.describe()))
    for finding in graph.validate():
        print(f"graphwright: finding: {visible(finding)}", file=sys.stderr)
    return ANSWERED


def graph_of(text: str) -> Any:
    """Return the pattern name as it is, or the object that FILE.py:NAME names; a factory is called.

    Raises:
        ConfigurationError: it names nothing that could be a graph.
    """
    if not is_reference(text):
        from graphwright.agent import AGENT_PATTERNS
        from graphwright.exceptions import UnknownPatternError

        if text not in AGENT_PATTERNS:
            raise UnknownPatternError(
                f"no agent pattern named {text!r}; choose one of {', '.join(AGENT_PATTERNS)}, "
                "or FILE.py:NAME for a graph of your own"
            )
        return text
    named = load_reference(text, "graph")
    if _graph_or_none(named) is None and callable(named):
        named = call_factory(named, text, "graph")
    return named if inspect.isawaitable(named) else _checked(named, text)


async def _graph_in(named: Any, text: str) -> PromptGraph:
    if inspect.isawaitable(named):
        return _checked(await named, text)
    if isinstance(named, str):
        from graphwright.agent import build_agent
        from graphwright.testing import ScriptedModel

        async with await build_agent(model=ScriptedModel(), agent_pattern=named) as agent:
            return agent.graph
    return _checked(named, text)


def _checked(named: Any, text: str) -> PromptGraph:
    graph = _graph_or_none(named)
    if graph is None:
        raise ConfigurationError(
            f"graph {text!r} is a {type(named).__name__}; name a PromptGraph, an agent, or a function that makes one"
        )
    return graph


def _graph_or_none(named: Any) -> PromptGraph | None:
    from graphwright.agent import Agent
    from graphwright.engine import PromptGraph

    if isinstance(named, Agent):
        return named.graph
    return named if isinstance(named, PromptGraph) else None
