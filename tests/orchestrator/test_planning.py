from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.orchestrator.planning import (
    PLAN_TOOL_NAMES,
    PLANNING_PROTOCOL,
    SET_PLAN,
    UPDATE_STEP,
    PlanChange,
    apply_plan_call,
    render_plan,
)
from graphwright.orchestrator.stream_events import PlanStep

PLAN: list[PlanStep] = [
    {"step": 1, "description": "Find the data", "status": "pending"},
    {"step": 2, "description": "Write the report", "status": "pending"},
]


def test_a_plan_is_registered_with_every_step_pending() -> None:
    change = apply_plan_call([], "set_plan", {"steps": ["Find the data", " Write\nthe  report "]})

    assert change == PlanChange(PLAN, "Plan registered with 2 steps.", [], True)


def test_a_new_plan_replaces_the_one_before() -> None:
    change = apply_plan_call(PLAN, "set_plan", {"steps": ["Start over"]})

    assert change.plan == [{"step": 1, "description": "Start over", "status": "pending"}]


@pytest.mark.parametrize("status", ["running", "done", "skipped", "error"])
def test_a_step_changes_its_status_and_an_event_says_so(status: Any) -> None:
    before = copy.deepcopy(PLAN)

    change = apply_plan_call(PLAN, "update_step", {"step": 2, "status": status})

    assert change.ack == f"Step 2 marked as {status}."
    assert change.step_events == [{"step": 2, "status": status}]
    assert change.plan == [PLAN[0], {**PLAN[1], "status": status}]
    assert before == PLAN, "the plan that was given stays as it was"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "The plan was not registered: steps is None; call set_plan with steps: a list of texts, one a step."),
        ({"steps": []}, "steps is []; call set_plan"),
        ({"steps": "abc"}, "steps is 'abc'; call set_plan"),
        ({"steps": ["a", " "]}, "step 2 is ' '; call set_plan"),
        ({"steps": ["a", 3]}, "step 2 is 3; call set_plan"),
        ({"steps": [{"description": "a"}]}, "step 1 is {'description': 'a'}; call set_plan"),
        ({"steps": ["a"] * 51}, "it has 51 steps; put together what belongs together, 50 steps are the most."),
        ({"steps": ["a"], "title": "x"}, "there is no argument 'title'; there are steps; call set_plan"),
    ],
)
def test_a_plan_that_is_none_is_not_registered(args: dict[str, Any], told: str) -> None:
    change = apply_plan_call(PLAN, "set_plan", args)

    assert (change.plan, change.ok, change.step_events) == (PLAN, False, [])
    assert told in change.ack


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"step": 9, "status": "done"}, "step is 9; give the number of a step, from 1 to 2"),
        ({"step": 0, "status": "done"}, "step is 0; give the number of a step, from 1 to 2"),
        ({"step": "1", "status": "done"}, "step is '1'; give the number of a step, from 1 to 2"),
        ({"step": True, "status": "done"}, "step is True; give the number of a step, from 1 to 2"),
        ({"step": 1.0, "status": "done"}, "step is 1.0; give the number of a step, from 1 to 2"),
        ({"status": "done"}, "step is None; give the number of a step, from 1 to 2"),
        ({"step": 1, "status": "finished"}, "status is 'finished'; give one of running, done, skipped, error"),
        ({"step": 1, "status": "pending"}, "status is 'pending'; give one of running, done, skipped, error"),
        ({"step": 1, "status": ["done"]}, "status is ['done']; give one of running, done, skipped, error"),
        ({"step": 1}, "status is None; give one of running, done, skipped, error"),
        ({"step": 1, "status": "done", "note": 1}, "there is no argument 'note'; there are step, status"),
    ],
)
def test_an_update_that_does_not_fit_changes_nothing_and_says_what_is_expected(args: dict[str, Any], told: str) -> None:
    assert apply_plan_call(PLAN, "update_step", args) == PlanChange(PLAN, f"No step was changed: {told}.", [], False)


def test_an_update_without_a_plan_is_told_to_make_one() -> None:
    change = apply_plan_call([], "update_step", {"step": 1, "status": "done"})

    assert change == PlanChange(
        [], "No step was changed: there is no plan yet; register one with set_plan first.", [], False
    )


def test_another_call_is_refused() -> None:
    assert apply_plan_call(PLAN, "search", {}).ack == "'search' is no plan call; there are set_plan, update_step."[:-1]


def test_a_plan_is_shown_one_line_a_step() -> None:
    change = apply_plan_call(PLAN, "update_step", {"step": 1, "status": "done"})

    assert render_plan(change.plan) == "1. [done] Find the data\n2. [pending] Write the report"
    assert render_plan([]) == ""


@given(st.lists(st.text(min_size=1, max_size=20).filter(str.strip), min_size=1, max_size=50))
def test_no_step_can_look_like_several(steps: list[str]) -> None:
    change = apply_plan_call([], "set_plan", {"steps": steps})

    assert change.ok
    assert len(render_plan(change.plan).splitlines()) == len(steps)


def test_the_protocol_names_the_two_calls_that_exist() -> None:
    assert {SET_PLAN.name, UPDATE_STEP.name} == PLAN_TOOL_NAMES
    assert all(name in PLANNING_PROTOCOL for name in PLAN_TOOL_NAMES)
    assert UPDATE_STEP.parameters["properties"]["status"]["enum"] == ["running", "done", "skipped", "error"]
