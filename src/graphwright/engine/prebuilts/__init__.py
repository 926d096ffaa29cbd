"""Graphs that are ready to use."""

from graphwright.engine.prebuilts._stages import StageNode
from graphwright.engine.prebuilts.autonomous import build_autonomous_graph
from graphwright.engine.prebuilts.code_action import build_code_action_graph
from graphwright.engine.prebuilts.debate import build_debate_graph
from graphwright.engine.prebuilts.deliberate import build_deliberate_graph
from graphwright.engine.prebuilts.managed import build_managed_graph
from graphwright.engine.prebuilts.peoatr import build_peoatr_graph
from graphwright.engine.prebuilts.pipeline import build_pipeline_graph
from graphwright.engine.prebuilts.react import build_react_graph
from graphwright.engine.prebuilts.research import build_research_graph
from graphwright.engine.prebuilts.schemas import (
    DebateCritique,
    DebateVerdict,
    PeoatrPlan,
    PeoatrReflection,
    PeoatrThought,
    ResearchVerdict,
)
from graphwright.engine.prebuilts.verify import build_verify_graph

__all__ = [
    "DebateCritique",
    "DebateVerdict",
    "PeoatrPlan",
    "PeoatrReflection",
    "PeoatrThought",
    "ResearchVerdict",
    "StageNode",
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
]
