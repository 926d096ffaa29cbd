"""Agents: `build_agent`, what it returns, and who calls it."""

from graphwright.agent._agent import Agent
from graphwright.agent._build import build_agent
from graphwright.agent._options import AGENT_PATTERNS, DEFAULT_MAX_DELEGATION_DEPTH, DEFAULT_SYSTEM_PROMPT
from graphwright.caller import CallerContext, get_current_caller, get_current_session_id
from graphwright.engine.result import RunResult
from graphwright.runtime import Run

PromptiseAgent = Agent
"""The name of `Agent` on the reference page."""

__all__ = [
    "AGENT_PATTERNS",
    "DEFAULT_MAX_DELEGATION_DEPTH",
    "DEFAULT_SYSTEM_PROMPT",
    "Agent",
    "CallerContext",
    "PromptiseAgent",
    "Run",
    "RunResult",
    "build_agent",
    "get_current_caller",
    "get_current_session_id",
]
