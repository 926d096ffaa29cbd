"""`graphwright mcp`: see what MCP servers offer, call one of their tools, and find out what is wrong with one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphwright.cli._arguments import Parser, seconds
from graphwright.cli._event_json import as_json
from graphwright.cli._event_loop import run_async
from graphwright.cli._exits import ANSWERED, NO_ANSWER
from graphwright.cli._servers import servers_of
from graphwright.cli._text import one_line, visible
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.cli._arguments import Commands
    from graphwright.mcp.client import MCPPool, MCPTool, ServerSpec

__all__ = ["add_to"]

_SERVER = "a command in quotes, a URL, or the path of an mcp.json"
_RISKS = ("reads", "changes", "destroys")


def add_to(commands: Commands) -> None:
    """Add the command to the parser."""
    text = "See what MCP servers offer, call one of their tools, or find out what is wrong with one."
    parser = commands.add_parser("mcp", help="list, call and examine MCP servers", description=text)
    parts = parser.add_subparsers(title="what to do", metavar="list|call|doctor", required=True, parser_class=Parser)
    listing = parts.add_parser("list", help="list what servers offer", description="List what servers offer.")
    listing.add_argument("server", metavar="SERVER", nargs="+", help=_SERVER)
    listing.add_argument("--json", action="store_true", help="print one JSON object a line, with the schemas")
    listing.set_defaults(execute=lambda options: _with_pool(options, _list))
    call = parts.add_parser("call", help="call one tool", description="Call one tool and print what it returns.")
    call.add_argument("server", metavar="SERVER", nargs=1, help=_SERVER)
    call.add_argument("tool", metavar="TOOL", help="its name, as the server or as `mcp list` says it")
    call.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="an object; - reads standard input")
    call.add_argument("--json", action="store_true", help="print the whole result as JSON")
    call.set_defaults(execute=_call)
    text = "Say what is wrong with servers. The exit code is 0 when nothing is, else 1."
    doctor = parts.add_parser("doctor", help="say what is wrong with servers", description=text)
    doctor.add_argument("server", metavar="SERVER", nargs="+", help=_SERVER)
    doctor.set_defaults(execute=_doctor)
    for part in (listing, call, doctor):
        part.add_argument("--timeout", metavar="S", type=seconds, help="most seconds to connect, and for a call")


def _specs(options: argparse.Namespace) -> dict[str, ServerSpec]:
    servers = servers_of(options.server)
    if options.timeout is None:
        return servers
    limits = {"connect_timeout": options.timeout, "call_timeout": options.timeout}
    return {name: spec.model_copy(update=limits) for name, spec in servers.items()}


def _with_pool(options: argparse.Namespace, work: Any) -> int:
    from graphwright.mcp.client import MCPPool

    async def run() -> int:
        async with MCPPool(_specs(options), resources=True, prompts=True, on_progress=_progress) as pool:
            return int(await work(options, pool))

    return run_async(run())


def _progress(server: str, tool: str, progress: float, total: float | None, message: str | None) -> None:
    share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    print(f"{one_line(tool)}: {share} {one_line(message or '', 200)}".rstrip(), file=sys.stderr)


def _tools_of(pool: MCPPool) -> list[MCPTool]:
    from graphwright.mcp.client import MCPTool

    return [tool for tool in pool.tools() if isinstance(tool, MCPTool)]


async def _list(options: argparse.Namespace, pool: MCPPool) -> int:
    tools = _tools_of(pool)
    if options.json:
        for tool in tools:
            entry = {"server": tool.server, "name": tool.name, "remote_name": tool.remote_name}
            about = {"description": tool.entry.description, "risk": _RISKS[tool.risk_level or 0]}
            print(as_json({"type": "tool", **entry, **about, "input_schema": tool.entry.input_schema}))
    for name, catalogue in pool.catalogues.items():
        rest = [("resource", str(entry.uri), entry.description) for entry in catalogue.resources]
        rest += [("template", entry.uri_template, entry.description) for entry in catalogue.templates]
        rest += [("prompt", entry.name, entry.description) for entry in catalogue.prompts]
        if options.json:
            for kind, what, text in rest:
                print(as_json({"type": kind, "server": name, "name": what, "description": text}))
            continue
        print(f"{name}: {one_line(catalogue.server) or 'a server without a name'}, protocol {catalogue.protocol}")
        own = [tool for tool in tools if tool.server == name]
        rows = [(f"tool, {_RISKS[tool.risk_level or 0]}", tool.name, tool.entry.description) for tool in own]
        for kind, what, text in [*rows, *rest]:
            print(f"  {one_line(what)}  ({kind})  {one_line((text or '').strip().partition(chr(10))[0], 100)}".rstrip())
    return ANSWERED


def _call(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.arguments == "-" else options.arguments
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the arguments {one_line(text, 80)!r} are no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ConfigurationError(f"the arguments {one_line(text, 80)!r} are no JSON object; write {{...}}")

    async def work(options: argparse.Namespace, pool: MCPPool) -> int:
        return await _call_one(options, pool, arguments)

    return _with_pool(options, work)


async def _call_one(options: argparse.Namespace, pool: MCPPool, arguments: dict[str, Any]) -> int:
    from graphwright.mcp.client.content import content_of, error_of
    from graphwright.messages import text_of

    tools = _tools_of(pool)
    named = [tool for tool in tools if tool.name == options.tool] or [
        tool for tool in tools if options.tool in tool.other_names
    ]
    if len(named) != 1:
        known = ", ".join(one_line(tool.name) for tool in tools) or "none"
        what = "names several tools" if named else "is no tool of it"
        raise ConfigurationError(f"{options.tool!r} {what}; there are {known}")
    tool = named[0]
    result = await pool.call_tool(tool.server, tool.remote_name, tool.validate(arguments))
    if options.json:
        print(as_json(result.model_dump(mode="json", by_alias=True, exclude_none=True)))
    elif result.is_error:
        print(f"graphwright: the tool failed: {visible(error_of(result))}", file=sys.stderr)
    else:
        print(visible(_shown(content_of(result.content), text_of) or json.dumps(result.structured_content)))
    return NO_ANSWER if result.is_error else ANSWERED


def _shown(content: Any, text_of: Any) -> str:
    if isinstance(content, str):
        return content
    kinds = [block.get("type") for block in content if block.get("type") != "text"]
    return "\n".join([text_of(content), *(f"[{kind}]" for kind in kinds)]).strip()


def _doctor(options: argparse.Namespace) -> int:
    async def run() -> int:
        found = [await _examine(name, spec) for name, spec in _specs(options).items()]
        return ANSWERED if all(found) else NO_ANSWER

    return run_async(run())


async def _examine(name: str, spec: ServerSpec) -> bool:
    """Print what is known of a server, and return whether nothing is wrong."""
    from graphwright.mcp.client import MCPPool, StdioServerSpec

    print(f"{name}: {_place(spec)}")
    if isinstance(spec, StdioServerSpec) and not _is_there(spec):
        print(f"  - the program {one_line(spec.command)!r} is not there; install it, or give its whole path")
        return False
    pool = MCPPool({name: spec}, resources=True, prompts=True)
    try:
        started = perf_counter()
        await pool.connect(strict=False)
        took = perf_counter() - started
        if pool.problems:
            print(f"  - {one_line(str(pool.problems[name]), 2000)}")
            return False
        catalogue = pool.catalogues[name]
        said = one_line(catalogue.server) or "a server without a name"
        print(f"  connected in {took:.2f} s: {said}, protocol {catalogue.protocol}")
        counts = [(len(getattr(catalogue, what)), what) for what in ("tools", "resources", "templates", "prompts")]
        print(f"  offers {', '.join(f'{count} {what}' for count, what in counts)}")
        problems = [problem for tool in _tools_of(pool) for problem in _problems_of(tool)]
        for problem in problems:
            print(f"  - {problem}")
        return not problems
    finally:
        await pool.close()


def _place(spec: ServerSpec) -> str:
    from graphwright.mcp.client import StdioServerSpec

    if isinstance(spec, StdioServerSpec):
        # Arguments may hold secrets, and what is printed here tends to be pasted.
        return f"the program {one_line(spec.command)}"
    return one_line(spec.url.partition("?")[0])


def _is_there(spec: Any) -> bool:
    path = spec.env.get("PATH", os.environ.get("PATH"))
    return shutil.which(spec.command, path=path) is not None


def _problems_of(tool: MCPTool) -> list[str]:
    from importlib import import_module

    jsonschema: Any = import_module("jsonschema")
    name = one_line(tool.remote_name)
    problems = []
    schema = tool.entry.input_schema
    try:
        jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        problems.append(f"tool {name}: its schema is broken: {one_line(error.message, 200)}")
    if schema.get("type") != "object":
        problems.append(f"tool {name}: its schema has the type {schema.get('type')!r} in place of 'object'")
    if not (tool.entry.description or "").strip():
        problems.append(f"tool {name}: it has no description, so a model can only guess what it does")
    if tool.name != tool.remote_name:
        problems.append(f"tool {name}: no provider takes this name; it is offered as {tool.name}")
    return problems
