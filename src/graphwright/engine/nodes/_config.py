"""Which keywords a node's constructor takes, with those of its base classes."""

from __future__ import annotations

import inspect

from graphwright.engine.base import BaseNode

__all__ = ["known_keywords"]


def known_keywords(node_class: type[BaseNode]) -> set[str]:
    """Return the names of all keywords of the class and of its bases up to `BaseNode`."""
    names: set[str] = set()
    for cls in node_class.__mro__:
        if issubclass(cls, BaseNode) and "__init__" in cls.__dict__:
            parameters = inspect.signature(cls.__dict__["__init__"]).parameters.values()
            names |= {p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return names - {"self"}
