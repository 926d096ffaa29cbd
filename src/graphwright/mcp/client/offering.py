"""Make the tools of all servers from what they offer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from graphwright.mcp.client.adapter import MCPTool, Servers
from graphwright.mcp.client.catalogue import Catalogue
from graphwright.mcp.client.names import offered_names, valid_name
from graphwright.mcp.client.prompts import prompt_tools
from graphwright.mcp.client.resources import resource_tools
from graphwright.tools.base import Tool

__all__ = ["Reader", "offered_tools"]


class Reader(Servers, Protocol):
    """Whatever can call tools, read resources and fetch prompts."""

    async def read_resource(self, server: str, uri: str) -> Any:
        """Return the SDK's `ReadResourceResult`."""
        ...

    async def get_prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """Return the SDK's `GetPromptResult`."""
        ...


def offered_tools(
    reader: Reader,
    catalogues: Mapping[str, Catalogue],
    *,
    taken: Collection[str],
    resources: bool,
    prompts: bool,
) -> list[Tool]:
    """Return the tools of the servers, and where wanted those for their resources and prompts."""
    entries = {(server, entry.name): entry for server, catalogue in catalogues.items() for entry in catalogue.tools}
    names = offered_names(entries, taken=taken)
    made: list[Tool] = [MCPTool(reader, key[0], entry, name=names[key]) for key, entry in entries.items()]
    used = {*taken, *names.values()}

    def free(name: str) -> str:
        while name in used:
            name = valid_name(f"mcp_{name}")
        return name

    if resources:
        made += resource_tools(catalogues, reader.read_resource, free)
    if prompts:
        made += prompt_tools(catalogues, reader.get_prompt, free)
    return made
