"""What a resume brings: which question each answer belongs to, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphwright.engine.journal import Given
from graphwright.exceptions import InterruptError
from graphwright.interrupts import APPROVAL, BUDGET, HUMAN, ApprovalDecision, Interrupt, read_approval
from graphwright.runtime.history import is_expired

if TYPE_CHECKING:
    from graphwright.runlog.base import Row

__all__ = ["NOTHING", "Checker", "checked_answers", "standing_of"]

NOTHING: Any = object()
"""Stands for no answer at all, where `None` would be one."""

Checker = Callable[[Interrupt, Any], Any]
"""`(interrupt, answer) -> answer`, or an `InterruptError` that says what is wrong with it."""


def checked_answers(
    answers: Any,
    pending: Sequence[Interrupt],
    rows: Sequence[Row],
    *,
    by: str | None,
    checkers: Mapping[str, Checker],
) -> dict[str, Given]:
    """Return the answers of a request by interrupt, each checked as far as the log can check it.

    Raises:
        InterruptError: one of them does not fit.
    """
    if answers is NOTHING:
        return {}
    ids = {item.id for item in pending}
    if isinstance(answers, Mapping) and any(isinstance(k, str) and k.startswith("int_") for k in answers):
        given = dict(answers)
    elif pending:
        given = {pending[0].id: answers}
    else:
        raise InterruptError("the run waits for no answer; resume it without one")
    answered = {row.key for row in rows if row.kind == "answer"}
    for item_id in given:
        if item_id in answered:
            raise InterruptError(f"{item_id!r} was answered already; an answer cannot be changed")
        if item_id not in ids:
            known = ", ".join(sorted(ids)) or "nothing"
            raise InterruptError(f"the run does not wait for {item_id!r}; it waits for {known}")
    schemas = {row.data["item"].id: row.data.get("schema") for row in rows if row.kind == "interrupt"}
    checked = {}
    for item in pending:
        if item.id in given:
            value = _check(item, given[item.id], schemas.get(item.id), checkers)
            by = getattr(value, "reviewer_id", None) or by
            checked[item.id] = Given(value, by)
    return checked


def _check(item: Interrupt, answer: Any, schema: dict[str, Any] | None, checkers: Mapping[str, Checker]) -> Any:
    if is_expired(item):
        raise InterruptError(f"the time to answer {item.id!r} has passed; resume the run without an answer to it")
    if item.kind in checkers:
        return checkers[item.kind](item, answer)
    if item.kind == BUDGET:
        return _budget(answer)
    if item.kind not in (APPROVAL, HUMAN):
        return answer
    decision = read_approval(answer)
    if isinstance(answer, Mapping) and answer.get("tool_call_id", item.value.get("tool_call_id")) != item.value.get(
        "tool_call_id"
    ):
        raise InterruptError(
            f"the decision is for the call {answer['tool_call_id']!r}, and {item.id!r} asks about "
            f"{item.value.get('tool_call_id')!r}"
        )
    if decision.modified_arguments is not None and schema is not None:
        from graphwright.tools import argument_problems

        problems = argument_problems(schema, decision.modified_arguments)
        if problems:
            raise InterruptError(
                f"the edited arguments of {item.value.get('tool')!r} do not fit: {'; '.join(problems)}"
            )
    return decision


def _budget(answer: Any) -> Any:
    if isinstance(answer, bool):
        return answer
    known = ("tokens", "usd")
    if isinstance(answer, Mapping) and answer and all(key in known for key in answer):
        more = list(answer.values())
        if all(isinstance(n, (int, float)) and not isinstance(n, bool) and 0 < n < float("inf") for n in more):
            return dict(answer)
    raise InterruptError(
        f"{answer!r} is no answer to a budget that is used up; answer True for as much again, False to end the run, or "
        '{"tokens": 5000} or {"usd": 0.5} for that much more'
    )


def standing_of(answer: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log keeps of an approval that holds for the rest of the run."""
    if isinstance(answer, ApprovalDecision) and answer.approved and answer.always and asked.get("standing"):
        return {"tool": asked["item"].value["tool"], "always": True}
    return {}
