"""The gate phase of a turn: every call is judged, and where needed approved, before any of them runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright._internal.redact import restored
from graphwright.interrupts import ApprovalDecision
from graphwright.tools.base import Approval, Approver, CallBatch, DecisionWatcher, GatedCall, ToolRun, Verdict
from graphwright.tools.content import error_text
from graphwright.tools.gate import CheckedCall, check_call, pass_hook, validate_args
from graphwright.tools.toolset import ToolSet
from graphwright.types import ToolCall

__all__ = ["check_batch"]

logger = logging.getLogger(__name__)

DENIED = "The call was denied: {reason}"
REJECTED = "A person rejected this call, so it did not run."
FEEDBACK = " They said: {reason}"
EXPIRED = "Nobody approved this call in time, so it did not run."
NOBODY = (
    "This call needs a person's approval, and this run cannot pause for one, so it did not run. "
    "Go on without it, or tell the user what you would have done."
)


_PEOPLE = frozenset({"reviewer", "expiry", "standing"})
"""Who decides for a person; anybody else is a machine that says no in its own words."""


async def check_batch(
    calls: Sequence[ToolCall], tools: ToolSet, run: ToolRun, batch: CallBatch | None, first_index: int
) -> list[CheckedCall]:
    """Pass the calls of a turn through the gate: known tool, fitting arguments, hooks, guards, approval.

    What an earlier leg of the run decided is not decided again.
    """
    checked = [
        await _check(call, index, len(calls), tools, run, batch) for index, call in enumerate(calls, first_index)
    ]
    asks = [entry for entry in checked if entry.approval is not None]
    if asks:
        await _ask_approvers(asks, len(calls), run, batch)
        asks = [entry for entry in asks if entry.approval is not None]
    if asks:
        await _settle(asks, len(calls), run, batch)
    return checked


async def _check(
    call: ToolCall, index: int, count: int, tools: ToolSet, run: ToolRun, batch: CallBatch | None
) -> CheckedCall:
    known = batch.verdict(call) if batch is not None else None
    if known is not None:
        entry = _recalled(known, CheckedCall(call, index, tools.get(call.name)))
        if entry.approval is not None:
            entry.approval.gated = _gated(entry, count, run)
        return entry
    entry = check_call(call, index, tools, run)
    if entry.tool is None:
        entry.verdict = "missing"
    if run.hooks is not None and run.hooks.before is not None and entry.refusal is None:
        await pass_hook(entry, run.hooks.before, validate=run.validate)
    if run.gate is not None and entry.refusal is None:
        await _judge(entry, count, run)
    if batch is not None and _approver_of(entry) is None:
        row = _row_of(entry)
        if row or run.gate is not None or run.hooks is not None:
            # Where nothing but the tool's own check had a say, it says the same again.
            batch.judged(call, row)
    return entry


def _approver_of(entry: CheckedCall) -> Approver | None:
    return entry.approval.verdict.approver if entry.approval is not None else None


async def _judge(entry: CheckedCall, count: int, run: ToolRun) -> None:
    gated = _gated(entry, count, run)
    verdict = await _verdict(gated, run)
    entry.notes = verdict.notes or None
    if verdict.args is not None and verdict.action != "deny":
        # What a gate puts in place of the arguments is checked like the model's own.
        validate_args(entry, verdict.args, blame="a guard changed this call, and so ")
        if entry.refusal is not None:
            return
    if verdict.action == "deny":
        entry.refuse(DENIED.format(reason=verdict.reason or "no reason was given"))
        entry.verdict = "denied"
    elif verdict.action == "ask":
        entry.approval = Approval(entry.call, entry.args, verdict, entry.tool.spec.parameters, gated)


def _gated(entry: CheckedCall, count: int, run: ToolRun) -> GatedCall:
    thread_id = run.log.thread_id if run.log is not None else ""
    return GatedCall(entry.call, entry.tool, entry.args, entry.index, count, run.conversation, thread_id)


async def _verdict(gated: GatedCall, run: ToolRun) -> Verdict:
    assert run.gate is not None
    try:
        return await run.gate.judge(gated)
    except Exception as error:  # a check that cannot run refuses
        return Verdict("deny", reason=f"a check of the call failed: {error_text(error)}")


async def _ask_approvers(asks: Sequence[CheckedCall], count: int, run: ToolRun, batch: CallBatch | None) -> None:
    """Let those decide who are there now; what they leave open keeps its `approval`, for a pause.

    The decisions are kept with what the gate said, so that nobody is asked again when the run goes on later.
    """
    groups: dict[int, tuple[Approver, list[CheckedCall]]] = {}
    for entry in asks:
        approver = _approver_of(entry)
        if approver is not None:
            groups.setdefault(id(approver), (approver, []))[1].append(entry)
    if groups:
        await asyncio.gather(*(_ask(approver, group, count, run, batch) for approver, group in groups.values()))


async def _ask(
    approver: Approver, entries: Sequence[CheckedCall], count: int, run: ToolRun, batch: CallBatch | None
) -> None:
    approvals = [entry.approval for entry in entries if entry.approval is not None]
    decisions: list[ApprovalDecision | None]
    try:
        decisions = await approver.decide(approvals)
        if len(decisions) != len(approvals):
            raise ValueError(f"{len(decisions)} decisions on {len(approvals)} calls")
    except Exception as error:  # an approver that fails approves nothing
        logger.exception("the approval of %s failed; it is denied", ", ".join(entry.call.name for entry in entries))
        reason = f"the approval failed: {error_text(error)}"
        decisions = [ApprovalDecision(False, decided_by="gate", reason=reason) for _ in approvals]
    for entry, approval, decision in zip(entries, approvals, decisions, strict=True):
        if decision is not None:
            await _apply(entry, approval, decision, count, run)
        if batch is not None:
            batch.judged(entry.call, _row_of(entry))


async def _apply(entry: CheckedCall, approval: Approval, decision: ApprovalDecision, count: int, run: ToolRun) -> None:
    """Answer a call's question with a decision that was made while the run waited."""
    entry.approval = None
    entry.notes = [*(entry.notes or ()), _note_of(decision)]
    if decision.approved is not True:
        _reject(entry, decision)
        return
    entry.approved = True
    if decision.modified_arguments is None:
        return
    problem = await _edit(entry, approval, decision.modified_arguments, count, run)
    if problem:
        entry.approved = False
        entry.refuse(DENIED.format(reason=problem))
        entry.verdict = "denied"


