"""The node that keeps the plan."""

from __future__ import annotations

from typing import Any

from graphwright.engine.nodes.tool_turn import owed_calls
from graphwright.engine.state import GraphState, NodeResult
from graphwright.messages import ToolMessage
from graphwright.orchestrator.nodes._base import BotNode, route_of
from graphwright.orchestrator.planning import PLAN_TOOL_NAMES, apply_plan_call

__all__ = ["PlanNode"]

UNREADABLE = "The plan was not changed: {problem}. Call again with one complete JSON object."


class PlanNode(BotNode):
    """Applies `set_plan` and `update_step`, and lets the other calls of the turn go on."""

    node_type = "plan"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Answer the plan calls of the turn."""
        owed = owed_calls(state.messages)
        plan = state.context.get("plan", [])
        added, events = [], []
        for call in owed:
            if call.name not in PLAN_TOOL_NAMES:
                continue
            if call.problem:
                text, ok = UNREADABLE.format(problem=call.problem), False
            else:
                change = apply_plan_call(plan, call.name, call.args)
                plan, text, ok = change.plan, change.ack, change.ok
                events += change.step_events
            status = "success" if ok else "error"
            added.append(ToolMessage(content=text, tool_call_id=call.id, name=call.name, status=status))
        state.context["plan"] = plan
        update: dict[str, Any] = {"plan": [dict(step) for step in plan]}
        if events:
            update["step_events"] = [dict(event) for event in events]
        rest = [call for call in owed if call.name not in PLAN_TOOL_NAMES]
        return self.result(state, update, added, route_of(rest, self.setup))
