"""The standard nodes."""

from graphwright.engine.nodes.prompt import PromptNode
from graphwright.engine.nodes.tool import ToolNode

__all__ = ["PromptNode", "ToolNode"]
