"""What one visit changed in the state of a run: written as a row, and read back into a state.

Only what changed is written, and a message that another row of the frame holds is named, not repeated: the bytes of a
run grow with its length and not with its square.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._shares import own_steps
from graphwright.engine.node_result import NodeResult
from graphwright.engine.state import GraphMutation, GraphState
from graphwright.usage import Usage

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.journal import Frame, Journal

__all__ = ["Mark", "apply_delta", "apply_messages", "copied"]

_PLAIN = frozenset({str, int, float, bool, type(None)})
_LISTS = ("plan", "completed", "observations", "reflections")
_FIGURES = ("iteration", "total_tokens", "tool_calls_made")
_RESULT_FIGURES = ("iteration", "prompt_tokens", "completion_tokens", "total_tokens", "tool_calls_failed")


class Mark:
    """The state of a run before a visit, as far as it is needed to say afterwards what the visit changed."""

    __slots__ = ("_checked", "_context", "_counts", "_figures", "_last", "_lists", "_messages", "_spent", "_usage")

    def __init__(self, run: GraphRun) -> None:
        state, context = run.state, run.context
        self._messages = len(state.messages)
        self._last = state.messages[-1] if state.messages else None
        self._counts = (len(state.visited), len(state.node_history))
        self._figures = tuple(getattr(state, name) for name in _FIGURES)
        self._lists = {name: list(held) for name in _LISTS if (held := state.__dict__.get(name))}
        self._usage = context.usage.as_dict()
        self._spent = (*own_steps(context.spent), run.guards_passed, run.guards_failed)
        self._checked = dict(state.node_iterations)
        if run.kept is None:
            run.kept = {name: _fingerprint(value) for name, value in state.context.items()}
        self._context = run.kept

    def delta(self, run: GraphRun, frame: Frame, next_name: str) -> dict[str, Any]:
        """Return the row of a visit that has ended."""
        state, context = run.state, run.context
        data: dict[str, Any] = {"next": next_name}
        self._put_messages(state, frame, data)
        self._put_context(state, data)
        visited, history = self._counts
        data["v"] = state.visited[visited:]
        data["h"] = [_result_row(result, frame) for result in state.node_history[history:]]
        changed = {name: n for name, n in state.node_iterations.items() if self._checked.get(name) != n}
        if changed:
            data["it"] = changed
        data["n"] = [getattr(state, name) - was for name, was in zip(_FIGURES, self._figures, strict=True)]
        spent = (*own_steps(context.spent), run.guards_passed, run.guards_failed)
        data["s"] = [now - was for now, was in zip(spent, self._spent, strict=True)]
        usage = {k: (n or 0) - (self._usage[k] or 0) for k, n in context.usage.as_dict().items() if n is not None}
        if usage and any(usage.values()):
            data["u"] = usage
        for name in _LISTS:
            held = state.__dict__.get(name) or []
            if held != self._lists.get(name, []):
                data[name] = list(held)
        if frame.mutations:
            data["mut"] = [asdict(mutation) for mutation in frame.mutations]
        if context.spent.note is not None:
            data["note"] = context.spent.note
        return data

    def _put_messages(self, state: GraphState, frame: Frame, data: dict[str, Any]) -> None:
        messages, before = state.messages, self._messages
        grown = len(messages) >= before and (before == 0 or messages[before - 1] is self._last)
        if not grown:
            data["all"] = True
            before = 0
        if messages[before:]:
            data["m"] = [frame.made.get(id(message), message) for message in messages[before:]]

    def _put_context(self, state: GraphState, data: dict[str, Any]) -> None:
        kept = self._context
        changed: dict[str, Any] = {}
        for name, value in state.context.items():
            fingerprint = _fingerprint(value)
            if kept.get(name) != fingerprint:
                kept[name] = fingerprint
                changed[name] = value
        if changed:
            data["c"] = copied(changed)
        gone = [name for name in kept if name not in state.context]
        if gone:
            data["cx"] = gone
            for name in gone:
                del kept[name]


def copied(context: dict[str, Any]) -> dict[str, Any]:
    """Return context values that nobody else can change."""
    return {name: value if type(value) in _PLAIN else _copy(value) for name, value in context.items()}


def _copy(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:  # what cannot be copied (a client, a lock) is shared; a durable log refuses it by name
        return value


def _fingerprint(value: Any) -> str:
    return value if type(value) is str else dumps(value)


def _result_row(result: NodeResult, frame: Frame) -> dict[str, Any]:
    row: dict[str, Any] = {"n": result.node_name, "t": result.node_type, "ms": round(result.duration_ms, 3)}
    figures = [getattr(result, name) for name in _RESULT_FIGURES]
    row["f"] = figures
    for key, value in (
        ("r", result.transition_reason),
        ("x", result.next_node),
        ("e", result.error),
        ("o", result.output),
        ("gf", result.guards_failed if result.error else None),
        ("gp", result.guards_passed or None),
    ):
        if value is not None and value != "" and value != []:
            row[key] = value
    if result.error_recovered:
        row["ok"] = True
    if result.raw_output and result.raw_output != result.output:
        row["raw"] = result.raw_output
    if result.tool_calls:
        # What the outcomes of this very frame say is not said twice.
        derived = frame.path.rsplit("/", 1)[-1].split("#")[0] == result.node_name and frame.outcomes
        row["tc"] = len(result.tool_calls) if derived == len(result.tool_calls) else result.tool_calls
    return row


def apply_delta(run: GraphRun, journal: Journal, frame: str, data: dict[str, Any]) -> str:
    """Bring the state up to date with a visit of an earlier leg, and return the node after it."""
    state, context = run.state, run.context
    state.messages = apply_messages(state.messages, data, journal, frame)
    state._checked = len(state.messages)
    for name in data.get("cx", ()):
        state.context.pop(name, None)
    state.context.update(copied(data.get("c", {})))
    state.visited.extend(data["v"])
    state.node_iterations.update(data.get("it", {}))
    for name, more in zip(_FIGURES, data["n"], strict=True):
        setattr(state, name, getattr(state, name) + more)
    steps, mutations, passed, failed = data["s"]
    context.spent.steps += steps
    context.spent.mutations += mutations
    run.guards_passed += passed
    run.guards_failed += failed
    context.spent.note = data.get("note", context.spent.note)
    if "u" in data:
        used = data["u"]
        context.usage.add(
            Usage(
                used.get("prompt_tokens"),
                used.get("completion_tokens"),
                used.get("total_tokens"),
                used.get("cached_tokens"),
                used.get("reasoning_tokens"),
            )
        )
    for name in _LISTS:
        if name in data:
            setattr(state, name, list(data[name]))
    results = [_result_of(row, journal, frame) for row in data["h"]]
    state.node_history.extend(results)
    for result in results:
        state.record_node_timing(result.node_name, result.duration_ms)
    if results:
        run.last = results[-1]
        added = data.get("m")
        if added:
            run.last.messages_added = state.messages[-len(added) :]
    _replay_mutations(run, data)
    if run.kept is not None:
        run.kept = None
    return str(data["next"])


def apply_messages(messages: list[Any], data: dict[str, Any], journal: Any, frame: str) -> list[Any]:
    """Return the conversation after a row's messages: added to it, or in its place."""
    added = [_found(entry, journal) if type(entry) is list else entry for entry in data.get("m", ())]
    if data.get("all"):
        return added
    messages.extend(added)
    return messages


