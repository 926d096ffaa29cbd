"""Graphwright with a LangChain chat model and LangChain tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphwright_native as native
from lctools import langchain_tools


def load() -> None:
    """Import what the column needs."""
    global FakeChat
    native.load()
    import langchain_core.tools  # noqa: F401
    from lcfake import FakeChat


class Column(native.Column):
    """The same agent; only the model and the tools differ."""

    def tools(self, functions: list[Callable[..., Any]]) -> list[Any]:
        """Return the LangChain tools."""
        return langchain_tools(functions)

    def model(self) -> Any:
        """Return the LangChain model."""
        return FakeChat()
