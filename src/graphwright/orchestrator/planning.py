"""The plan of a bot: the two signals by which the model keeps it, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from graphwright.orchestrator.stream_events import PlanStep, StepEvent, StepStatus
from graphwright.types import ToolSpec

__all__ = [
    "PLANNING_PROTOCOL",
    "PLAN_TOOL_NAMES",
    "SET_PLAN",
    "UPDATE_STEP",
    "PlanChange",
    "apply_plan_call",
    "render_plan",
]

_MOST_STEPS = 50
_SETTABLE = ("running", "done", "skipped", "error")

SET_PLAN = ToolSpec(
    name="set_plan",
    description="Register the plan for this goal: the steps in order. A new plan replaces the one before.",
    parameters={
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "maxItems": _MOST_STEPS,
                "description": "what is to be done, one short sentence a step",
            }
        },
        "required": ["steps"],
        "additionalProperties": False,
    },
)

UPDATE_STEP = ToolSpec(
    name="update_step",
    description="Say how a step of the registered plan stands.",
    parameters={
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 1, "description": "the number of the step, from 1"},
            "status": {"type": "string", "enum": list(_SETTABLE)},
        },
        "required": ["step", "status"],
        "additionalProperties": False,
    },
)

PLAN_TOOL_NAMES = frozenset({SET_PLAN.name, UPDATE_STEP.name})

PLANNING_PROTOCOL = """\
How to keep a plan:
- A goal that takes several steps gets a plan: call set_plan once, with the steps in order. A simple question gets none.
- When you begin a step, call update_step with "running" next to the calls that do the step; when it has been done, call
  update_step with "done". Use "skipped" for a step that turned out not to be needed, and "error" for one that failed.
- set_plan and update_step only keep the plan. They do nothing else, and no step is done because it says so.
- Do not register again a plan that is shown below; when the plan has to change, call set_plan with all steps anew.
- When every step is settled, answer with text and without any call."""


@dataclass(frozen=True, slots=True)
class PlanChange:
    """What became of a plan call."""

    plan: list[PlanStep]
    """The whole plan as it is now; as it was, when the call was refused."""

    ack: str
    """What the model reads: what was done, or what was wrong and what is expected."""

    step_events: list[StepEvent] = field(default_factory=list)

    ok: bool = True


def apply_plan_call(plan: Sequence[PlanStep], name: str, args: Mapping[str, Any]) -> PlanChange:
    """Return the plan after a `set_plan` or `update_step` call; `plan` itself stays as it is."""
    kept = [_copy(step) for step in plan]
    apply = _CALLS.get(name)
    if apply is None:
        return _refused(kept, f"{name!r} is no plan call; there are {', '.join(_CALLS)}")
    return apply(kept, args)


def render_plan(plan: Sequence[PlanStep]) -> str:
    """Return the plan as lines, `1. [done] Look it up`; empty without a plan."""
    return "\n".join(f"{step['step']}. [{step['status']}] {step['description']}" for step in plan)


def _set_plan(plan: list[PlanStep], args: Mapping[str, Any]) -> PlanChange:
    steps, expected = args.get("steps"), "call set_plan with steps: a list of texts, one a step"
    problem = _unknown_keys(args, SET_PLAN)
    if problem:
        return _refused(plan, f"The plan was not registered: {problem}; {expected}.")
    if not isinstance(steps, list) or not steps:
        return _refused(plan, f"The plan was not registered: steps is {_short(steps)}; {expected}.")
    if len(steps) > _MOST_STEPS:
        return _refused(
            plan,
            f"The plan was not registered: it has {len(steps)} steps; put together what belongs together, "
            f"{_MOST_STEPS} steps are the most.",
        )
    for number, step in enumerate(steps, 1):
        if not isinstance(step, str) or not step.strip():
            return _refused(plan, f"The plan was not registered: step {number} is {_short(step)}; {expected}.")
    # On one line each, so that no step can look like several.
    made: list[PlanStep] = [
        {"step": number, "description": " ".join(step.split()), "status": "pending"}
        for number, step in enumerate(steps, 1)
    ]
    return PlanChange(made, f"Plan registered with {len(made)} steps.")


def _update_step(plan: list[PlanStep], args: Mapping[str, Any]) -> PlanChange:
    problem = _unknown_keys(args, UPDATE_STEP) or _step_problem(plan, args.get("step"), args.get("status"))
    if problem:
        return _refused(plan, f"No step was changed: {problem}.")
    number, status = cast("int", args["step"]), cast("StepStatus", args["status"])
    plan[number - 1]["status"] = status
    return PlanChange(plan, f"Step {number} marked as {status}.", [{"step": number, "status": status}])


def _step_problem(plan: Sequence[PlanStep], step: Any, status: Any) -> str:
    if not plan:
        return "there is no plan yet; register one with set_plan first"
    if not isinstance(step, int) or isinstance(step, bool) or not 1 <= step <= len(plan):
        return f"step is {_short(step)}; give the number of a step, from 1 to {len(plan)}"
    if status not in _SETTABLE:
        return f"status is {_short(status)}; give one of {', '.join(_SETTABLE)}"
    return ""


_CALLS: dict[str, Callable[[list[PlanStep], Mapping[str, Any]], PlanChange]] = {
    SET_PLAN.name: _set_plan,
    UPDATE_STEP.name: _update_step,
}


def _unknown_keys(args: Mapping[str, Any], spec: ToolSpec) -> str:
    known = spec.parameters["properties"]
    unknown = [key for key in args if key not in known]
    return f"there is no argument {unknown[0]!r}; there are {', '.join(known)}" if unknown else ""


def _refused(plan: list[PlanStep], ack: str) -> PlanChange:
    return PlanChange(plan, ack, ok=False)


def _copy(step: PlanStep) -> PlanStep:
    return {"step": step["step"], "description": step["description"], "status": step["status"]}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
