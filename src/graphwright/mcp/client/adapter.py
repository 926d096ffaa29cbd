"""Offer the tools of MCP servers as tools that a model can call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from graphwright.exceptions import ToolError
from graphwright.mcp.client.content import error_of, result_content
from graphwright.mcp.client.schemas import bindable_schema
from graphwright.tools.base import Tool
from graphwright.tools.json_schema import schema_problems
from graphwright.tools.problems import Problem, check
from graphwright.types import ToolCall, ToolSpec

__all__ = ["CatalogueTool", "MCPTool", "Servers"]

logger = logging.getLogger(__name__)


class Servers(Protocol):
    """Whatever can reach the servers."""

    async def call_tool(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, *, repeatable: bool = False
    ) -> Any:
        """Call a tool of a server and return the SDK's `CallToolResult`."""
        ...


class MCPTool(Tool):
    """A tool of an MCP server, under the name that is offered to the model."""

    untrusted = True
    """What it returns comes from somebody else."""

    asks = True
    """Its server may ask a person for input."""

    def __init__(self, servers: Servers, server: str, entry: Any, *, name: str) -> None:
        self._servers = servers
        self.server = self.source = server
        """The name under which the server was given."""
        self.remote_name: str = entry.name
        """What the server calls it."""
        self.title: str = entry.title or (entry.annotations.title if entry.annotations else None) or entry.name
        """What a person is shown."""
        self.entry = entry
        """The SDK's `Tool`, with its annotations and schemas."""
        self.spec = ToolSpec(
            name=name, description=entry.description or self.title, parameters=bindable_schema(entry.input_schema)
        )
        hints = entry.annotations
        self.read_only = bool(hints and hints.read_only_hint)
        """Whether the server says that it changes nothing."""
        self.idempotent = self.read_only or bool(hints and hints.idempotent_hint)
        """Whether the server says that doing it again changes nothing more."""
        self.risk_level = 0 if self.read_only else 2 if hints and hints.destructive_hint else 1
        """0 for reading, 1 for changing, 2 for destroying, as the server says; nobody has checked it."""
        self.other_names = tuple(dict.fromkeys((entry.name, f"{server}.{entry.name}", f"{server}_{entry.name}")))
        """Names by which a person may mean it in a pattern, beside the one that the model sees."""

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments when they fit the server's schema."""
        return check(self.name, args, self._attempt)

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Call the tool on its server and return text or content blocks.

        Raises:
            ToolError: the tool failed, or the server refuses the call.
            MCPError: the server cannot be used, or went away during the call.
        """
        result = await self._servers.call_tool(self.server, self.remote_name, args, repeatable=self.idempotent)
        if result.is_error:
            raise ToolError(error_of(result))
        self._look_at(result)
        return result_content(result)

    def _attempt(self, args: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        return self._problems(args) or args

    @cached_property
    def _problems(self) -> Callable[[Mapping[str, Any]], list[Problem]]:
        # Some servers leave the type out, or give one that arguments can never have.
        return schema_problems({**self.entry.input_schema, "type": "object"}, self.name)

    @cached_property
    def _output_problems(self) -> Callable[[Any], list[Problem]] | None:
        schema = self.entry.output_schema
        return schema_problems(schema, f"{self.name} (its result)") if schema else None

    def _look_at(self, result: Any) -> None:
        """Log structured content that is not what the server promised; the model can still make use of it."""
        if self._output_problems is None or result.structured_content is None:
            return
        problems = self._output_problems(result.structured_content)
        if problems:
            listed = "; ".join(problem.line() for problem in problems[:3])
            logger.warning("MCP tool %r returned what its schema does not allow: %s", self.name, listed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MCPTool) and (self._servers, self.server, self.spec, self.entry) == (
            other._servers,
            other.server,
            other.spec,
            other.entry,
        )

    def __hash__(self) -> int:
        return hash((self.server, self.spec.name))

    def __repr__(self) -> str:
        return f"MCPTool({self.name!r}, {self.remote_name!r} of {self.server!r})"


class CatalogueTool(Tool):
    """A tool that reads what servers offer beside their tools."""

    untrusted = True
    asks = True
    risk_level = 0
    idempotent = True

    def __init__(self, spec: ToolSpec, run: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
        self.spec = spec
        self._run = run
        self._problems = schema_problems(spec.parameters, spec.name)

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments when they fit."""
        return check(self.name, args, lambda args: self._problems(args) or args)

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Read what is asked for."""
        return await self._run(args)

    def __repr__(self) -> str:
        return f"CatalogueTool({self.name!r})"
