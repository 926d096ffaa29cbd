"""Approval of tool calls: which ones need it, who gives it, and how they are asked."""

from graphwright.approval.base import ApprovalDecision, ApprovalHandler, ApprovalRequest
from graphwright.approval.elicitation import approval_elicitation_callback, is_yes_no_form
from graphwright.approval.gate import ApprovalGate
from graphwright.approval.handlers import CallbackApprovalHandler, ConsoleApprovalHandler, QueueApprovalHandler
from graphwright.approval.options import Approvals, as_approvals
from graphwright.approval.policy import ApprovalPolicy
from graphwright.approval.signing import SignatureChecker, signed_headers
from graphwright.approval.webhook import WebhookApprovalHandler

__all__ = [
    "ApprovalDecision",
    "ApprovalGate",
    "ApprovalHandler",
    "ApprovalPolicy",
    "ApprovalRequest",
    "Approvals",
    "CallbackApprovalHandler",
    "ConsoleApprovalHandler",
    "QueueApprovalHandler",
    "SignatureChecker",
    "WebhookApprovalHandler",
    "approval_elicitation_callback",
    "as_approvals",
    "is_yes_no_form",
    "signed_headers",
]
