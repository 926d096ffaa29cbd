"""What the nodes of a bot have in common: its setup, the form of their results, the way on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from graphwright.engine.base import BaseNode, NodeContext
from graphwright.engine.edges import END
from graphwright.engine.state import GraphState, NodeResult
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.planning import PLAN_TOOL_NAMES
from graphwright.orchestrator.questions import ASK_USER_TOOL_NAME
from graphwright.orchestrator.redact import redact
from graphwright.types import ToolCall

__all__ = ["BotNode", "after_answer", "is_signal", "route_of", "usage_of"]


_PARTS = ("cached_tokens", "reasoning_tokens")


class BotNode(BaseNode):
    """A node whose output is what the bot's streams show of it."""

    reenterable = True
    may_mutate = False

    def __init__(self, setup: BotSetup) -> None:
        super().__init__(self.node_type, max_iterations=1_000_000_000)
        self.setup = setup

    def result(
        self,
        state: GraphState,
        update: Mapping[str, Any],
        added: Iterable[Any],
        next_node: str,
        *,
        calls: Iterable[ToolCall] = (),
    ) -> NodeResult:
        """Return the result of a visit: what it shows, what it adds to the conversation, and where it leads."""
        output: dict[str, Any] = {"seq": state.iteration, "ts": time.time(), "update": dict(update)}
        if calls:
            output["calls"] = [{"name": call.name, "args": redact(call.args)} for call in calls]
        return NodeResult(self.name, self.node_type, output=output, messages_added=list(added), next_node=next_node)


def is_signal(call: ToolCall, setup: BotSetup) -> bool:
    """Return whether a call is no action but a signal to the bot."""
    return (setup.planning and call.name in PLAN_TOOL_NAMES) or (setup.questions and call.name == ASK_USER_TOOL_NAME)


def route_of(calls: Iterable[ToolCall], setup: BotSetup) -> str:
    """Return the node that deals with calls: the plan first, then questions, then actions; else the agent."""
    names = {call.name for call in calls}
    if not names:
        return "agent"
    if setup.planning and names & PLAN_TOOL_NAMES:
        return "plan"
    if setup.questions and ASK_USER_TOOL_NAME in names:
        return "ask_user"
    return "tools"


def after_answer(setup: BotSetup, state: GraphState, *, past: str = "agent") -> str:
    """Return where an answer goes that has passed the node `past`."""
    if state.context.get("mode") != "plan" and past == "agent" and setup.verification:
        return "verify"
    if past in ("agent", "verify") and setup.output_guards:
        return "output_guard"
    return END


def usage_of(context: NodeContext, before: Mapping[str, int | None]) -> dict[str, int]:
    """Return what was used since `before`, without the parts that are zero."""
    now = context.usage.as_dict()
    used = {name: (count or 0) - (before.get(name) or 0) for name, count in now.items()}
    if not any(used.values()):
        return {}
    return {name: count for name, count in used.items() if count or name not in _PARTS}
