"""The graph of a bot, from which the state of a thread can be read as its users expect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphwright._internal.sync import run_sync
from graphwright.caller import get_current_caller
from graphwright.engine.base import BaseNode
from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError, SessionAccessDenied
from graphwright.interrupts import Interrupt
from graphwright.orchestrator.graph import connect
from graphwright.orchestrator.outcome import response_of, visits_in_rows
from graphwright.orchestrator.response import RunStatus
from graphwright.runlog.base import RunLog
from graphwright.runlog.base import RunStatus as LogStatus
from graphwright.runtime.history import conversation_of, pending_of

__all__ = ["BotGraph", "ThreadState"]


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What a thread is at."""

    values: dict[str, Any]
    """`messages` of the whole thread; `goal`, `mode`, `final_report`, `plan`, `tools_executed` and the like of its
    latest run. Empty for a thread that does not exist."""
    next: tuple[str, ...] = ()
    """The nodes that wait to go on."""
    interrupts: tuple[Interrupt, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


class BotGraph(PromptGraph):
    """The graph of a bot."""

    def __init__(self, log: RunLog, nodes: Iterable[BaseNode]) -> None:
        nodes = list(nodes)
        super().__init__("orchestrator", nodes=nodes)
        self.set_entry("agent")
        connect(self, [node.name for node in nodes])
        self._log = log

    def copy(self) -> Any:
        """Return the graph itself: no run changes it."""
        return self

    async def aget_state(self, config: Mapping[str, Any]) -> ThreadState:
        """Return the state of the thread `config["configurable"]["thread_id"]`.

        Raises:
            SessionAccessDenied: the thread belongs to a caller, and that caller is not the one who asks.
        """
        thread_id = (config.get("configurable") or {}).get("thread_id")
        if not isinstance(thread_id, str) or not thread_id:
            raise ConfigurationError(f"config is {config!r}; give {{'configurable': {{'thread_id': '...'}}}}")
        runs = [entry for entry in await self._log.thread_rows(thread_id) if entry[0].status != "rejected"]
        if not runs:
            return ThreadState({}, config=config)
        owner, caller = runs[0][0].owner, get_current_caller()
        if owner is not None and (caller is None or caller.isolation_key != owner):
            raise SessionAccessDenied(
                f"thread {thread_id!r} belongs to a caller; read it with calling_as(CallerContext(...)) of that caller"
            )
        messages: list[Any] = []
        for _, rows in runs:
            messages = conversation_of(rows, messages)
        info, rows = runs[-1]
        first = next((row.data for row in rows if row.kind == "input"), {})
        given = first.get("c", {})
        pending = pending_of(rows)
        status = _status_of(info.status)
        response = response_of(
            visits_in_rows(rows),
            status="paused" if pending else status,
            run_id=info.run_id,
            thread_id=thread_id,
            goal=given.get("goal", ""),
            pending=pending,
        )
        values = {
            "messages": messages,
            "goal": given.get("goal", ""),
            "mode": given.get("mode", ""),
            "session_id": thread_id,
            "run_id": info.run_id,
            "final_report": response.content if status == "completed" and not pending else "",
            "thinking": response.thinking or "",
            "tools_executed": response.tools_executed,
            "token_usage": response.token_usage,
            "plan": response.plan,
            "guard_events": response.guard_events,
            "node_trace": response.node_trace,
        }
        waiting = tuple(dict.fromkeys(item.path.split("/")[0].split("#")[0] for item in pending))
        return ThreadState(values, waiting, tuple(pending), config)

    def get_state(self, config: Mapping[str, Any]) -> ThreadState:
        """Do what `aget_state` does and wait for it."""
        return run_sync(self.aget_state(config))


def _status_of(status: LogStatus) -> RunStatus:
    """Return how a run stands that is not going on: one that was cut off has been ended from outside."""
    return "aborted" if status == "running" or status == "abandoned" else status
