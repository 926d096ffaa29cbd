"""The standard nodes."""

from graphwright.engine.nodes.autonomous import AutonomousNode
from graphwright.engine.nodes.guard import GuardNode
from graphwright.engine.nodes.human import HumanNode
from graphwright.engine.nodes.loop import LoopNode
from graphwright.engine.nodes.parallel import ParallelNode
from graphwright.engine.nodes.prompt import PromptNode
from graphwright.engine.nodes.router import RouterNode
from graphwright.engine.nodes.subgraph import SubgraphNode
from graphwright.engine.nodes.tool import ToolNode
from graphwright.engine.nodes.transform import TransformNode

__all__ = [
    "AutonomousNode",
    "GuardNode",
    "HumanNode",
    "LoopNode",
    "ParallelNode",
    "PromptNode",
    "RouterNode",
    "SubgraphNode",
    "ToolNode",
    "TransformNode",
]
