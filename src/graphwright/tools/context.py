"""What a tool can know of the call that it answers."""

from __future__ import annotations

from dataclasses import dataclass

from graphwright.exceptions import ConfigurationError
from graphwright.run_scope import current_call, current_run

__all__ = ["ToolContext", "get_tool_context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool is answering."""

    tool_name: str
    call_id: str
    run_id: str
    thread_id: str
    """The thread of the run; its run id where it has no other."""
    node: str
    """Name of the node whose call it is."""
    idempotency_key: str
    """Names this very call: the same over retries and over resumes of the run, and of no other call. Hand it to a
    service that takes such keys, and a call that is made again has no second effect."""
    agent_id: str = ""
    """Who the agent is whose call it is; empty without an identity."""
    resumed: bool = False
    """Whether the call began in an earlier leg of the run that did not see its end."""


def get_tool_context() -> ToolContext:
    """Return the context of the call that is at work here.

    Raises:
        ConfigurationError: no tool call is at work here.
    """
    found = current_call.get()
    if found is None:
        raise ConfigurationError("get_tool_context() was called outside of a tool call; call it in a tool")
    entry, run, batch = found
    call = entry.call
    if batch is None:
        key, thread_id, resumed = f"{run.run_id}:{run.path}:{run.node}:{call.id}", run.run_id, False
    else:
        key, thread_id, resumed = batch.idempotency_key(call), run.log.thread_id, batch.was_cut_off(call)
    return ToolContext(
        tool_name=call.name,
        call_id=call.id,
        run_id=run.run_id,
        thread_id=thread_id,
        node=run.node,
        idempotency_key=key,
        agent_id=scope.agent_id if (scope := current_run()) is not None else "",
        resumed=resumed,
    )
