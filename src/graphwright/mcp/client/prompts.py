"""Let a model fetch the prompts of MCP servers: `get_prompt`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphwright.exceptions import ToolError
from graphwright.mcp.client.adapter import CatalogueTool
from graphwright.mcp.client.catalogue import Catalogue
from graphwright.mcp.client.content import content_of
from graphwright.tools.content import Content
from graphwright.types import ToolSpec

__all__ = ["prompt_tools"]

_SHOWN = 40
_WORDS = 120

Get = Callable[[str, str, dict[str, str]], Awaitable[Any]]


def prompt_tools(catalogues: Mapping[str, Catalogue], get: Get, name: Callable[[str], str]) -> list[CatalogueTool]:
    """Return the tool, or none when no server has prompts. `name` gives the name that is offered."""
    having = {server: entry for server, entry in catalogues.items() if entry.prompts}
    if not having:
        return []

    async def run(args: dict[str, Any]) -> Any:
        server, prompt = _found(args["name"], args.get("server"), having)
        given = {str(key): str(value) for key, value in (args.get("arguments") or {}).items()}
        missing = [entry.name for entry in prompt.arguments or () if entry.required and entry.name not in given]
        if missing:
            raise ToolError(f"the prompt {prompt.name!r} needs the arguments {', '.join(missing)}")
        return _rendered(await get(server, prompt.name, given))

    lines = [_line(server, prompt, having) for server, entry in having.items() for prompt in entry.prompts]
    more = len(lines) - _SHOWN
    shown = "\n".join(lines[:_SHOWN]) + (f"\n... and {more} more" if more > 0 else "")
    properties: dict[str, Any] = {
        "name": {"type": "string"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    if len(having) > 1:
        properties["server"] = {"type": "string", "enum": sorted(having)}
    spec = ToolSpec(
        name=name("get_prompt"),
        description=f"Fetch a prompt, filled with its arguments, to follow. There are:\n{shown}",
        parameters={"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False},
    )
    return [CatalogueTool(spec, run)]


def _line(server: str, prompt: Any, having: Mapping[str, Catalogue]) -> str:
    arguments = ", ".join(entry.name if entry.required else f"{entry.name}?" for entry in prompt.arguments or ())
    words = " ".join((prompt.description or prompt.title or "").split())[:_WORDS]
    where = f" (server {server})" if len(having) > 1 else ""
    return f"- {prompt.name}({arguments}){where}" + (f": {words}" if words else "")


def _found(name: str, server: str | None, having: Mapping[str, Catalogue]) -> tuple[str, Any]:
    found = [
        (owner, prompt)
        for owner, entry in having.items()
        for prompt in entry.prompts
        if prompt.name == name and server in (None, owner)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        owners = ", ".join(owner for owner, _ in found)
        raise ToolError(f"several servers have a prompt {name!r}; say which server is meant: {owners}")
    names = sorted({prompt.name for entry in having.values() for prompt in entry.prompts})
    raise ToolError(f"there is no prompt {name!r}; there are {', '.join(names[:_SHOWN])}")


def _rendered(result: Any) -> Content:
    messages = list(result.messages)
    if all(message.role == "user" for message in messages):
        return content_of(message.content for message in messages)
    parts: list[str | dict[str, Any]] = []
    for message in messages:
        content = content_of([message.content])
        if isinstance(content, str):
            parts.append(f"{message.role}: {content}")
        else:
            parts += [f"{message.role}:", *content]
    if all(isinstance(part, str) for part in parts):
        return "\n\n".join(str(part) for part in parts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
