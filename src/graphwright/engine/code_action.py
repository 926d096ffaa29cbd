"""The node that writes and runs a program. This release has its name only."""

from __future__ import annotations

from typing import Any

from graphwright.engine.base import BaseNode
from graphwright.exceptions import FeatureOffError

__all__ = ["CodeActionNode"]


class CodeActionNode(BaseNode):
    """Solves a problem by one sandboxed program. Making one is refused: this release cannot run programs."""

    node_type = "code_action"

    def __init__(self, name: str, **options: Any) -> None:
        raise FeatureOffError(
            f"node {name!r} is a CodeActionNode, which this release does not have; use a PromptNode with tools"
        )
