"""What the built-in tools share: a schema read from the method `call`, and results kept to a size."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from graphwright.exceptions import ConfigurationError
from graphwright.tools.base import Tool
from graphwright.tools.function import checked_timeout
from graphwright.tools.problems import check
from graphwright.tools.schema import function_schema
from graphwright.types import ToolCall, ToolSpec


class BuiltinTool(Tool):
    """A tool whose parameters are those of its method `call`, which runs in a worker thread unless it is async."""

    tool_name: ClassVar[str]

    call: Any
    """What a call does, defined by each tool."""

    def __init__(
        self, *, name: str | None = None, description: str | None = None, timeout: float | None = None
    ) -> None:
        name = self.tool_name if name is None else name
        schema = function_schema(self.call, name)
        self.spec = ToolSpec(
            name=name,
            description=schema.description if description is None else description,
            parameters=schema.parameters,
        )
        self.timeout = checked_timeout(timeout, name)
        self.blocking = not inspect.iscoroutinefunction(self.call)
        self._attempt = schema.attempt

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, converted to the types of the hints."""
        return check(self.name, args, self._attempt)

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call of a tool that waits on the event loop."""
        return await self.call(**args)

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call of a tool that blocks. Called in a worker thread."""
        return self.call(**args)

    def __repr__(self) -> str:
        # Options hold credentials, so none of them is shown.
        return f"{type(self).__name__}({self.name!r})"


def checked_count(value: int, keyword: str) -> int:
    """Return a limit, or refuse one that would leave nothing."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{keyword} is {value!r}; give a whole number above 0")
    return value


def checked_seconds(value: float, keyword: str) -> float:
    """Return a time limit, or refuse one that no call could meet."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(f"{keyword} is {value!r}; give seconds above 0")
    return float(value)


def cut(text: str, limit: int) -> str:
    """Return the text, or its beginning and how much of it is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {len(text) - limit} more characters]"
