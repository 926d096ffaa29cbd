"""The `approval=` of an agent: the gate of its own calls, and the answer to servers that ask for a yes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphwright.engine.execution import PromptGraphEngine
from graphwright.exceptions import ConfigurationError
from graphwright.tools import ToolSet

if TYPE_CHECKING:
    from graphwright.agent._servers import Approver
    from graphwright.approval import ApprovalGate, Approvals

__all__ = ["approvals_of", "gate_of", "server_approver", "warn_of_idle_patterns"]

logger = logging.getLogger(__name__)


def approvals_of(approval: Any, *, has_servers: bool) -> Approvals | None:
    """Return who approves what, from the keyword of `build_agent`.

    Raises:
        ConfigurationError: it does not fit, or would approve nothing.
    """
    if approval is None or approval is False:
        return None
    from graphwright.approval import as_approvals

    approvals = as_approvals(approval)
    if approvals is not None and approvals.policy is None and not has_servers:
        raise ConfigurationError(
            f"approval={approval!r} is a handler alone, which answers servers only, and there are no servers; to hold "
            "the agent's own calls, give approval=ApprovalPolicy(tools=['delete_*'], handler=...)"
        )
    return approvals


def gate_of(approvals: Approvals | None, *, agent_id: str | None) -> ApprovalGate | None:
    """Return what holds the agent's own calls."""
    if approvals is None or approvals.policy is None:
        return None
    from graphwright.approval import ApprovalGate

    return ApprovalGate(approvals.policy, agent_id=agent_id)


def server_approver(approvals: Approvals | None) -> Approver | None:
    """Return who answers servers that ask for a yes or a no."""
    if approvals is None or approvals.handler is None:
        return None
    from graphwright.approval import approval_elicitation_callback

    policy = approvals.policy
    ask = approval_elicitation_callback(approvals.handler, timeout=policy.timeout if policy is not None else 300.0)

    async def approve(server: str, tool: str, message: str, schema: Mapping[str, Any]) -> bool:
        answer = await ask(server, message, schema)
        return answer is not None and answer["action"] == "accept"

    return approve


def warn_of_idle_patterns(approvals: Approvals | None, engine: PromptGraphEngine) -> None:
    """Say which patterns match no tool that the agent has: a typing mistake there would hold nothing."""
    if approvals is None or approvals.policy is None:
        return
    tools = [*engine.tools]
    for node in engine.graph.nodes.values():
        own = getattr(node, "tools", None)
        tools += own if isinstance(own, ToolSet) else ()
    names = [name for tool in tools for name in (tool.name, *tool.other_names)]
    for pattern in approvals.policy.idle_patterns(names):
        logger.warning("the approval pattern %r matches none of the agent's tools", pattern)
