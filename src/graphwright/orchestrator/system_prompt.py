"""The system text of a bot: a part that stays the same all run long, and what changes behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphwright.engine.state import GraphState
from graphwright.messages import text_of
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.guards import INJECTION_HARDENING_PROMPT, render_prohibited_section
from graphwright.orchestrator.planning import PLANNING_PROTOCOL, render_plan
from graphwright.orchestrator.prompts import CONTEXT, PLAN_MODE, PLAN_NOW, SUMMARY
from graphwright.orchestrator.skills import skills_index, skills_text

__all__ = ["dynamic_text", "stable_text"]


def stable_text(setup: BotSetup, state: GraphState, memory: str) -> str:
    """Return instructions, memory, safety rules, skills and the protocol of the mode."""
    plan_mode = state.context.get("mode") == "plan"
    parts = [setup.instructions, memory]
    if setup.hardening:
        parts.append(INJECTION_HARDENING_PROMPT)
    if setup.prohibited:
        parts.append(render_prohibited_section(list(setup.prohibited)))
    if setup.skills:
        parts.append(skills_text(setup.skills) if setup.skills_eager else skills_index(setup.skills))
    if plan_mode:
        parts.append(PLAN_MODE)
    elif setup.planning:
        parts.append(PLANNING_PROTOCOL)
    return "\n\n".join(part for part in parts if part)


def dynamic_text(setup: BotSetup, state: GraphState, summary: str, told: Sequence[Any]) -> str:
    """Return what belongs to this request: system messages of the history, context, summary, plan."""
    parts = [text_of(message) for message in told]
    if state.context.get("given_context"):
        parts.append(CONTEXT.format(context=state.context["given_context"]))
    if summary:
        parts.append(SUMMARY.format(summary=summary))
    plan = state.context.get("plan")
    if plan and state.context.get("mode") != "plan":
        parts.append(PLAN_NOW.format(plan=render_plan(plan)))
    return "\n\n".join(part for part in parts if part)
