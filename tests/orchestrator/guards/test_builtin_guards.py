from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.guards import (
    ArgPatternGuard,
    BudgetGuard,
    GuardContext,
    RiskThresholdGuard,
    ToolAllowlistGuard,
    ToolDenylistGuard,
)


def call(tool: str = "run", risk: int = 1, so_far: int = 0, counts: dict[str, int] | None = None, **args: Any) -> Any:
    return GuardContext(tool, args, risk_level=risk, tool_calls_so_far=so_far, tool_counts=counts or {})


def test_a_tool_up_to_the_threshold_passes_and_a_riskier_one_is_denied_or_asked() -> None:
    assert [RiskThresholdGuard(1)(call(risk=risk)).action for risk in (0, 1, 2, 3)] == [
        "allow",
        "allow",
        "deny",
        "deny",
    ]
    asking = RiskThresholdGuard(max_risk=0, action="ask")(call("rm", risk=2))
    assert (asking.action, asking.reason) == ("ask", "the tool 'rm' has risk 2, and 0 is the most allowed")


def test_only_tools_on_the_allowlist_pass() -> None:
    guard = ToolAllowlistGuard(name for name in ["read", "list"])
    assert [guard(call(name)).action for name in ("read", "list", "rm", "READ")] == ["allow", "allow", "deny", "deny"]
    assert ToolAllowlistGuard([])(call("read")).action == "deny"


def test_tools_on_the_denylist_do_not_pass() -> None:
    guard = ToolDenylistGuard(["rm"])
    assert [guard(call(name)).action for name in ("read", "rm")] == ["allow", "deny"]


def test_a_budget_counts_what_the_run_has_done_and_keeps_nothing_itself() -> None:
    guard = BudgetGuard(2)
    for _ in range(3):
        assert [guard(call(so_far=done)).action for done in (0, 1, 2, 3)] == ["allow", "allow", "deny", "deny"]
    assert BudgetGuard(0)(call()).action == "deny"


def test_a_budget_can_be_given_for_each_tool() -> None:
    guard = BudgetGuard(10, per_tool={"search": 1})
    assert (
        guard(call("search", so_far=1, counts={"search": 1})).reason
        == "this run may call 'search' 1 times, and has done so"
    )
    assert guard(call("read", so_far=1, counts={"search": 1})).action == "allow"
    assert BudgetGuard(None, {"search": 0})(call("search")).action == "deny"
    assert BudgetGuard(None, {"search": 0})(call("read", so_far=99)).action == "allow"


def test_a_pattern_is_found_whatever_the_case_and_wherever_it_is() -> None:
    guard = ArgPatternGuard([r"rm\s+-rf"])
    assert guard(call(command="sudo RM  -RF /")).action == "deny"
    assert guard(call(steps=[{"do": ["ls", {"then": "rm -rf x"}]}])).action == "deny"
    assert guard(call(**{"rm -rf": 1})).action == "deny"
    assert guard(call(command="rmdir x")).action == "allow"


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r'"admin"', 'set role = "admin"'),
        (r"C:\\Windows", r"C:\Windows\system.ini"),
        (r"^DROP TABLE", "drop table users"),
        (r"a\nb", "a\nb"),
        (r"rm\t-rf", "rm\t-rf"),
        (r"пароль", "ПАРОЛЬ"),
    ],
)
def test_the_escapes_of_json_cannot_hide_a_match(pattern: str, value: str) -> None:
    assert ArgPatternGuard([pattern])(call(inner=[{"text": value}])).action == "deny"


def test_a_pattern_over_the_whole_json_sees_keys_next_to_their_values() -> None:
    guard = ArgPatternGuard([r'"force":\s*true'])
    assert guard(call(force=True)).action == "deny"
    assert guard(call(force=False)).action == "allow"


@given(st.text(min_size=1, max_size=20), st.integers(0, 3))
def test_a_literal_text_is_found_at_any_depth(text: str, depth: int) -> None:
    value: Any = text
    for _ in range(depth):
        value = [{"k": value}]
    assert ArgPatternGuard([re.escape(text)])(call(v=value)).action == "deny"


def test_arguments_that_are_no_json_are_searched_too() -> None:
    guard = ArgPatternGuard(["evil"])
    assert guard(call(data=b"so EVIL")).action == "deny"
    assert guard(call(data=("x", {"evil"}))).action == "deny"


def test_patterns_for_some_tools_leave_the_others_alone_and_can_ask() -> None:
    guard = ArgPatternGuard(["secret"], tools=["send"], action="ask")
    asked = guard(call("send", body="a Secret"))
    assert (asked.action, asked.reason) == ("ask", "the arguments match 'secret'")
    assert guard(call("read", body="secret")).action == "allow"


def test_a_compiled_pattern_keeps_its_own_flags() -> None:
    guard = ArgPatternGuard([re.compile("Key")])
    assert [guard(call(v=text)).action for text in ("Key", "key")] == ["deny", "allow"]


@pytest.mark.parametrize(
    "build",
    [
        lambda: RiskThresholdGuard("1"),  # type: ignore[arg-type]
        lambda: RiskThresholdGuard(True),
        lambda: RiskThresholdGuard(-1),
        lambda: RiskThresholdGuard(1, action="allow"),
        lambda: ToolAllowlistGuard("read"),
        lambda: ToolAllowlistGuard([1]),  # type: ignore[list-item]
        lambda: ToolDenylistGuard(None),  # type: ignore[arg-type]
        lambda: BudgetGuard(-1),
        lambda: BudgetGuard(1.5),  # type: ignore[arg-type]
        lambda: BudgetGuard(1, per_tool=["a"]),  # type: ignore[arg-type]
        lambda: BudgetGuard(1, per_tool={"a": -1}),
        lambda: ArgPatternGuard("rm"),
        lambda: ArgPatternGuard([]),
        lambda: ArgPatternGuard(["("]),
        lambda: ArgPatternGuard([re.compile(b"x")]),  # type: ignore[list-item]
        lambda: ArgPatternGuard(["x"], tools="send"),
        lambda: ArgPatternGuard(["x"], action="rewrite"),
    ],
)
def test_a_guard_that_could_not_work_is_refused_when_it_is_built(build: Any) -> None:
    with pytest.raises(ConfigurationError):
        build()
