"""What a server offers, read whole: every page of its tools, resources, templates and prompts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Catalogue", "read_catalogue"]

logger = logging.getLogger(__name__)

_MOST_PAGES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """What a server offered when it was last asked. The entries are the SDK's own."""

    tools: tuple[Any, ...] = ()

    resources: tuple[Any, ...] = ()

    templates: tuple[Any, ...] = ()

    prompts: tuple[Any, ...] = ()

    protocol: str = ""
    """The protocol version that was agreed on."""

    server: str = ""
    """Name and version of the server, as it says itself."""

    instructions: str = ""
    """What the server tells about its use."""


async def read_catalogue(client: Any, name: str, *, resources: bool, prompts: bool) -> Catalogue:
    """Ask a server for its tools and, where wanted, its resources and prompts, as far as it has them."""
    capabilities, info = client.server_capabilities, client.server_info
    has_resources = resources and capabilities.resources is not None
    return Catalogue(
        tools=await _all_pages(client.list_tools, "tools", name) if capabilities.tools is not None else (),
        resources=await _all_pages(client.list_resources, "resources", name) if has_resources else (),
        templates=await _templates(client, name) if has_resources else (),
        prompts=(
            await _all_pages(client.list_prompts, "prompts", name)
            if prompts and capabilities.prompts is not None
            else ()
        ),
        protocol=client.protocol_version,
        server=f"{info.name} {info.version}".strip() if info is not None else "",
        instructions=client.instructions or "",
    )


async def _templates(client: Any, name: str) -> tuple[Any, ...]:
    from mcp import MCPError

    try:
        return await _all_pages(client.list_resource_templates, "resource_templates", name)
    except MCPError as error:  # many servers with resources do not know the method
        logger.debug("MCP server %r lists no resource templates: %s", name, error)
        return ()


async def _all_pages(ask: Callable[..., Awaitable[Any]], what: str, name: str) -> tuple[Any, ...]:
    found: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if not cursor:
            return tuple(found)
        if cursor in seen:
            logger.warning("MCP server %r repeats a page of its %s; what was read so far is used", name, what)
            break
        seen.add(cursor)
    else:
        logger.warning("MCP server %r has more than %d pages of %s; the rest is left out", name, _MOST_PAGES, what)
    # A page that came twice brought its entries twice.
    unique = {
        getattr(entry, "uri", None) or getattr(entry, "uri_template", None) or entry.name: entry for entry in found
    }
    return tuple(unique.values())
