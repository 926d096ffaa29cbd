"""Several gates before one call: each has to let it through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphwright.interrupts import ApprovalDecision
from graphwright.tools.base import Approval, Approver, DecisionWatcher, GatedCall, ToolGate, Verdict

__all__ = ["joined_gates"]


def joined_gates(*gates: ToolGate | None) -> ToolGate | None:
    """Return one gate that lets through what all of `gates` let through; `None` where there are none."""
    distinct: list[ToolGate] = []
    for gate in gates:
        for each in gate.gates if isinstance(gate, _Gates) else [gate]:
            if each is not None and not any(each is known for known in distinct):
                distinct.append(each)
    return _Gates(distinct) if len(distinct) > 1 else distinct[0] if distinct else None


class _Gates:
    """Gates in a row; what one puts in place of the arguments is what the next one sees."""

    def __init__(self, gates: Sequence[ToolGate]) -> None:
        self.gates = gates

    async def judge(self, gated: GatedCall) -> Verdict:
        """Return the first no, else one question for all who ask."""
        args: dict[str, Any] | None = None
        notes: list[dict[str, Any]] = []
        asks: list[Verdict] = []
        for gate in self.gates:
            verdict = await gate.judge(gated)
            notes += verdict.notes
            if verdict.action == "deny":
                return replace(verdict, notes=notes)
            if verdict.args is not None:
                args = verdict.args
                gated = replace(gated, args=args)
            if verdict.action == "ask":
                asks.append(verdict)
        if not asks:
            return Verdict("allow", args, notes=notes)
        ends = [ask.expires_at for ask in asks if ask.expires_at is not None]
        approvers = [ask.approver for ask in asks]
        return Verdict(
            "ask",
            args,
            reason="; ".join(ask.reason for ask in asks if ask.reason),
            shown={key: value for ask in asks for key, value in ask.shown.items()},
            standing=all(ask.standing for ask in asks),
            expires_at=min(ends, default=None),
            notes=notes,
            approver=_Approvers(approvers) if any(approver is not None for approver in approvers) else None,
        )

    async def decided(self, approval: Approval, decision: ApprovalDecision) -> None:
        """Pass a decision on."""
        for gate in self.gates:
            if isinstance(gate, DecisionWatcher):
                await gate.decided(approval, decision)


class _Approvers:
    """Everybody who has to say yes to one call; those who are not there are asked by a pause afterwards."""

    def __init__(self, approvers: Sequence[Approver | None]) -> None:
        self._approvers = approvers

    async def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision | None]:
        """Return the first no, else the last yes with all of the edits in it; `None` while somebody is missing."""
        return [await self._decide(approval) for approval in approvals]

    async def _decide(self, approval: Approval) -> ApprovalDecision | None:
        yes: ApprovalDecision | None = None
        edited: dict[str, Any] | None = None
        missing = False
        for approver in self._approvers:
            decision = (await approver.decide([approval]))[0] if approver is not None else None
            if decision is None:
                missing = True
                continue
            if not decision.approved:
                return decision
            if decision.modified_arguments is not None:
                edited = decision.modified_arguments
                approval = replace(approval, args=edited)
            yes = decision
        if missing:
            # Whoever answers the pause is shown the arguments of the call, so an edit made before would be lost.
            if edited is None:
                return None
            return ApprovalDecision(
                False, decided_by="gate", reason="two reviews are needed, and the first changed the arguments"
            )
        return replace(yes, modified_arguments=edited) if yes is not None else None