def _found(reference: list[str], journal: Any) -> Any:
    kind, frame, key = reference
    row = journal.find(kind, frame, key)
    return row["message"]


def _result_of(row: dict[str, Any], journal: Journal, frame: str) -> NodeResult:
    result = NodeResult(row["n"], row["t"], duration_ms=row["ms"])
    for name, value in zip(_RESULT_FIGURES, row["f"], strict=True):
        setattr(result, name, value)
    result.transition_reason = row.get("r", "")
    result.next_node = row.get("x")
    result.error = row.get("e")
    result.error_recovered = bool(row.get("ok"))
    result.output = row.get("o")
    result.raw_output = row.get("raw", result.output if isinstance(result.output, str) else "")
    if "gf" in row:
        result.guards_failed = list(row["gf"])
    if "gp" in row:
        result.guards_passed = list(row["gp"])
    calls = row.get("tc")
    if isinstance(calls, int):
        outcomes = sorted(journal.found_in("outcome", frame).items(), key=_place)
        result.tool_calls = [_record(outcome) for _, outcome in outcomes]
    elif calls:
        result.tool_calls = list(calls)
    return result


def _place(item: tuple[str, dict[str, Any]]) -> tuple[int, int]:
    key, outcome = item
    return int(key.partition(":")[0]), outcome.get("i", 0)


def _record(outcome: dict[str, Any]) -> dict[str, Any]:
    message = outcome["message"]
    record: dict[str, Any] = {
        "name": message.name,
        "args": outcome.get("args", {}),
        "result": message.content,
        "success": outcome.get("ok", True),
    }
    record.update(outcome.get("also", {}))
    return record


def _replay_mutations(run: GraphRun, data: dict[str, Any]) -> None:
    run.mutations += data["s"][1]
    if "mut" not in data:
        return
    from graphwright.engine._mutation import apply

    for change in data["mut"]:
        apply(run.state.graph, GraphMutation(**change))
