"""The node that carries out what the model calls."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from graphwright.engine.base import context_of
from graphwright.engine.journal import LeavesRun
from graphwright.engine.nodes.tool_turn import cancelled_results, owed_calls
from graphwright.engine.state import GraphState, NodeResult
from graphwright.interrupts import Interrupted
from graphwright.messages import text_of
from graphwright.orchestrator.gate import BotGate
from graphwright.orchestrator.guards import wrap_untrusted
from graphwright.orchestrator.nodes._base import BotNode, is_signal, usage_of
from graphwright.orchestrator.nodes.agent import tools_of
from graphwright.orchestrator.redact import redact, redact_text
from graphwright.orchestrator.skills import LOAD_SKILL_NAME
from graphwright.tools import answer_calls
from graphwright.types import ToolCall, ToolResult

__all__ = ["ToolsNode"]

_OUTPUT_CHARS = 500
_STATUS = {"denied": "denied", "rejected": "skipped", "unknown": "unknown"}


class ToolsNode(BotNode):
    """Runs the calls that the conversation owes, each past the guards and, where needed, a person's yes."""

    node_type = "tools"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Answer every call of the turn."""
        context = context_of(config)
        setup = self.setup
        before = context.usage.as_dict()
        calls = [call for call in owed_calls(state.messages) if not is_signal(call, setup)]
        gate = BotGate(setup, state, context)
        settings = context.tool_run(
            self.name,
            state,
            gate=gate,
            parallel=setup.max_parallel_tools,
            timeout=setup.tool_timeout,
            wrap=self._wrap,
        )
        started = perf_counter()
        finished: list[ToolResult] = []
        try:
            results = await answer_calls(calls, tools_of(setup, state), settings, finished=finished)
        except (Interrupted, LeavesRun):
            raise  # the visit is made again when the run goes on
        except BaseException:
            state.messages.extend(cancelled_results(calls, finished))
            raise
        self._note_skills(results, state)
        update: dict[str, Any] = {"tools_executed": [_record(entry) for entry in results]}
        # A person's decision is noted too, and is no event of a guard.
        events = [event for entry in results for event in entry.notes or () if "approval" not in event]
        if events:
            update["guard_events"] = events
        used = usage_of(context, before)
        if used:
            update["token_usage"] = used
        result = self.result(state, update, [entry.message for entry in results], "agent")
        result.tool_calls = [entry.record() for entry in results]
        result.tool_calls_failed = sum(not entry.success for entry in results)
        result.tool_duration_ms = (perf_counter() - started) * 1000
        state.tool_calls_made += len(results)
        return result

    def _wrap(self, call: ToolCall, content: Any) -> Any:
        return wrap_untrusted(call.name, content) if call.name in self.setup.untrusted else content

    def _note_skills(self, results: list[ToolResult], state: GraphState) -> None:
        loaded = [
            entry.call.args.get("name")
            for entry in results
            if entry.call.name == LOAD_SKILL_NAME and entry.success and LOAD_SKILL_NAME in self.setup.tools
        ]
        fresh = [name for name in loaded if name in self.setup.skill_tools]
        if fresh:
            known = state.context.get("skills_loaded", [])
            state.context["skills_loaded"] = [*known, *(name for name in fresh if name not in known)]


def _record(entry: ToolResult) -> dict[str, Any]:
    """Return what is shown of a call; credentials are taken out."""
    output = text_of(entry.message)
    cut = output if len(output) <= _OUTPUT_CHARS else output[:_OUTPUT_CHARS]
    status = _STATUS.get(entry.verdict) or ("success" if entry.success else "error")
    return {
        "tool_name": entry.call.name,
        "args": redact(entry.args if isinstance(entry.args, dict) else {}),
        "status": status,
        "output": redact_text(cut),
    }
