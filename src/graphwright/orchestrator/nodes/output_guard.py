"""The node that acts on what the output guards said of the answer."""

from __future__ import annotations

from typing import Any

from graphwright.engine.edges import END
from graphwright.engine.state import GraphState, NodeResult
from graphwright.messages import HumanMessage, text_of
from graphwright.orchestrator.nodes._base import BotNode
from graphwright.orchestrator.output import verdict_in
from graphwright.orchestrator.prompts import WITHHELD_FEEDBACK

__all__ = ["OutputGuardNode"]


class OutputGuardNode(BotNode):
    """Ends the run, or, with the action `retry`, asks for another answer once.

    The guards saw the answer before anybody else did; what they took out is nowhere any more.
    """

    node_type = "output_guard"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Act on the verdict."""
        rounds = state.context.get("output_guard_rounds", 0) + 1
        state.context["output_guard_rounds"] = rounds
        last = state.messages[-1]
        verdict = verdict_in(last)
        passed = verdict is None or verdict["allowed"]
        update: dict[str, Any] = {"output_guard_rounds": rounds, "output_guard_passed": passed}
        if verdict is None:
            return self.result(state, update, [], END)
        if verdict["events"]:
            update["guard_events"] = verdict["events"]
        if not verdict["hidden"]:
            return self.result(state, update, [], END)
        if self.setup.output_guard_action == "retry" and rounds == 1:
            text = WITHHELD_FEEDBACK.format(guard=verdict["guard"], reason=verdict["reason"])
            return self.result(state, update, [HumanMessage(content=text)], "agent")
        update["final_report"] = text_of(last)
        return self.result(state, update, [], END)
