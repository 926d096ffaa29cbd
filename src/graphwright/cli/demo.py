"""`graphwright demo`: an agent explores a real folder, and one is killed and goes on, without any key."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphwright.cli._arguments import add_output_options

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.cli._running import AgentPlan

__all__ = ["add_to"]

_GOAL = "Which of the largest text files here is the longest, what is it for, and which other files mention it?"

_INSTRUCTIONS = (
    "You explore a folder with read-only tools. Start with list_files(by_size=true), count the lines of the largest "
    "text files, read the beginning of the longest, search for its name, and then answer in a few sentences. "
    "Say only what the tools have shown."
)

_SCRIPTED = """\
No model is asked here: a script takes the place of the model. It chooses each step from the results
so far, and puts the answer together from them. The agent, its graph, the tools and the files are real.
"""

_SMALL = """\
The packaged local model is very small. It shows that everything works on this machine; what it says may be wrong.
"""


_SERVED = """\
The tools are those of an MCP server, which is a process of its own.
"""

_FUNCTIONS = """\
The tools are functions of this process. With the extra they are those of an MCP server: pip install 'graphwright[mcp]'
"""


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="see an agent at work, without a key",
        description="See an agent explore a folder with real tools, and another one be killed and go on. "
        "A script plays the model unless you name one.",
    )
    parser.add_argument("--root", metavar="DIR", help="the folder to explore (default: the installed package)")
    parser.add_argument("--model", metavar="STRING", help="ask this model instead: provider:name, local, FILE.py:NAME")
    parser.add_argument("--short", action="store_true", help="leave out the second part, the run that is killed")
    add_output_options(parser)
    parser.set_defaults(execute=_demo)


def _demo(options: argparse.Namespace) -> int:
    from graphwright.cli._running import run_and_show
    from graphwright.cli._views import choose_view

    root = Path(__file__).parents[1] if options.root is None else options.root
    view = choose_view(json=options.json, quiet=options.quiet)
    before = [f"Folder: {root}\nGoal:   {_GOAL}\n"]
    if options.model is None:
        before.append(_SCRIPTED)
    elif options.model == "local":
        before.append(_SMALL)
    before.append(_SERVED if _has_mcp() else _FUNCTIONS)
    code = run_and_show(lambda: _plan(root, options.model), _GOAL, view, before=before)
    if options.model is None:
        if not (options.json or options.quiet or options.short):
            from graphwright.cli._demo_crash import show_crash

            show_crash(view.note)
        view.note(_next_steps())
    return code


def _plan(root: str | Path, model: str | None) -> AgentPlan:
    from graphwright.cli._demo_script import next_step
    from graphwright.cli._running import AgentPlan, model_of
    from graphwright.cli.files import file_tools

    tools: list[Any] = []
    servers = None
    if _has_mcp():
        from graphwright.mcp.client import StdioServerSpec

        arguments = ["-m", "graphwright.cli._demo_server", str(Path(root).resolve())]
        # The server finds the package where this process has it, installed or not.
        where = {"PYTHONPATH": str(Path(__file__).parents[2])}
        servers = {"files": StdioServerSpec(command=sys.executable, args=arguments, env=where)}
        file_tools(root)  # refuses what is no folder here, in words of ours
    else:
        tools = list(file_tools(root))
    if model is not None:
        return AgentPlan(model=model_of(model), tools=tools, servers=servers, instructions=_INSTRUCTIONS)
    from graphwright.testing import ScriptedModel

    # The script finds its place by the results it has seen, so it has to see all of them.
    model_of_script = ScriptedModel.answering(next_step)
    return AgentPlan(model=model_of_script, tools=tools, servers=servers, instructions=_INSTRUCTIONS, compaction=False)


def _has_mcp() -> bool:
    return find_spec("mcp") is not None and find_spec("mcp_types") is not None


def _next_steps() -> str:
    from graphwright.models import check_model

    lacking = check_model("local").problems
    first = f"  (first: {' && '.join(lacking)})" if lacking else ""
    return (
        "\nThe same with a model that thinks for itself:\n"
        f"  graphwright demo --model local{first}\n"
        "  graphwright demo --model openai:gpt-5-mini  (or any other of: graphwright models list)\n"
        'And with your own goal and tools: graphwright run "GOAL" --model STRING --tools FILE.py --root DIR'
    )
