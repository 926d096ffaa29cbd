"""Hold the tool calls of an agent until somebody has approved them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from graphwright._internal.aio import call_maybe_async
from graphwright._internal.redact import redact, redact_text, restored
from graphwright.approval._denials import Denials
from graphwright.approval._waiting import OutOfTime, within
from graphwright.approval.base import ApprovalDecision, ApprovalHandler, ApprovalRequest
from graphwright.approval.policy import ApprovalPolicy
from graphwright.caller import get_current_caller, get_current_session_id
from graphwright.exceptions import InterruptError
from graphwright.interrupts import read_approval
from graphwright.messages import text_of
from graphwright.run_scope import run_scope
from graphwright.tools.base import Approval, GatedCall, Tool, Verdict

__all__ = ["ApprovalGate"]

logger = logging.getLogger(__name__)

_MOST_STANDING = 10_000
_LINE_CHARS = 500
_ANNOTATIONS = ("risk_level", "idempotent", "untrusted", "other_names")


class ApprovalGate:
    """Judges calls by a policy, and lets its handler decide on those that need approval."""

    def __init__(self, policy: ApprovalPolicy, *, agent_id: str | None = None) -> None:
        self.policy = policy
        self._agent_id = agent_id
        self._denials = Denials(policy.max_retries_after_deny, policy.deny_window)
        self._standing: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._pending = 0
        # A lock belongs to one event loop, and an agent may be run by several.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def judge(self, gated: GatedCall) -> Verdict:
        """Return whether the call needs approval; this asks nobody yet."""
        name, policy = gated.call.name, self.policy
        if not policy.requires_approval(name, gated.tool.name, *gated.tool.other_names):
            return Verdict()
        if (_run_id(), name) in self._standing:
            return Verdict()
        refusal = self._denials.refusal(self._scope(gated), name)
        if refusal:
            return Verdict("deny", reason=refusal)
        shown: dict[str, Any] = {"type": "approval_request", "params": self._shown(gated.args)}
        if policy.metadata:
            shown["metadata"] = dict(policy.metadata)
        pauses = policy.approval_handler is None
        if pauses and (said := _summary(gated, policy.context_messages)):
            shown["context_summary"] = said
        ends = time.time() + policy.pause_timeout if pauses and policy.pause_timeout is not None else None
        return Verdict("ask", shown=shown, expires_at=ends, approver=None if pauses else self)

    async def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision | None]:
        """Return the handler's decisions; the calls of one turn are asked about together, or one after the other."""
        handler = self.policy.approval_handler
        if handler is None:
            return [None for _ in approvals]
        if self.policy.sequential:
            return [await self._decide(handler, approval) for approval in approvals]
        return list(await asyncio.gather(*(self._decide(handler, approval) for approval in approvals)))

    async def decided(self, approval: Approval, decision: ApprovalDecision) -> None:
        """Take note of what a paused run was answered with."""
        tool = approval.gated.tool if approval.gated is not None else None
        other_names = tool.other_names if tool is not None else ()
        if self.policy.requires_approval(approval.call.name, *other_names):
            await self._note(self._request(approval), approval, decision)

    async def _decide(self, handler: ApprovalHandler, approval: Approval) -> ApprovalDecision:
        request = self._request(approval)
        if self._pending >= self.policy.max_pending:
            reason = f"{self.policy.max_pending} calls wait for approval already; try again later"
            decision = _no(reason)
        else:
            self._pending += 1
            try:
                async with self._turn():
                    decision = await self._ask(handler, request, approval)
            finally:
                self._pending -= 1
        return await self._note(request, approval, decision)

    async def _ask(self, handler: ApprovalHandler, request: ApprovalRequest, approval: Approval) -> ApprovalDecision:
        """Ask the handler; whatever goes wrong denies the call."""
        # While this waited for its turn, an earlier answer may have settled it.
        if (_run_id(), request.tool_name) in self._standing:
            return ApprovalDecision(True, decided_by="standing")
        refusal = self._denials.refusal(self._scope(approval.gated), request.tool_name)
        if refusal:
            return _no(refusal)
        try:
            answer = await within(handler.request_approval(request), request.timeout)
        except OutOfTime:
            return self._unanswered(request)
        except Exception as error:  # foreign code: a handler that fails approves nothing
            return _failed(request, error)
        try:
            return _with_edits(read_approval(answer), request, approval)
        except InterruptError as error:
            logger.error("the approval handler gave no decision on %r: %s; it is denied", request.tool_name, error)
            return _no("the approval handler gave no decision that can be read")
        except ValueError as error:
            return _no(f"the edited arguments cannot be used: {error}")

    def _unanswered(self, request: ApprovalRequest) -> ApprovalDecision:
        reason = f"nobody decided within {request.timeout:g} seconds"
        if self.policy.on_timeout == "allow":
            return ApprovalDecision(True, decided_by="gate", reason=reason, timestamp=time.time())
        return ApprovalDecision(False, decided_by="expiry", reason=reason, timestamp=time.time())

    async def _note(self, request: ApprovalRequest, approval: Approval, decision: ApprovalDecision) -> ApprovalDecision:
        if decision.timestamp is None:
            decision = replace(decision, timestamp=time.time())
        if not decision.approved and decision.decided_by != "gate":
            self._denials.add(self._scope(approval.gated), request.tool_name)
        elif decision.approved and decision.always and _run_id():
            self._standing[(_run_id(), request.tool_name)] = None
            if len(self._standing) > _MOST_STANDING:
                self._standing.popitem(last=False)
        if self.policy.on_decision is not None:
            try:
                await call_maybe_async(self.policy.on_decision, request, decision)
            except Exception:  # it is told, not asked: the decision stands
                logger.exception("on_decision failed for %r", request.tool_name)
        return decision

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if not self.policy.sequential:
            yield
            return
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            yield

    def _request(self, approval: Approval) -> ApprovalRequest:
        policy, gated, caller = self.policy, approval.gated, get_current_caller()
        return ApprovalRequest(
            tool_name=approval.call.name,
            arguments=self._shown(approval.args),
            agent_id=self._agent_id,
            caller_user_id=caller.user_id if caller is not None else None,
            context_summary=_summary(gated, policy.context_messages),
            timeout=policy.timeout if policy.approval_handler is not None else policy.pause_timeout,
            metadata=dict(policy.metadata or {}),
            tool_annotations=_annotations(gated.tool) if gated is not None else {},
            raw_arguments=deepcopy(approval.args),
        )

    def _shown(self, args: dict[str, Any]) -> dict[str, Any]:
        if not self.policy.include_arguments:
            return {}
        shown: dict[str, Any] = redact(args) if self.policy.redact_sensitive else args
        return deepcopy(shown)

    def _scope(self, gated: GatedCall | None) -> str:
        """Return whose denials count together."""
        if self.policy.deny_scope == "agent":
            return "agent"
        caller = get_current_caller()
        user = caller.isolation_key if caller is not None else None
        if self.policy.deny_scope == "user" and user is not None:
            return f"user {user}"
        session = (gated.thread_id if gated is not None else "") or get_current_session_id() or _run_id()
        return f"session {user} {session}"


