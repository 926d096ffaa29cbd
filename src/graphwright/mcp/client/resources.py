"""Let a model read the resources of MCP servers: `read_resource` and `list_resources`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphwright.exceptions import ToolError
from graphwright.mcp.client.adapter import CatalogueTool
from graphwright.mcp.client.catalogue import Catalogue
from graphwright.mcp.client.content import resource_content
from graphwright.types import ToolSpec

__all__ = ["resource_tools"]

_SHOWN = 40
_WORDS = 120

Read = Callable[[str, str], Awaitable[Any]]


def resource_tools(catalogues: Mapping[str, Catalogue], read: Read, name: Callable[[str], str]) -> list[CatalogueTool]:
    """Return the two tools, or none when no server has resources. `name` gives the name that is offered."""
    having = {server: entry for server, entry in catalogues.items() if entry.resources or entry.templates}
    if not having:
        return []
    return [_read_tool(having, read, name("read_resource")), _list_tool(having, name("list_resources"))]


def _read_tool(having: Mapping[str, Catalogue], read: Read, name: str) -> CatalogueTool:
    async def run(args: dict[str, Any]) -> Any:
        server = _server_of(args["uri"], args.get("server"), having)
        return resource_content((await read(server, args["uri"])).contents)

    lines = [_line(server, uri, entry, having) for server, uri, entry in _entries(having)]
    more = len(lines) - _SHOWN
    shown = "\n".join(lines[:_SHOWN]) + (f"\n... and {more} more; list_resources shows them" if more > 0 else "")
    properties = {"uri": {"type": "string", "description": "The URI, or a URI template with its variables filled."}}
    return CatalogueTool(
        ToolSpec(
            name=name,
            description=f"Read one resource. There are:\n{shown}",
            parameters={"type": "object", "properties": {**properties, **_server_property(having)}, "required": ["uri"]}
            | {"additionalProperties": False},
        ),
        run,
    )


def _list_tool(having: Mapping[str, Catalogue], name: str) -> CatalogueTool:
    async def run(args: dict[str, Any]) -> Any:
        wanted = args.get("server")
        listed = [
            {
                "server": server,
                ("uri_template" if "{" in uri else "uri"): uri,
                "name": entry.name,
                "mime_type": entry.mime_type,
                "description": entry.description,
            }
            for server, uri, entry in _entries(having)
            if wanted in (None, server)
        ]
        return json.dumps([{key: value for key, value in entry.items() if value} for entry in listed])

    return CatalogueTool(
        ToolSpec(
            name=name,
            description="List the resources that can be read, with their URIs.",
            parameters={"type": "object", "properties": _server_property(having), "additionalProperties": False},
        ),
        run,
    )


def _entries(having: Mapping[str, Catalogue]) -> list[tuple[str, str, Any]]:
    return [
        (server, uri, entry)
        for server, catalogue in having.items()
        for uri, entry in [
            *((str(entry.uri), entry) for entry in catalogue.resources),
            *((str(entry.uri_template), entry) for entry in catalogue.templates),
        ]
    ]


def _line(server: str, uri: str, entry: Any, having: Mapping[str, Catalogue]) -> str:
    words = " ".join((entry.description or entry.title or entry.name or "").split())[:_WORDS]
    where = f" (server {server})" if len(having) > 1 else ""
    return f"- {uri}{where}" + (f": {words}" if words else "")


def _server_property(having: Mapping[str, Catalogue]) -> dict[str, Any]:
    return {"server": {"type": "string", "enum": sorted(having)}} if len(having) > 1 else {}


def _server_of(uri: str, server: str | None, having: Mapping[str, Catalogue]) -> str:
    """Return the server that a URI belongs to."""
    if server is not None:
        return server
    if len(having) == 1:
        return next(iter(having))
    exact = [name for name, entry in having.items() if any(str(known.uri) == uri for known in entry.resources)]
    found = exact or [name for name, entry in having.items() if any(_fits(known, uri) for known in entry.templates)]
    if len(found) == 1:
        return found[0]
    of_whom = f"{len(found)} servers have" if found else "no server lists"
    raise ToolError(f"{of_whom} the resource {uri!r}; say which server is meant: {', '.join(sorted(having))}")


def _fits(template: Any, uri: str) -> bool:
    from mcp import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(template.uri_template).match(uri) is not None
    except InvalidUriTemplate:
        return False
