"""Nodes that are set up for one kind of reasoning, and two that run other nodes."""

from graphwright.engine.reasoning_nodes.critique import CritiqueNode
from graphwright.engine.reasoning_nodes.fan_out import FanOutNode
from graphwright.engine.reasoning_nodes.justify import JustifyNode
from graphwright.engine.reasoning_nodes.observe import ObserveNode
from graphwright.engine.reasoning_nodes.plan import PlanNode
from graphwright.engine.reasoning_nodes.reflect import ReflectNode
from graphwright.engine.reasoning_nodes.retry import RetryNode
from graphwright.engine.reasoning_nodes.synthesize import SynthesizeNode
from graphwright.engine.reasoning_nodes.think import ThinkNode
from graphwright.engine.reasoning_nodes.validate import ValidateNode

__all__ = [
    "CritiqueNode",
    "FanOutNode",
    "JustifyNode",
    "ObserveNode",
    "PlanNode",
    "ReflectNode",
    "RetryNode",
    "SynthesizeNode",
    "ThinkNode",
    "ValidateNode",
]
