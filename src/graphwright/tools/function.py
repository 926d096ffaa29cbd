"""Tools made from plain Python functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Self

from graphwright.exceptions import ConfigurationError
from graphwright.tools.base import Tool
from graphwright.tools.problems import check
from graphwright.tools.schema import function_schema
from graphwright.types import ToolCall, ToolSpec

__all__ = ["FunctionTool", "checked_timeout"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionTool(Tool):
    """A tool that calls a Python function; calling the object calls the function.

    An `async def` runs on the event loop, any other function in a worker thread.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.function = function
        target = _target(function)
        own_name = _name_of(function)
        name = own_name if name is None else name
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{name!r} cannot be the name of a tool ({function!r}): providers take 1 to 64 letters, digits, '_' "
                "and '-'; give another with tool(function, name=...)"
            )
        if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise ConfigurationError(f"tool {name!r} is a generator function; return the whole result instead")
        schema = function_schema(target, name)
        if description is None:
            description = schema.description or _class_doc(function)
        self.spec = ToolSpec(name=name, description=description, parameters=schema.parameters)
        self.other_names = (own_name,) if own_name != name else ()
        self.timeout = checked_timeout(timeout, name)
        self.blocking = not inspect.iscoroutinefunction(target)
        self._attempt = schema.attempt
        self._positional = schema.positional
        self._call_ids = schema.call_ids
        self.injected = schema.injected
        self.__name__ = own_name
        self.__doc__ = inspect.getdoc(target)
        self.__wrapped__ = function

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, converted to the types of the hints, defaults of `Field` filled."""
        return check(self.name, args, self._attempt)

    def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Call an `async` function."""
        if self._positional or self._call_ids:
            return self.run_blocking(args, call, config)  # type: ignore[no-any-return]
        return self.function(**args)  # type: ignore[no-any-return]

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Call a plain function. What it returns may be awaitable; it is awaited on the loop then."""
        by_name = {**args, **dict.fromkeys(self._call_ids, call.id)} if self._call_ids else dict(args)
        by_place = [by_name.pop(name, default) for name, default in self._positional]
        if inspect.Parameter.empty in by_place:
            # Only where nothing was validated: let Python say what is missing.
            del by_place[by_place.index(inspect.Parameter.empty) :]
        return self.function(*by_place, **by_name)

    def replaced(
        self, *, name: str | None = None, description: str | None = None, timeout: float | None = None
    ) -> FunctionTool:
        """Return the same tool with another name, description or timeout."""
        return FunctionTool(
            self.function,
            name=self.name if name is None else name,
            description=self.spec.description if description is None else description,
            timeout=self.timeout if timeout is None else timeout,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Self | FunctionTool:
        """Bind a tool that was made of a method in a class body, as a function would be bound."""
        if instance is None:
            return self
        return FunctionTool(
            self.function.__get__(instance, owner),
            name=self.name,
            description=self.spec.description,
            timeout=self.timeout,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionTool) and (self.function, self.spec, self.timeout) == (
            other.function,
            other.spec,
            other.timeout,
        )

    def __hash__(self) -> int:
        return hash((self.spec.name, self.timeout))

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r}, {_place_of(self.function)})"


def _target(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is looked at: the function itself, or the `__call__` of an object."""
    if inspect.isroutine(function) or isinstance(function, partial):
        return function
    return function.__call__  # type: ignore[operator, no-any-return]


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(function).__name__).lower()


def _class_doc(function: Callable[..., Any]) -> str:
    if inspect.isroutine(function) or isinstance(function, partial):
        return ""
    return inspect.getdoc(type(function)) or ""


def _place_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def checked_timeout(timeout: float | None, name: str) -> float | None:
    """Return the timeout of a tool, or refuse one that no call could meet."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise ConfigurationError(f"timeout of tool {name!r} is {timeout!r}; give seconds above 0, or None for no limit")
    return timeout
