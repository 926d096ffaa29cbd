"""The MCP servers that are named on the command line: a command, a URL, or an `mcp.json`."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.mcp.client import ServerSpec

__all__ = ["add_server_option", "servers_of"]

_LAUNCHERS = frozenset(
    {"bun", "bunx", "deno", "docker", "env", "exec", "node", "npx", "pipx", "python", "python3", "run", "uv", "uvx"}
)


def add_server_option(parser: argparse.ArgumentParser) -> None:
    """Add `--mcp`."""
    parser.add_argument(
        "--mcp",
        metavar="SERVER",
        action="append",
        default=[],
        help="an MCP server: a command in quotes, a URL, or the path of an mcp.json; may be repeated",
    )


def servers_of(texts: Sequence[str]) -> dict[str, ServerSpec]:
    """Return the specs of the servers that are named, by a name made of each.

    Raises:
        ConfigurationError: one of them is nothing of what it can be.
    """
    servers: dict[str, ServerSpec] = {}
    for text in texts:
        for name, spec in _read(text).items():
            number, free = 2, name
            while free in servers:
                free, number = f"{name}_{number}", number + 1
            servers[free] = spec
    return servers


def _read(text: str) -> dict[str, ServerSpec]:
    from graphwright.mcp.client import HTTPServerSpec, StdioServerSpec, as_servers

    if re.match(r"https?://", text):
        return {_name_of(urlsplit(text).hostname or "server"): HTTPServerSpec(url=text)}
    if text.endswith(".json"):
        found = as_servers(Path(text).expanduser())
        if not found:
            raise ConfigurationError(f"there is no server in {text!r}; write it under 'mcpServers'")
        return found
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"the command {text!r} cannot be read: {error}") from error
    if not words:
        raise ConfigurationError("an MCP server is named by a command, a URL or an mcp.json, and this one is empty")
    return {_name_of(_telling_word(words)): StdioServerSpec(command=words[0], args=words[1:])}


def _telling_word(words: Sequence[str]) -> str:
    names = [Path(word).name.removesuffix(".py").removesuffix(".js") for word in words if not word.startswith("-")]
    return next((name for name in names if name and name not in _LAUNCHERS), names[0] if names else "server")


def _name_of(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_") or "server"
