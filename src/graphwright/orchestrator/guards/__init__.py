"""The guards of a bot: of its tool calls, of what it is told, of what it answers, and of what comes from outside."""

from __future__ import annotations

from graphwright.orchestrator.guards.base import (
    GuardContext,
    GuardDecision,
    GuardEvent,
    TextGuard,
    ToolGuard,
    as_guards,
    guard_name_of,
)
from graphwright.orchestrator.guards.builtin import (
    ArgPatternGuard,
    BudgetGuard,
    RiskThresholdGuard,
    ToolAllowlistGuard,
    ToolDenylistGuard,
)
from graphwright.orchestrator.guards.chain import ChainVerdict, IOVerdict, evaluate_guard_chain, evaluate_io_guards
from graphwright.orchestrator.guards.moderation import SafetyInputGuard, SafetyOutputGuard, SafetyVerdict
from graphwright.orchestrator.guards.prohibited import ProhibitedActionsGuard, ProhibitedVerdict
from graphwright.orchestrator.guards.prompts import INJECTION_HARDENING_PROMPT, render_prohibited_section
from graphwright.orchestrator.guards.untrusted import untrusted_names, wrap_untrusted

__all__ = [
    "INJECTION_HARDENING_PROMPT",
    "ArgPatternGuard",
    "BudgetGuard",
    "ChainVerdict",
    "GuardContext",
    "GuardDecision",
    "GuardEvent",
    "IOVerdict",
    "ProhibitedActionsGuard",
    "ProhibitedVerdict",
    "RiskThresholdGuard",
    "SafetyInputGuard",
    "SafetyOutputGuard",
    "SafetyVerdict",
    "TextGuard",
    "ToolAllowlistGuard",
    "ToolDenylistGuard",
    "ToolGuard",
    "as_guards",
    "evaluate_guard_chain",
    "evaluate_io_guards",
    "guard_name_of",
    "render_prohibited_section",
    "untrusted_names",
    "wrap_untrusted",
]
