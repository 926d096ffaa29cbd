"""The node that asks the user."""

from __future__ import annotations

import json
from typing import Any

from graphwright.engine.base import context_of
from graphwright.engine.interrupt import QUESTION, ask_in
from graphwright.engine.nodes.tool_turn import owed_calls
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ToolArgumentError
from graphwright.messages import ToolMessage
from graphwright.orchestrator.nodes._base import BotNode
from graphwright.orchestrator.questions import ASK_USER_TOOL_NAME, answers_text, check_questions, question_event
from graphwright.orchestrator.redact import redact, redact_text

__all__ = ["AskUserNode"]

DEFERRED = "Not carried out: the user was asked first. Call it again if it is still needed after the answers."
UNREADABLE = "The question was not asked: {problem}. Call again with one complete JSON object."
_OUTPUT_CHARS = 500


class AskUserNode(BotNode):
    """Asks the first question call of the turn and pauses; every other call of the turn is deferred.

    Questions that cannot be asked as they are go back to the model.
    """

    node_type = "ask_user"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Ask, and write the answers for the model."""
        context = context_of(config)
        answered: dict[str, tuple[str, bool]] = {}
        update: dict[str, Any] = {}
        owed = owed_calls(state.messages)
        for call in owed:
            if answered or call.name != ASK_USER_TOOL_NAME:
                continue
            if call.problem:
                answered[call.id] = (UNREADABLE.format(problem=call.problem), False)
                break
            try:
                questions = check_questions(call.args)
            except ToolArgumentError as error:
                answered[call.id] = (str(error), False)
                break
            event = question_event(questions, call.args.get("reason"))
            answers = ask_in(context, [(QUESTION, call.id, dict(event), None)])[0]
            answered[call.id] = (answers_text(answers), True)
            shown = json.dumps(answers, ensure_ascii=False)[:_OUTPUT_CHARS]
            record = {
                "tool_name": call.name,
                "args": redact(call.args),
                "status": "success",
                "output": redact_text(shown),
            }
            update = {"tools_executed": [record], "questions": questions}
        added = []
        for call in owed:
            text, ok = answered.get(call.id, (DEFERRED, False))
            status = "success" if ok else "error"
            added.append(ToolMessage(content=text, tool_call_id=call.id, name=call.name, status=status))
        return self.result(state, update, added, "agent")
