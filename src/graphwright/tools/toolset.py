"""Turn whatever people call a tool into tools, and keep the tools of a step together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from graphwright.exceptions import ConfigurationError
from graphwright.tools.base import Tool
from graphwright.tools.content import short_repr
from graphwright.tools.function import FunctionTool
from graphwright.types import ToolSpec

__all__ = ["ToolSet", "as_tool", "as_tools", "tool"]


class ToolSet:
    """An immutable set of tools with different names."""

    __slots__ = ("_by_name", "_specs", "names")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        by_name: dict[str, Tool] = {}
        for entry in tools:
            there = by_name.setdefault(entry.name, entry)
            if there is not entry and there != entry:
                raise ConfigurationError(
                    f"two tools have the name {entry.name!r}: {there!r} and {entry!r}; "
                    "rename one with tool(function, name=...)"
                )
        self._by_name = by_name
        self._specs: tuple[ToolSpec, ...] | None = None
        self.names: tuple[str, ...] = tuple(by_name)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told of the tools; the same object each time."""
        if self._specs is None:
            self._specs = tuple(entry.spec for entry in self._by_name.values())
        return self._specs

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, or `None`."""
        return self._by_name.get(name)

    def merged(self, other: ToolSet) -> ToolSet:
        """Return a set with the tools of both; one that is in both counts once.

        Raises:
            ConfigurationError: two different tools have one name.
        """
        if not other._by_name or other is self:
            return self
        return ToolSet([*self, *other]) if self._by_name else other

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in self._by_name
        return isinstance(item, Tool) and self._by_name.get(item.name) == item

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self.names)})"


def as_tools(objects: Iterable[Any] | ToolSet | None) -> ToolSet:
    """Return the set of tools made from functions, LangChain tools and tools; the same one twice counts once.

    Raises:
        ConfigurationError: one of them is no tool, or two different ones have the same name.
    """
    if isinstance(objects, ToolSet):
        return objects
    if objects is None:
        return ToolSet()
    if isinstance(objects, (str, bytes, Mapping)) or not isinstance(objects, Iterable):
        raise ConfigurationError(f"tools are given as a list, not as {short_repr(objects)}")
    return ToolSet([as_tool(entry) for entry in objects])


def as_tool(obj: Any) -> Tool:
    """Return a tool made from a typed function (sync or async), a LangChain tool, or a tool.

    Raises:
        ConfigurationError: it is none of these, or a model cannot fill its parameters.
    """
    return _made(obj)


def _made(obj: Any, *, name: str | None = None, description: str | None = None, timeout: float | None = None) -> Tool:
    changes = {"name": name, "description": description, "timeout": timeout}
    if isinstance(obj, Tool):
        if not any(value is not None for value in changes.values()):
            return obj
        replaced = getattr(obj, "replaced", None)
        if replaced is None:
            raise ConfigurationError(f"{obj!r} is a tool of a class of its own; set name and timeout there")
        made: Tool = replaced(**changes)
        return made
    if _is_langchain_tool(obj):
        from graphwright.tools.langchain import LangChainTool

        return LangChainTool(obj, name=name, description=description, timeout=timeout)
    if isinstance(obj, type):
        raise ConfigurationError(f"{obj.__module__}.{obj.__qualname__} is a class, not a tool; give an instance of it")
    if not callable(obj):
        raise ConfigurationError(
            f"{short_repr(obj)} of type {type(obj).__name__} is no tool; give a function with type hints, "
            "a LangChain tool or a graphwright Tool"
        )
    return FunctionTool(obj, name=name, description=description, timeout=timeout)


def _is_langchain_tool(obj: Any) -> bool:
    # Where the module was never loaded, nobody can have made an object of its class.
    module = sys.modules.get("langchain_core.tools.base")
    return module is not None and isinstance(obj, module.BaseTool)


@overload
def tool(
    obj: Callable[..., Any],
    /,
    *,
    name: str | None = ...,
    description: str | None = ...,
    timeout: float | None = ...,
) -> FunctionTool: ...


@overload
def tool(
    obj: Any, /, *, name: str | None = ..., description: str | None = ..., timeout: float | None = ...
) -> Tool: ...


@overload
def tool(
    *, name: str | None = ..., description: str | None = ..., timeout: float | None = ...
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    obj: Any = None, /, *, name: str | None = None, description: str | None = None, timeout: float | None = None
) -> Any:
    """Make a tool, with a name, a description or a timeout (seconds) other than its own.

    Use it as `@tool`, as `@tool(timeout=5)`, or as a call: `tool(function, name="search")`. A tool made from a
    function can still be called like the function.

    Raises:
        ConfigurationError: it cannot be a tool, as for `as_tool`.
    """

    def make(target: Any) -> Tool:
        return _made(target, name=name, description=description, timeout=timeout)

    return make if obj is None else make(obj)
