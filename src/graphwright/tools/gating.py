"""The gate phase of a turn: every call is judged, and where needed approved, before any of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.interrupts import ApprovalDecision
from graphwright.tools.base import Approval, CallBatch, GatedCall, ToolRun, Verdict
from graphwright.tools.content import error_text
from graphwright.tools.gate import CheckedCall, check_call, pass_hook, validate_args
from graphwright.tools.toolset import ToolSet
from graphwright.types import ToolCall

__all__ = ["check_batch"]

DENIED = "The call was denied: {reason}"
REJECTED = "A person rejected this call, so it did not run."
FEEDBACK = " They said: {reason}"
EXPIRED = "Nobody approved this call in time, so it did not run."
NOBODY = (
    "This call needs a person's approval, and this run cannot pause for one, so it did not run. "
    "Go on without it, or tell the user what you would have done."
)


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
        await _settle(asks, len(calls), run, batch)
    return checked


async def _check(
    call: ToolCall, index: int, count: int, tools: ToolSet, run: ToolRun, batch: CallBatch | None
) -> CheckedCall:
    known = batch.verdict(call) if batch is not None else None
    if known is not None:
        return _recalled(known, CheckedCall(call, index, tools.get(call.name)))
    entry = check_call(call, index, tools, run)
    if entry.tool is None:
        entry.verdict = "missing"
    if run.hooks is not None and run.hooks.before is not None and entry.refusal is None:
        await pass_hook(entry, run.hooks.before, validate=run.validate)
    if run.gate is not None and entry.refusal is None:
        await _judge(entry, count, run)
    if batch is not None:
        row = _row_of(entry)
        if row or run.gate is not None or run.hooks is not None:
            # Where nothing but the tool's own check had a say, it says the same again.
            batch.judged(call, row)
    return entry


async def _judge(entry: CheckedCall, count: int, run: ToolRun) -> None:
    verdict = await _verdict(entry, entry.args, count, run)
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
        entry.approval = Approval(entry.call, entry.args, verdict, entry.tool.spec.parameters)


async def _verdict(entry: CheckedCall, args: dict[str, Any], count: int, run: ToolRun) -> Verdict:
    assert run.gate is not None
    try:
        return await run.gate.judge(GatedCall(entry.call, entry.tool, args, entry.index, count))
    except Exception as error:  # a check that cannot run refuses
        return Verdict("deny", reason=f"a check of the call failed: {error_text(error)}")


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
            problem = await _edit(entry, decision.modified_arguments, count, run)
            if problem and batch.refuse(approval, problem):
                entry.refuse(DENIED.format(reason=problem))
                entry.verdict = "denied"
    for entry, approval, decision in zip(asks, approvals, decisions, strict=True):
        batch.accept(approval, decision)
        if not decision.approved:
            entry.refuse(_told(decision))
            entry.verdict = "rejected"


async def _edit(entry: CheckedCall, args: dict[str, Any], count: int, run: ToolRun) -> str:
    """Put a person's arguments in place of the model's; return what is wrong with them."""
    validate_args(entry, args, blame="")
    if entry.refusal is not None:
        problem, entry.refusal = entry.refusal, None
        return problem
    if run.gate is not None:
        verdict = await _verdict(entry, entry.args, count, run)
        if verdict.action == "deny":
            return verdict.reason or "a guard denies these arguments"
        if verdict.args is not None and verdict.args != entry.args:
            return f"a guard would change these arguments to {dumps(verdict.args)}; give them like this"
    entry.edited = True
    return ""


def _told(decision: ApprovalDecision) -> str:
    if decision.decided_by == "expiry":
        return EXPIRED
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
    if entry.tool is None and entry.refusal is None:
        # The agent that goes on no longer has it.
        entry.refuse(f"the tool {entry.call.name!r} is no longer there, so the call did not run")
        entry.verdict = "missing"
    elif "ask" in row:
        reason, shown, standing, expires_at = row["ask"]
        verdict = Verdict("ask", None, reason, shown, standing, expires_at)
        entry.approval = Approval(entry.call, entry.args, verdict, entry.tool.spec.parameters)
    return entry
