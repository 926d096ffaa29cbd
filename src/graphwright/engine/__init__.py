"""The reasoning engine: graphs of nodes, and the loop that runs them."""

from graphwright.engine.base import BaseNode, NodeConfig, NodeContext, NodeProtocol, context_of, node
from graphwright.engine.compaction import ContextCompaction
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
from graphwright.engine.from_config import dump_graph, load_graph, node_from_config, node_to_config
from graphwright.engine.graph import PromptGraph
from graphwright.engine.hooks import Hook
from graphwright.engine.nodes import (
    AutonomousNode,
    GuardNode,
    HumanNode,
    LoopNode,
    ParallelNode,
    PromptNode,
    RouterNode,
    SubgraphNode,
    ToolNode,
    TransformNode,
)
from graphwright.engine.prebuilts import (
    build_autonomous_graph,
    build_code_action_graph,
    build_debate_graph,
    build_deliberate_graph,
    build_managed_graph,
    build_peoatr_graph,
    build_pipeline_graph,
    build_react_graph,
    build_research_graph,
    build_verify_graph,
)
from graphwright.engine.state import (
    ExecutionReport,
    GraphMutation,
    GraphState,
    NodeEvent,
    NodeFlag,
    NodeResult,
)

__all__ = [
    "AutonomousNode",
    "BaseNode",
    "CodeActionBudgetError",
    "ContextCompaction",
    "Edge",
    "EdgeCondition",
    "ExecutionReport",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphIterationLimitError",
    "GraphMutation",
    "GraphState",
    "GraphStoppedError",
    "GuardNode",
    "Hook",
    "HumanNode",
    "LoopNode",
    "NodeConfig",
    "NodeContext",
    "NodeEvent",
    "NodeFlag",
    "NodeProtocol",
    "NodeResult",
    "ParallelNode",
    "PromptGraph",
    "PromptGraphEngine",
    "PromptNode",
    "RouterNode",
    "RunResult",
    "SubgraphNode",
    "ToolNode",
    "TransformNode",
    "build_autonomous_graph",
    "build_code_action_graph",
    "build_debate_graph",
    "build_deliberate_graph",
    "build_managed_graph",
    "build_peoatr_graph",
    "build_pipeline_graph",
    "build_react_graph",
    "build_research_graph",
    "build_verify_graph",
    "context_of",
    "dump_graph",
    "load_graph",
    "node",
    "node_from_config",
    "node_to_config",
    "parse_condition",
]