def _run_id() -> str:
    scope = run_scope.get()
    return scope.run_id if scope is not None else ""


def _no(reason: str) -> ApprovalDecision:
    return ApprovalDecision(False, decided_by="gate", reason=reason)


def _failed(request: ApprovalRequest, error: BaseException) -> ApprovalDecision:
    logger.error("the approval handler failed on %r; the call is denied", request.tool_name, exc_info=error)
    return _no(f"the approval handler failed ({type(error).__name__})")


def _with_edits(decision: ApprovalDecision, request: ApprovalRequest, approval: Approval) -> ApprovalDecision:
    """Return the decision with its edits put into the arguments of the call."""
    if decision.modified_arguments is None:
        return decision
    if not isinstance(decision.modified_arguments, dict):
        raise InterruptError(f"modified_arguments is {decision.modified_arguments!r}; give a dict")
    edits = restored(decision.modified_arguments, request.arguments, approval.args)
    return replace(decision, modified_arguments={**approval.args, **edits})


def _summary(gated: GatedCall | None, count: int) -> str:
    if gated is None or not count:
        return ""
    said = [message for message in gated.conversation() if message.type in ("human", "ai") and text_of(message)]
    lines = (f"{message.type}: {redact_text(' '.join(text_of(message).split()))}" for message in said[-count:])
    return "\n".join(line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…" for line in lines)


def _annotations(tool: Tool) -> dict[str, Any]:
    known = {name: getattr(tool, name) for name in _ANNOTATIONS}
    known["other_names"] = list(tool.other_names)
    return {"description": tool.spec.description, **{name: value for name, value in known.items() if value}}
