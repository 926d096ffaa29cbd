"""The node that has the report reviewed against the goal."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from graphwright._internal.jsonio import dumps, find_json
from graphwright.engine.base import NodeContext, context_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.messages import HumanMessage, SystemMessage, text_of
from graphwright.models import call_model
from graphwright.models.base import ModelRequest
from graphwright.orchestrator.nodes._base import BotNode, after_answer, usage_of
from graphwright.orchestrator.output import verdict_in
from graphwright.orchestrator.prompts import VERIFY, VERIFY_CASE, VERIFY_FEEDBACK

__all__ = ["Review", "VerifyNode"]

_RECORD_CHARS = 6000
_MARKER = re.compile(r"<(\s*/?\s*(?:goal|report|tool_record)\b)", re.IGNORECASE)


class Review(BaseModel):
    """What a reviewer says of a report."""

    approved: bool
    feedback: str = ""


class VerifyNode(BotNode):
    """Has the strong model review the report. A report that is rejected is written again once; both are reviewed."""

    node_type = "verify"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Review the report, and send it back when it is not accepted for the first time."""
        context = context_of(config)
        before = context.usage.as_dict()
        onward = after_answer(self.setup, state, past="verify")
        rounds = state.context.get("verify_rounds", 0)
        last = state.messages[-1]
        withheld = verdict_in(last)
        if withheld is not None and withheld["hidden"]:
            # There is nothing to review: the guards have taken the text out.
            return self.result(state, {"verify_rounds": rounds, "verify_passed": False}, [], onward)
        rounds += 1
        state.context["verify_rounds"] = rounds
        review = await self._review(text_of(last), state, context)
        update: dict[str, Any] = {"verify_rounds": rounds, "verify_passed": review.approved}
        used = usage_of(context, before)
        if used:
            update["token_usage"] = used
        if review.approved or rounds > 1:
            return self.result(state, update, [], onward)
        told = HumanMessage(content=VERIFY_FEEDBACK.format(feedback=review.feedback or "it does not answer the goal"))
        return self.result(state, update, [told], "agent")

    async def _review(self, report: str, state: GraphState, context: NodeContext) -> Review:
        setup = self.setup
        record = dumps(_evidence(state))[:_RECORD_CHARS]
        goal = _inert(str(state.context.get("goal", "")))
        case = VERIFY_CASE.format(goal=goal, report=_inert(report), record=_inert(record))
        native = setup.strong.capabilities.structured_output
        request = ModelRequest(
            messages=[SystemMessage(content=VERIFY), HumanMessage(content=case)],
            output_schema=Review if native else None,
            config=context.caller_config,
        )
        try:
            reply = await context.once_asked(call_model(setup.strong, request))
        except Exception as error:  # what becomes of the report then is the user's choice
            setup.logger.warning("the report could not be reviewed", exc_info=True)
            accepted = setup.verification_on_error == "accept"
            return Review(approved=accepted, feedback=f"the review failed: {type(error).__name__}")
        if reply.usage is not None:
            context.usage.add(reply.usage)
        return _read(reply.text) or Review(
            approved=setup.verification_on_error == "accept", feedback="the review could not be read"
        )


def _inert(text: str) -> str:
    """Return the text without what ends or begins a part of the case: a report must not bring its own record."""
    return _MARKER.sub(r"&lt;\1", text)


def _read(text: str) -> Review | None:
    """Return the review in a text. Of several one that rejects counts: a reviewer may quote the report."""
    said = [entry for entry in find_json(text) if isinstance(entry, dict) and isinstance(entry.get("approved"), bool)]
    if said:
        found = next((entry for entry in said if not entry["approved"]), said[-1])
        return Review(approved=found["approved"], feedback=str(found.get("feedback") or ""))
    word = text.strip().upper().rstrip(".! ")
    if word == "APPROVED":
        return Review(approved=True)
    if word.startswith("REJECTED"):
        return Review(approved=False, feedback=text.strip()[len("REJECTED") :].lstrip(":. "))
    return None


def _evidence(state: GraphState) -> list[dict[str, Any]]:
    records = []
    for result in state.node_history:
        if isinstance(result.output, dict):
            records += result.output.get("update", {}).get("tools_executed", ())
    return records
