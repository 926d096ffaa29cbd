"""A model for patterns: it knows at which stage it is asked, and has a script for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from graphwright.engine import GraphState, PromptGraph, PromptGraphEngine, RunResult
from graphwright.engine.prebuilts import _stages, autonomous, debate, deliberate, peoatr, research
from graphwright.messages import text_of
from graphwright.models.base import ModelCapabilities
from graphwright.testing import ScriptedModel
from graphwright.testing.steps import says

STAGES = {
    "peoatr": {
        "plan": _stages.PLAN_PROMPT,
        "act": _stages.ACT_PROMPT,
        "think": peoatr.THINK_PROMPT,
        "reflect": _stages.REFLECT_PROMPT,
        "answer": _stages.ANSWER_PROMPT,
    },
    "deliberate": {
        "think": deliberate.THINK_PROMPT,
        "plan": _stages.PLAN_PROMPT,
        "act": _stages.ACT_PROMPT,
        "observe": deliberate.OBSERVE_PROMPT,
        "reflect": _stages.REFLECT_PROMPT,
        "answer": _stages.ANSWER_PROMPT,
    },
    "research": {
        "search": research.SEARCH_PROMPT,
        "verify": research.VERIFY_PROMPT,
        "synthesize": research.SYNTHESIZE_PROMPT,
    },
    "debate": {
        "proposer": debate.PROPOSE_PROMPT,
        "critic": debate.CRITIC_PROMPT,
        "judge": debate.JUDGE_PROMPT,
        "answer": _stages.ANSWER_PROMPT,
    },
    "autonomous": {
        "reason": autonomous.REASON_PROMPT,
        "analyze": autonomous.ANALYZE_PROMPT,
        "synthesize": autonomous.SYNTHESIZE_PROMPT,
        "answer": _stages.ANSWER_PROMPT,
    },
}


class Staged:
    """Answers each stage of a pattern from a list of its own; the last entry is repeated."""

    def __init__(self, pattern: str, scripts: Mapping[str, Any]) -> None:
        self.stages = STAGES[pattern]
        self.scripts = {name: list(steps) if isinstance(steps, list) else [steps] for name, steps in scripts.items()}
        self.asked: list[str] = []
        self.systems: dict[str, list[str]] = {}
        native = ModelCapabilities(structured_output=True)
        self.model = ScriptedModel.answering(self._answer, capabilities=native)
        self.state: GraphState | None = None

    async def run(self, graph: PromptGraph, question: str = "What is it?", **options: Any) -> RunResult:
        """Run the graph and keep its state."""
        options.setdefault("max_iterations", 100)
        engine = PromptGraphEngine(graph, self.model, **options)
        result = await engine.run(question, on_state=self._keep)
        self.model.assert_done()
        return result

    def _keep(self, state: GraphState) -> None:
        self.state = state

    def _answer(self, messages: list[Any]) -> Any:
        system = text_of(messages[0]) if messages[0].type == "system" else ""
        stage = next((name for name, text in self.stages.items() if text in system), "planner")
        self.asked.append(stage)
        self.systems.setdefault(stage, []).append("\n".join(text_of(m) for m in messages if m.type == "system"))
        steps = self.scripts[stage]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return says(json.dumps(step)) if isinstance(step, dict) else step


@pytest.fixture
def staged() -> Callable[..., Staged]:
    """Return a maker of staged models: `staged("peoatr", plan={...}, act="...", ...)`."""
    return lambda pattern, **scripts: Staged(pattern, scripts)
