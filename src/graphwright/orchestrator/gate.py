"""What stands between a call and its effect: the guards of the bot, then the mode, then a person."""

from __future__ import annotations

import time
from collections import Counter
from copy import deepcopy
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.base import NodeContext
from graphwright.engine.state import GraphState
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.guards import GuardContext, evaluate_guard_chain
from graphwright.orchestrator.redact import redact
from graphwright.tools.base import GatedCall, Verdict

__all__ = ["BotGate"]

_RAN = ("success", "error", "unknown")
_DIFF_CHARS = 20_000


class BotGate:
    """Judges the calls of one turn."""

    def __init__(self, setup: BotSetup, state: GraphState, context: NodeContext) -> None:
        self._setup = setup
        self._state = state
        self._context = context
        self._counts: Counter[str] | None = None

    async def judge(self, gated: GatedCall) -> Verdict:
        """Return what is to become of a call; guards are asked once, and the answer is kept with the run."""
        setup, state = self._setup, self._state
        risk = setup.risks.get(gated.call.name, 1)
        args, notes, rewritten = gated.args, [], False
        if setup.guards:
            chain = await evaluate_guard_chain(setup.guards, self._guard_context(gated, risk))
            notes = [dict(event) for event in chain.events]
            if chain.action == "deny":
                return Verdict("deny", reason=f"{chain.guard_name}: {chain.reason}", notes=notes)
            args, rewritten = chain.args, chain.rewritten
            if chain.action == "ask":
                shown = self._shown(gated, args, guard_reason=chain.reason)
                self._count(gated)
                return self._ask(args, rewritten, shown, notes, standing=False)
        self._count(gated)
        if state.context.get("mode") == "ask" and risk > 0:
            return self._ask(args, rewritten, self._shown(gated, args), notes, standing=True)
        return Verdict("allow", args if rewritten else None, notes=notes)

    def _ask(
        self, args: dict[str, Any], rewritten: bool, shown: dict[str, Any], notes: list[Any], *, standing: bool
    ) -> Verdict:
        timeout = self._setup.approval_timeout
        return Verdict(
            "ask",
            args if rewritten else None,
            shown=shown,
            standing=standing,
            expires_at=None if timeout is None else time.time() + timeout,
            notes=notes,
        )

    def _shown(self, gated: GatedCall, args: dict[str, Any], *, guard_reason: str = "") -> dict[str, Any]:
        """Return what a person is shown: the arguments that would run, credentials taken out."""
        shown: dict[str, Any] = {"type": "permission_request", "params": redact(args)}
        diff = _preview(gated, args)
        if diff:
            shown["diff"] = diff
        if guard_reason:
            shown["guard_reason"] = guard_reason
        return shown

    def _guard_context(self, gated: GatedCall, risk: int) -> GuardContext:
        state, counts = self._state, self._counted()
        return GuardContext(
            tool_name=gated.call.name,
            args=gated.args,
            risk_level=risk,
            goal=state.context.get("goal", ""),
            mode=state.context.get("mode", "auto"),
            run_id=self._context.run_id,
            session_id=self._context.journal.thread_id if self._context.journal is not None else "",
            tool_call_id=gated.call.id,
            tool_calls_so_far=sum(counts.values()),
            batch_index=gated.index,
            tool_description=gated.tool.spec.description,
            tool_counts=dict(counts),
            usage=self._context.usage,
        )

    def _counted(self) -> Counter[str]:
        """Return how often each tool ran in this run, with the calls of this turn that were let through."""
        if self._counts is None:
            self._counts = Counter(
                record["tool_name"]
                for result in self._state.node_history
                if isinstance(result.output, dict)
                for record in result.output.get("update", {}).get("tools_executed", ())
                if record["status"] in _RAN
            )
        return self._counts

    def _count(self, gated: GatedCall) -> None:
        if self._setup.guards:
            self._counted()[gated.call.name] += 1


def _preview(gated: GatedCall, args: dict[str, Any]) -> str:
    """Return what the tool itself says that the call would change, where it says so."""
    for owner in (gated.tool, getattr(gated.tool, "tool", None), getattr(gated.tool, "function", None)):
        preview = getattr(owner, "preview", None)
        if callable(preview):
            try:
                shown = preview(deepcopy(args))
            except Exception:  # a preview is a courtesy of the tool's author; the question stands without it
                return ""
            text = shown if isinstance(shown, str) else dumps(shown)
            return text[:_DIFF_CHARS]
    return ""
