"""Several gates before one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from graphwright.interrupts import ApprovalDecision
from graphwright.tools import answer_calls, as_tools, joined_gates
from graphwright.tools.base import Approval, GatedCall, ToolRun, Verdict
from graphwright.types import ToolCall, ToolResult

NO = ApprovalDecision(False, reason="no")
YES = ApprovalDecision(True)


class Gate:
    """Says what it was told to, and notes what it saw."""

    def __init__(self, verdict: Verdict | None = None, decision: Any = "none") -> None:
        self.verdict = verdict or Verdict()
        self.decision = decision
        self.saw: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        if decision != "none":
            self.verdict = Verdict("ask", self.verdict.args, approver=self)

    async def judge(self, gated: GatedCall) -> Verdict:
        self.saw.append(gated.args)
        return self.verdict

    async def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision | None]:
        self.asked += [approval.args for approval in approvals]
        return [self.decision for _ in approvals]


async def call_through(*gates: Any) -> ToolResult:
    async def echo(text: str) -> str:
        """Echo."""
        return text

    run = ToolRun(gate=joined_gates(*gates))
    return (await answer_calls([ToolCall("1", "echo", {"text": "hi"})], as_tools([echo]), run))[0]


def test_gates_are_joined_once_each_and_one_alone_is_itself() -> None:
    one, two, three = Gate(), Gate(), Gate()

    assert joined_gates() is joined_gates(None, None) is None
    assert joined_gates(None, one, one) is one
    joined: Any = joined_gates(joined_gates(one, two), joined_gates(two, three))
    assert joined.gates == [one, two, three]


async def test_the_first_no_ends_it_and_the_next_gate_sees_what_the_first_changed() -> None:
    first, last = Gate(Verdict("allow", {"text": "changed"})), Gate(Verdict("deny", reason="because"))
    never = Gate()

    result = await call_through(first, last, never)

    assert (result.success, result.verdict) == (False, "denied")
    assert "because" in result.message.content
    assert (last.saw, never.saw) == ([{"text": "changed"}], [])
    assert (await call_through(first, never)).message.content == "changed"


@pytest.mark.parametrize(
    ("decisions", "runs"),
    [((YES, YES), True), ((YES, NO), False), ((NO, YES), False), ((YES, None), False), ((None, YES), False)],
)
async def test_everybody_who_is_asked_has_to_say_yes(decisions: tuple[Any, Any], runs: bool) -> None:
    result = await call_through(*(Gate(decision=decision) for decision in decisions))

    assert result.success is runs
    assert result.verdict == ("" if runs else "rejected")


async def test_the_second_is_shown_what_the_first_made_of_the_call_and_both_edits_run() -> None:
    first = Gate(decision=ApprovalDecision(True, modified_arguments={"text": "edited"}))
    second = Gate(decision=YES)

    result = await call_through(first, second)

    assert second.asked == [{"text": "edited"}]
    assert result.args == {"text": "edited"}
    assert result.message.content.endswith("\nedited")


async def test_an_edit_is_not_lost_to_a_pause_that_shows_the_call_as_it_was() -> None:
    first = Gate(decision=ApprovalDecision(True, modified_arguments={"text": "edited"}))

    result = await call_through(first, Gate(Verdict("ask")))

    assert result.success is False
    assert "the first changed the arguments" in result.message.content


@pytest.mark.parametrize("decision", [[], [YES, YES], RuntimeError("down")], ids=repr)
async def test_an_approver_that_fails_or_miscounts_denies(decision: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Gate):
        async def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision | None]:
            if isinstance(decision, Exception):
                raise decision
            return list(decision)

    result = await call_through(Wrong(decision=YES))

    assert (result.success, result.verdict) == (False, "denied")
    assert "the approval failed" in result.message.content
    assert "it is denied" in caplog.text
