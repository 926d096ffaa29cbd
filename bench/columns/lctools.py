"""LangChain tools for the columns that use them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def langchain_tools(functions: list[Callable[..., Any]]) -> list[Any]:
    """Return each function as a LangChain tool with the side that it has."""
    from langchain_core.tools import StructuredTool

    return [
        StructuredTool.from_function(**{"coroutine" if inspect.iscoroutinefunction(f) else "func": f}, name=f.__name__)
        for f in functions
    ]
