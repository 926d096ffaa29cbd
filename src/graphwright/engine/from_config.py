"""Make a node from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphwright.engine.base import BaseNode
from graphwright.exceptions import ConfigurationError

__all__ = ["node_from_config"]


def node_from_config(config: Mapping[str, Any]) -> BaseNode:
    """Return the node that `config` describes. Its `type` is `"prompt"` when it has none.

    Raises:
        ConfigurationError: the type or a key is unknown, or a value does not fit.
    """
    from graphwright.engine.nodes import PromptNode

    rest = dict(config)
    kind = rest.pop("type", "prompt")
    if kind != "prompt":
        raise ConfigurationError(f"a node of type {kind!r} cannot be made from data; use 'prompt'")
    return PromptNode.from_config(rest)
