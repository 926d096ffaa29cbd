"""The tool calls of a visit, in the log of its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphwright.engine.journal import EXPIRED, AnswerRefused, Ask, digest_of
from graphwright.exceptions import InterruptError, UnstorableError
from graphwright.interrupts import APPROVAL, ApprovalDecision, read_approval
from graphwright.messages import ToolMessage
from graphwright.tools.base import Approval
from graphwright.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from graphwright.engine.base import NodeContext
    from graphwright.engine.journal import Frame

__all__ = ["CallRecords"]


class CallRecords:
    """The log of the calls that a node makes in a run."""

    __slots__ = ("_context", "thread_id")

    def __init__(self, context: NodeContext) -> None:
        assert context.journal is not None
        self._context = context
        self.thread_id = context.journal.thread_id

    def batch(self) -> _Batch:
        """Return the next turn of the visit that goes on."""
        frame = self._context.frame
        assert frame is not None
        return _Batch(frame, frame.next("batch"))


class _Batch:
    """The calls of one turn."""

    __slots__ = ("_begun", "_frame", "_number")

    def __init__(self, frame: Frame, number: int) -> None:
        self._frame = frame
        self._number = number
        self._begun: set[str] = set()

    def _key(self, call: ToolCall) -> str:
        return f"{self._number}:{call.id}"

    def inner_frame(self, call: ToolCall) -> str:
        """Return the frame of what happens inside the call."""
        return f"{self._frame.path}/{self._key(call)}"

    @property
    def frame(self) -> Frame:
        """The frame of the visit."""
        return self._frame

    def verdict(self, call: ToolCall) -> dict[str, Any] | None:
        """Return what the gate said of the call in an earlier leg of the run."""
        return self._frame.journal.find("gate", self._frame.path, self._key(call))

    def judged(self, call: ToolCall, verdict: dict[str, Any]) -> None:
        """Keep what the gate said."""
        self._frame.journal.put("gate", self._frame.path, self._key(call), verdict)

    def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision]:
        """Return the decisions, in order.

        Raises:
            Interrupted: some are not there yet.
        """
        journal = self._frame.journal
        decisions: list[ApprovalDecision | None] = []
        asks = []
        for approval in approvals:
            stands = approval.verdict.standing and approval.call.name in journal.approved
            ask = self._ask(approval)
            known = journal.find("interrupt", self._frame.path, ask.key) is not None
            decisions.append(ApprovalDecision(True, decided_by="standing") if stands and not known else None)
            if decisions[-1] is None:
                asks.append(ask)
        answers = iter(journal.ask(self._frame.path, asks))
        return [decision if decision is not None else _decision(next(answers)) for decision in decisions]

    def accept(self, approval: Approval, decision: ApprovalDecision) -> bool:
        """Keep a decision that fits, and return whether it was not kept before."""
        ask = self._ask(approval)
        is_new = self._frame.journal.is_new(self._frame.path, ask)
        always = decision.approved and decision.always and approval.verdict.standing
        tool = approval.call.name if always else None
        self._frame.journal.accept(self._frame.path, ask, approve_tool=tool)
        return is_new

    def refuse(self, approval: Approval, problem: str) -> bool:
        """Send an answer back that does not fit; return True where it was kept before, so that it is too late."""
        if self._frame.journal.is_new(self._frame.path, self._ask(approval)):
            error = InterruptError(f"the edited arguments of {approval.call.name!r} do not fit: {problem}")
            raise AnswerRefused(error)
        return True

    def _ask(self, approval: Approval) -> Ask:
        value = {
            "tool": approval.call.name,
            "tool_call_id": approval.call.id,
            "params": approval.args,
            **approval.verdict.shown,
            "digest": digest_of([approval.call.name, approval.args]),
        }
        if approval.verdict.reason:
            value["reason"] = approval.verdict.reason
        extra = {"schema": approval.parameters, "standing": approval.verdict.standing}
        return Ask(APPROVAL, self._key(approval.call), value, approval.verdict.expires_at, extra)

    def outcome(self, call: ToolCall) -> ToolResult | None:
        """Return how the call was answered in an earlier leg."""
        row = self._frame.journal.find("outcome", self._frame.path, self._key(call))
        if row is None:
            return None
        self._keep(row["message"], self._key(call))
        also = row.get("also", {})
        return ToolResult(
            call,
            row["message"],
            row.get("args", call.args),
            row.get("ok", True),
            row.get("ms", 0.0),
            row.get("raised", False),
            also.get("reused", False),
            also.get("verdict", ""),
            (self.verdict(call) or {}).get("notes"),
        )

    def idempotency_key(self, call: ToolCall) -> str:
        """Return the name of this very call, the same in every leg of the run."""
        return f"{self._frame.journal.run_id}:{self._frame.path}:{self._key(call)}"

    def was_cut_off(self, call: ToolCall) -> bool:
        """Return whether the call began in an earlier leg and nobody knows how it ended."""
        return self._frame.journal.find("started", self._frame.path, self._key(call)) is not None

    def waited(self, call: ToolCall) -> bool:
        """Return whether the call paused for an answer in an earlier leg, and did not get one then."""
        journal = self._frame.journal
        asked = journal.found_in("interrupt", self.inner_frame(call)).values()
        return any(journal.find("answer", "", row["item"].id) is None for row in asked)

    async def begin(self, call: ToolCall) -> None:
        """Return when it is durable that the call is about to run."""
        self._frame.journal.put("started", self._frame.path, self._key(call), {})
        await self._frame.journal.flush()

    def ended(self, result: ToolResult, index: int) -> ToolResult:
        """Keep how a call was answered, and return it as it was kept."""
        try:
            self._put(result, index)
        except UnstorableError as error:
            # The call has had its effect, so it has to be in the log; what cannot be kept of it is left out.
            text = f"{result.call.name!r} ran, but the run log cannot keep its result: {error}"
            message = ToolMessage(content=text, tool_call_id=result.call.id, name=result.call.name, status="error")
            result = replace(result, message=message, success=False, args={})
            self._put(result, index)
        return result

    def _put(self, result: ToolResult, index: int) -> None:
        row: dict[str, Any] = {"message": result.message, "ms": round(result.duration_ms, 3)}
        if result.args:
            row["args"] = result.args
        if not result.success:
            row["ok"] = False
        if result.raised:
            row["raised"] = True
        if index:
            row["i"] = index
        also = {k: v for k, v in result.record().items() if k not in ("name", "args", "result", "success")}
        if result.verdict:
            also["verdict"] = result.verdict
        if also:
            row["also"] = also
        key = self._key(result.call)
        self._frame.journal.put("outcome", self._frame.path, key, row, soon=True)
        self._keep(result.message, key)

    def _keep(self, message: Any, key: str) -> None:
        self._frame.outcomes += 1
        self._frame.made[id(message)] = ["outcome", self._frame.path, key]


def _decision(answer: Any) -> ApprovalDecision:
    if answer is EXPIRED:
        return ApprovalDecision(False, decided_by="expiry")
    return read_approval(answer)
