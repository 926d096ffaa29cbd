"""Tools: what a model can call, made from functions and LangChain tools, and the one place where calls are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ToolArgumentError, ToolError
from graphwright.tools.base import Tool, ToolHooks, ToolRun
from graphwright.tools.context import ToolContext, get_tool_context
from graphwright.tools.execute import answer_calls
from graphwright.tools.function import FunctionTool
from graphwright.tools.gate_chain import joined_gates
from graphwright.tools.json_schema import argument_problems
from graphwright.tools.toolset import ToolSet, as_tool, as_tools, tool

if TYPE_CHECKING:
    from graphwright.tools.optimize import OptimizationLevel, ToolOptimizationConfig, ToolSelector

__all__ = [
    "FunctionTool",
    "OptimizationLevel",
    "Tool",
    "ToolArgumentError",
    "ToolContext",
    "ToolError",
    "ToolHooks",
    "ToolOptimizationConfig",
    "ToolRun",
    "ToolSelector",
    "ToolSet",
    "answer_calls",
    "argument_problems",
    "as_tool",
    "as_tools",
    "get_tool_context",
    "joined_gates",
    "tool",
]

_OPTIMIZE = frozenset({"OptimizationLevel", "ToolOptimizationConfig", "ToolSelector"})


def __getattr__(name: str) -> Any:
    if name in _OPTIMIZE:
        from graphwright.tools import optimize

        value = globals()[name] = getattr(optimize, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
