"""The reasoning engine: graphs of nodes, and the loop that runs them."""

from graphwright.engine.base import BaseNode, NodeConfig, NodeContext, NodeProtocol, context_of, node
from graphwright.engine.condition import parse_condition
from graphwright.engine.edges import Edge, EdgeCondition
from graphwright.engine.execution import (
    CodeActionBudgetError,
    GraphBudgetExceededError,
    GraphExecutionError,
    GraphIterationLimitError,
    GraphStoppedError,
    PromptGraphEngine,
    RunResult,
)
from graphwright.engine.from_config import node_from_config
from graphwright.engine.graph import PromptGraph
from graphwright.engine.hooks import Hook
from graphwright.engine.nodes import PromptNode, ToolNode
from graphwright.engine.prebuilts import build_react_graph
from graphwright.engine.state import (
    ExecutionReport,
    GraphMutation,
    GraphState,
    NodeEvent,
    NodeFlag,
    NodeResult,
)

__all__ = [
    "BaseNode",
    "CodeActionBudgetError",
    "Edge",
    "EdgeCondition",
    "ExecutionReport",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphIterationLimitError",
    "GraphMutation",
    "GraphState",
    "GraphStoppedError",
    "Hook",
    "NodeConfig",
    "NodeContext",
    "NodeEvent",
    "NodeFlag",
    "NodeProtocol",
    "NodeResult",
    "PromptGraph",
    "PromptGraphEngine",
    "PromptNode",
    "RunResult",
    "ToolNode",
    "build_react_graph",
    "context_of",
    "node",
    "node_from_config",
    "parse_condition",
]
