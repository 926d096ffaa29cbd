"""Add up what was recorded, so that figures stay right when old entries have made room."""

from __future__ import annotations

from typing import Any

from graphwright.observability.base import TimelineEntry

__all__ = ["Statistics"]

_MOST_NAMES = 1000
_OTHERS = "(others)"
_TOKENS = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
_STATUSES = ("completed", "paused", "failed", "timeout", "aborted")


class Statistics:
    """Figures over all entries since the last `clear`."""

    def __init__(self) -> None:
        self.by_type: dict[str, int] = {}
        self.runs: dict[str, int] = dict.fromkeys(_STATUSES, 0)
        self.run_ms = 0.0
        self.tokens: dict[str, int] = dict.fromkeys(_TOKENS, 0)
        self.tools: dict[str, dict[str, Any]] = {}
        self.agents: dict[str, dict[str, Any]] = {}
        self.errors = 0

    def add(self, entry: TimelineEntry) -> None:
        """Count one entry."""
        kind = entry.event_type
        _count(self.by_type, kind)
        if entry.error:
            self.errors += 1
        if kind not in ("run.end", "model.call", "tool.call"):
            return
        agent = _place(self.agents, entry.agent_id, {"runs": 0, "model_calls": 0, "tool_calls": 0, "errors": 0})
        agent["errors"] += 1 if entry.error else 0
        if kind == "run.end":
            self._add_run(entry, agent)
        elif kind == "tool.call":
            agent["tool_calls"] += 1
            tool = _place(self.tools, str(entry.data.get("tool")), {"calls": 0, "errors": 0, "total_ms": 0.0})
            tool["calls"] += 1
            tool["errors"] += 1 if entry.error else 0
            tool["total_ms"] += entry.duration_ms or 0.0
        else:
            agent["model_calls"] += 1

    def _add_run(self, entry: TimelineEntry, agent: dict[str, Any]) -> None:
        agent["runs"] += 1
        if entry.data.get("is_part"):
            return  # the run around it counts its time and its tokens
        _count(self.runs, str(entry.data.get("status")))
        self.run_ms += entry.duration_ms or 0.0
        for name, value in (entry.data.get("usage") or {}).items():
            if name in self.tokens and value:
                self.tokens[name] += value

    def as_dict(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "runs": sum(self.runs.values()),
            "runs_by_status": dict(self.runs),
            "run_duration_ms": self.run_ms,
            "model_calls": self.by_type.get("model.call", 0),
            "tool_calls": self.by_type.get("tool.call", 0),
            "tool_errors": sum(tool["errors"] for tool in self.tools.values()),
            "errors": self.errors,
            **self.tokens,
            "tools": {name: dict(figures) for name, figures in self.tools.items()},
            "agents": {name: dict(figures) for name, figures in self.agents.items()},
            "events_by_type": dict(self.by_type),
        }


def _place(table: dict[str, dict[str, Any]], name: str, empty: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a name. A model can make up names without end, so there is an end to the rows."""
    if name not in table and len(table) >= _MOST_NAMES:
        name = _OTHERS
    return table.setdefault(name, empty)


def _count(table: dict[str, int], name: str) -> None:
    if name not in table and len(table) >= _MOST_NAMES:
        name = _OTHERS
    table[name] = table.get(name, 0) + 1
