"""Graphwright: AI agents on an explicit, inspectable reasoning graph.

The names people type every day are here; each is imported from its own module when it is first used, so
`import graphwright` loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.agent import AGENT_PATTERNS, Agent, PromptiseAgent, Run, build_agent
    from graphwright.caller import CallerContext, get_current_caller
    from graphwright.engine import (
        BaseNode,
        Edge,
        ExecutionReport,
        GraphMutation,
        GraphState,
        Hook,
        NodeEvent,
        NodeFlag,
        NodeResult,
        PromptGraph,
        PromptGraphEngine,
        PromptNode,
        ToolNode,
        node,
    )
    from graphwright.exceptions import (
        ConfigurationError,
        EmptyReplyError,
        FeatureOffError,
        GraphBudgetExceededError,
        GraphExecutionError,
        GraphInvalidError,
        GraphIterationLimitError,
        GraphStoppedError,
        GraphwrightError,
        MissingExtraError,
        ModelError,
        RunAbortedError,
        RunTimeoutError,
        ToolArgumentError,
        ToolError,
        UnknownModelError,
        UnknownPatternError,
    )
    from graphwright.messages import text_of
    from graphwright.models import as_model
    from graphwright.tools import as_tool, tool
    from graphwright.usage import Usage

__version__ = "0.1.0"

_HOMES = {
    "graphwright.agent": ("AGENT_PATTERNS", "Agent", "PromptiseAgent", "Run", "build_agent"),
    "graphwright.caller": ("CallerContext", "get_current_caller"),
    "graphwright.engine": (
        "BaseNode",
        "Edge",
        "ExecutionReport",
        "GraphMutation",
        "GraphState",
        "Hook",
        "NodeEvent",
        "NodeFlag",
        "NodeResult",
        "PromptGraph",
        "PromptGraphEngine",
        "PromptNode",
        "ToolNode",
        "node",
    ),
    "graphwright.exceptions": (
        "ConfigurationError",
        "EmptyReplyError",
        "FeatureOffError",
        "GraphBudgetExceededError",
        "GraphExecutionError",
        "GraphInvalidError",
        "GraphIterationLimitError",
        "GraphStoppedError",
        "GraphwrightError",
        "MissingExtraError",
        "ModelError",
        "RunAbortedError",
        "RunTimeoutError",
        "ToolArgumentError",
        "ToolError",
        "UnknownModelError",
        "UnknownPatternError",
    ),
    "graphwright.messages": ("text_of",),
    "graphwright.models": ("as_model",),
    "graphwright.tools": ("as_tool", "tool"),
    "graphwright.usage": ("Usage",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AGENT_PATTERNS",
    "Agent",
    "BaseNode",
    "CallerContext",
    "ConfigurationError",
    "Edge",
    "EmptyReplyError",
    "ExecutionReport",
    "FeatureOffError",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphInvalidError",
    "GraphIterationLimitError",
    "GraphMutation",
    "GraphState",
    "GraphStoppedError",
    "GraphwrightError",
    "Hook",
    "MissingExtraError",
    "ModelError",
    "NodeEvent",
    "NodeFlag",
    "NodeResult",
    "PromptGraph",
    "PromptGraphEngine",
    "PromptNode",
    "PromptiseAgent",
    "Run",
    "RunAbortedError",
    "RunTimeoutError",
    "ToolArgumentError",
    "ToolError",
    "ToolNode",
    "UnknownModelError",
    "UnknownPatternError",
    "Usage",
    "__version__",
    "as_model",
    "as_tool",
    "build_agent",
    "get_current_caller",
    "node",
    "text_of",
    "tool",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is not None:
        value = globals()[name] = getattr(import_module(module), name)
        return value
    # `graphwright.engine.PromptGraph` works without an import of `graphwright.engine`.
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