def _reject(entry: CheckedCall, decision: ApprovalDecision) -> None:
    entry.refuse(_told(decision))
    entry.verdict = "rejected" if decision.decided_by in _PEOPLE else "denied"


def _note_of(decision: ApprovalDecision) -> dict[str, Any]:
    note = {
        "approval": "approved" if decision.approved is True else "denied",
        "decided_by": decision.decided_by,
        "reviewer_id": decision.reviewer_id,
        "reason": decision.reason,
    }
    return {key: value for key, value in note.items() if value is not None}


async def _settle(asks: Sequence[CheckedCall], count: int, run: ToolRun, batch: CallBatch | None) -> None:
    if batch is None:
        for entry in asks:
            entry.refuse(NOBODY)
            entry.verdict = "rejected"
        return
    approvals = [entry.approval for entry in asks if entry.approval is not None]
    decisions = batch.decide(approvals)
    for entry, approval, decision in zip(asks, approvals, decisions, strict=True):
        if decision.approved and decision.modified_arguments is not None:
            problem = await _edit(entry, approval, decision.modified_arguments, count, run)
            if problem and batch.refuse(approval, problem):
                entry.refuse(DENIED.format(reason=problem))
                entry.verdict = "denied"
    for entry, approval, decision in zip(asks, approvals, decisions, strict=True):
        is_new = batch.accept(approval, decision)
        watcher: object = run.gate
        if is_new and isinstance(watcher, DecisionWatcher):
            await _tell(watcher, approval, decision)
        entry.notes = [*(entry.notes or ()), _note_of(decision)]
        if not decision.approved:
            entry.refuse(_told(decision))
            entry.verdict = "rejected"
        elif entry.refusal is None:
            entry.approved = True


async def _tell(watcher: DecisionWatcher, approval: Approval, decision: ApprovalDecision) -> None:
    try:
        await watcher.decided(approval, decision)
    except Exception:  # it is told, not asked: the decision stands
        logger.exception("a gate could not take note of the decision on %s", approval.call.name)


async def _edit(entry: CheckedCall, approval: Approval, edited: dict[str, Any], count: int, run: ToolRun) -> str:
    """Put a person's arguments in place of the model's; return what is wrong with them."""
    before = entry.args
    try:
        # Whoever edits may have been shown less than what is there.
        args = restored(edited, approval.verdict.shown.get("params"), approval.args)
    except ValueError as error:
        return str(error)
    validate_args(entry, args, blame="")
    if entry.refusal is not None:
        problem, entry.refusal = entry.refusal, None
        return problem
    if run.gate is not None:
        gated = _gated(entry, count, run)
        verdict = await _verdict(gated, run)
        if verdict.action == "deny":
            return verdict.reason or "a guard denies these arguments"
        if verdict.args is not None and verdict.args != entry.args:
            return f"a guard would change these arguments to {dumps(verdict.args)}; give them like this"
    entry.edited = entry.args != before
    return ""


def _told(decision: ApprovalDecision) -> str:
    if decision.decided_by == "expiry":
        return EXPIRED
    if decision.decided_by not in _PEOPLE:
        return DENIED.format(reason=decision.reason or "no reason was given")
    return REJECTED + (FEEDBACK.format(reason=decision.reason) if decision.reason else "")


def _row_of(entry: CheckedCall) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if entry.args != entry.call.args:
        row["args"] = entry.args
    if entry.refusal is not None:
        row["no"] = entry.refusal
        if entry.raised:
            row["raised"] = True
    if entry.verdict:
        row["verdict"] = entry.verdict
    if entry.notes:
        row["notes"] = entry.notes
    if entry.approved:
        row["approved"] = True
    if entry.edited:
        row["edited"] = True
    if entry.approval is not None:
        verdict = entry.approval.verdict
        row["ask"] = [verdict.reason, verdict.shown, verdict.standing, verdict.expires_at]
    return row


def _recalled(row: dict[str, Any], entry: CheckedCall) -> CheckedCall:
    entry.args = dict(row.get("args", entry.call.args))
    entry.verdict = row.get("verdict", "")
    entry.raised = row.get("raised", False)
    entry.refusal = row.get("no")
    entry.notes = row.get("notes")
    entry.approved = row.get("approved", False)
    entry.edited = row.get("edited", False)
    if entry.tool is None and entry.refusal is None:
        # The agent that goes on no longer has it.
        entry.refuse(f"the tool {entry.call.name!r} is no longer there, so the call did not run")
        entry.verdict = "missing"
    elif "ask" in row:
        reason, shown, standing, expires_at = row["ask"]
        verdict = Verdict("ask", None, reason, shown, standing, expires_at)
        entry.approval = Approval(entry.call, entry.args, verdict, entry.tool.spec.parameters)
    return entry
