"""What a run amounts to, from what its nodes noted: the trace, the figures, the response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphwright.interrupts import QUESTION, Interrupt
from graphwright.orchestrator.questions import questions_summary
from graphwright.orchestrator.response import BotResponse, RunStatus

__all__ = ["Visit", "response_of", "trace_entry", "update_of", "visits_in_rows", "visits_of"]

_OUTPUT_CHARS = 500
_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
_DETAIL_KEYS = ("tools_executed", "plan", "step_events", "questions", "token_usage", "guard_events")

Visit = tuple[str, dict[str, Any]]
"""The name of a node, and the output of one of its visits."""

WAITS = "The run waits for approval of {tools}."
LIMIT = "The run stopped at its limit of {limit} node executions before the goal was answered."


def visits_of(history: Iterable[Any]) -> list[Visit]:
    """Return the visits of a run from its node history."""
    return [(result.node_name, result.output) for result in history if _is_output(result.output)]


def visits_in_rows(rows: Iterable[Any]) -> list[Visit]:
    """Return the visits of a run from its log."""
    return [
        (entry["n"], entry["o"])
        for row in rows
        if row.kind == "delta" and "/" not in row.frame
        for entry in row.data["h"]
        if _is_output(entry.get("o"))
    ]


def _is_output(output: Any) -> bool:
    return isinstance(output, dict) and "update" in output


def trace_entry(node: str, output: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the entry of one visit in the trace of a run."""
    return {
        "node": node,
        "seq": output["seq"],
        "ts": output["ts"],
        "run_id": run_id,
        "detail": _detail(node, output),
    }


def _detail(node: str, output: Mapping[str, Any]) -> dict[str, Any]:
    update = output["update"]
    detail: dict[str, Any] = {}
    if output.get("calls"):
        detail["tool_calls"] = output["calls"]
    text = update.get("final_report") or "\n".join(update.get("partial_responses", ()))
    if text:
        detail["output"] = text[:_OUTPUT_CHARS]
    for key in _DETAIL_KEYS:
        if update.get(key):
            detail[key] = update[key]
    return detail


def update_of(node: str, output: Mapping[str, Any], messages: Sequence[Any], run_id: str) -> dict[str, Any]:
    """Return what the `updates` stream says of one visit."""
    update = {key: value for key, value in output["update"].items() if key != "questions"}
    if node == "agent":
        update.setdefault("status_events", [])
    if node in ("agent", "tools", "plan", "ask_user") or messages:
        update = {"messages": list(messages), **update}
    update["node_trace"] = [trace_entry(node, output, run_id)]
    return update


def response_of(
    visits: Sequence[Visit],
    *,
    status: RunStatus,
    run_id: str,
    thread_id: str,
    goal: str,
    pending: Sequence[Interrupt] = (),
    error: str = "",
    limit: int = 0,
    used_before: Mapping[str, int | None] | None = None,
) -> BotResponse:
    """Return the response of a run; it is about this run only."""
    updates = [output["update"] for _, output in visits]
    report, passed = "", True
    plan: list[Any] = []
    usage = {name: (used_before or {}).get(name) or 0 for name in _FIGURES}
    tools, events, thoughts = [], [], []
    for update in updates:
        report = update.get("final_report", report)
        passed = update.get("verify_passed", passed)
        plan = update.get("plan", plan)
        tools += update.get("tools_executed", ())
        events += update.get("guard_events", ())
        if update.get("thinking"):
            thoughts.append(update["thinking"])
        for name, count in update.get("token_usage", {}).items():
            usage[name] = usage.get(name, 0) + count
    withheld = any(update.get("output_guard_passed") is False and "final_report" in update for update in updates[-1:])
    content = report
    if status == "paused":
        content = _waiting_text(pending)
    elif status != "completed":
        content = _unfinished_text(visits, status, error, limit)
    response = BotResponse(
        content,
        success=status == "completed" and bool(report) and passed and not withheld,
        status=status,
        thinking="".join(thoughts) or None,
        tools_executed=tools,
        token_usage=usage,
        plan=plan,
        session_id=thread_id,
        goal=goal,
        run_id=run_id,
        node_trace=[trace_entry(node, output, run_id) for node, output in visits],
        guard_events=events,
        pending=pending,
    )
    if error:
        response["error"] = error
    return response


def _waiting_text(pending: Sequence[Interrupt]) -> str:
    for item in pending:
        if item.kind == QUESTION:
            return questions_summary(item.value.get("questions", ()), item.value.get("reason"))
    tools = ", ".join(str(item.value.get("tool", item.kind)) for item in pending)
    return WAITS.format(tools=tools or "nothing")


def _unfinished_text(visits: Sequence[Visit], status: RunStatus, error: str, limit: int) -> str:
    if status == "limit":
        return LIMIT.format(limit=limit)
    partial = [text for _, output in visits for text in output["update"].get("partial_responses", ())]
    return "\n".join(partial) if status == "aborted" else error
