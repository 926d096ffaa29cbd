"""Tell LangChain callback handlers of calls that no LangChain tool reports by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForToolRun
    from langchain_core.messages import ToolMessage

    from graphwright.tools.base import Tool
    from graphwright.types import ToolCall

__all__ = ["CallReport"]


class CallReport:
    """The report of one call: started, then ended or failed, exactly once."""

    __slots__ = ("_config", "_manager", "_name")

    def __init__(self, manager: AsyncCallbackManagerForToolRun, config: dict[str, Any], name: str) -> None:
        self._manager = manager
        self._config = config
        self._name = name

    @classmethod
    async def start(cls, config: dict[str, Any], tool: Tool | None, call: ToolCall, args: dict[str, Any]) -> CallReport:
        """Tell the handlers of the caller's config that a call begins."""
        from langchain_core.callbacks import AsyncCallbackManager

        handlers = AsyncCallbackManager.configure(
            config.get("callbacks"),
            inheritable_tags=config.get("tags"),
            inheritable_metadata=config.get("metadata"),
        )
        manager = await handlers.on_tool_start(
            {"name": call.name, "description": tool.spec.description if tool is not None else ""},
            str(args),
            name=call.name,
            inputs=args,
            tool_call_id=call.id,
        )
        return cls(manager, config, call.name)

    @contextmanager
    def inside(self) -> Iterator[Context]:
        """Give the context to run the call in, where LangChain objects report to the same handlers, as children."""
        from langchain_core.runnables.config import patch_config, set_config_context

        config = patch_config(cast("Any", self._config), callbacks=self._manager.get_child())
        config.pop("run_id", None)
        with set_config_context(config) as context:
            yield context

    async def end(self, message: ToolMessage) -> None:
        """Tell the handlers what the model reads."""
        await self._manager.on_tool_end(message, name=self._name)

    async def fail(self, error: BaseException, call: ToolCall) -> None:
        """Tell the handlers that the call failed."""
        await self._manager.on_tool_error(error, tool_call_id=call.id)
