"""Tools: what a model can call, made from functions and LangChain tools, and the one place where calls are answered."""

from graphwright.exceptions import ToolArgumentError, ToolError
from graphwright.tools.base import Tool, ToolHooks, ToolRun
from graphwright.tools.context import ToolContext, get_tool_context
from graphwright.tools.execute import answer_calls
from graphwright.tools.function import FunctionTool
from graphwright.tools.json_schema import argument_problems
from graphwright.tools.toolset import ToolSet, as_tool, as_tools, tool

__all__ = [
    "FunctionTool",
    "Tool",
    "ToolArgumentError",
    "ToolContext",
    "ToolError",
    "ToolHooks",
    "ToolRun",
    "ToolSet",
    "answer_calls",
    "argument_problems",
    "as_tool",
    "as_tools",
    "get_tool_context",
    "tool",
]
