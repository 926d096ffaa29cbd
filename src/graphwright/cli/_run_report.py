"""What `runs` shows of a run: who said what, what became of each tool call, what it waits for, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphwright.cli._agents import age_text
from graphwright.cli._event_json import as_json
from graphwright.cli._forms import lines_of
from graphwright.cli._text import one_line, visible

if TYPE_CHECKING:
    from graphwright.runlog import Row, RunInfo

__all__ = ["info_dict", "report_dict", "report_lines", "trace_lines"]

_PREVIEW = 200


def info_dict(info: RunInfo) -> dict[str, Any]:
    """Return what is known of a run, for JSON."""
    return asdict(info)


def report_dict(info: RunInfo, rows: Sequence[Row]) -> dict[str, Any]:
    """Return everything about a run, for JSON."""
    from graphwright.runtime.history import conversation_of, pending_of

    return {
        **info_dict(info),
        "messages": [
            {"role": message.type, "text": message.text, "tool_calls": getattr(message, "tool_calls", [])}
            for message in conversation_of(rows)
        ],
        "tool_calls": list(_calls(rows)),
        "pending": [asdict(item) for item in pending_of(rows)],
        "rows": [{"seq": row.seq, "kind": row.kind, "frame": row.frame, "key": row.key, "at": row.at} for row in rows],
    }


def report_lines(info: RunInfo, rows: Sequence[Row]) -> Iterator[str]:
    """Return a run for people, line by line."""
    from graphwright.runtime.history import conversation_of, pending_of

    yield f"run     {info.run_id}"
    yield f"thread  {one_line(info.thread_id)}"
    yield f"status  {info.status}, {age_text(info.updated_at)} ago"
    for message in conversation_of(rows):
        yield from _message_lines(message)
    calls = list(_calls(rows))
    if calls:
        yield "tool calls"
    for call in calls:
        yield f"  {call['status']:<8} {one_line(call['name'])}({one_line(as_json(call['args']), _PREVIEW)})"
    pending = pending_of(rows)
    if pending:
        yield f"waits for (answer with: graphwright runs resume {info.run_id})"
    for item in pending:
        yield from (f"  {line}" for line in lines_of(item))


def trace_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Return the rows of a run: when they were written, and of what they tell."""
    for row in rows:
        what = f"{row.frame} {row.key}".strip()
        yield f"{row.seq:>4} {row.at - rows[0].at:>8.3f}s  {row.kind:<9} {one_line(what, 60):<28} {_told(row)}".rstrip()


def _told(row: Row) -> str:
    message = row.data.get("message")
    if message is not None:
        calls = ", ".join(call["name"] for call in getattr(message, "tool_calls", ()))
        return one_line(f"calls {calls}" if calls else message.text, 60)
    if row.kind == "interrupt":
        return one_line(row.data["item"].kind)
    if row.kind == "answer":
        return f"by {one_line(str(row.data.get('by') or 'somebody'))}"
    return one_line(str(row.data.get("status", "")))


def _message_lines(message: Any) -> Iterator[str]:
    name = {"human": "user", "ai": "agent"}.get(message.type, message.type)
    text = message.text
    if message.type == "tool":
        text = f"{one_line(message.name or '')}: {one_line(text, _PREVIEW)}"
    for place, line in enumerate(visible(text).splitlines()):
        yield f"{name if not place else '':<7} {line}".rstrip()


def _calls(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Return what became of each call that a model made in the run."""
    from graphwright.runtime.history import conversation_of

    asked: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for message in [*conversation_of(rows), *(row.data["message"] for row in rows if row.kind == "reply")]:
        if message.type == "tool":
            results[message.tool_call_id] = message
        for call in getattr(message, "tool_calls", ()):
            asked.setdefault(call["id"], call)
    kinds: dict[str, set[str]] = {}
    for row in rows:
        call_id = row.key.partition(":")[2] or row.key
        kinds.setdefault(call_id, set()).add(row.kind)
        if row.kind == "outcome":
            results.setdefault(call_id, row.data.get("message"))
    for call_id, call in asked.items():
        result = results.get(call_id)
        if result is not None:
            status = "ok" if result.status == "success" else "error"
        else:
            known = kinds.get(call_id, set())
            status = "unknown" if "started" in known else "waits" if "interrupt" in known else "asked"
        yield {"id": call_id, "name": call["name"], "args": call["args"], "status": status}
