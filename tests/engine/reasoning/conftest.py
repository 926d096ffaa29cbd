"""How the tests of this directory run a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from graphwright.engine import BaseNode, GraphState, NodeResult, PromptGraph, PromptGraphEngine, RunResult
from graphwright.testing import ScriptedModel


@dataclass
class World:
    """A graph that starts with a step of the test's own and ends with one that notes the state."""

    result: RunResult
    seen: dict[str, Any] = field(default_factory=dict)


class Prepare(BaseNode):
    """Writes to the state what the test needs there."""

    def __init__(self, change: Callable[[GraphState], Any], to: str) -> None:
        super().__init__("prepare", is_entry=True, default_next=to)
        self.change = change

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        output = self.change(state)
        return NodeResult(self.name, output=output)


class Note(BaseNode):
    """Keeps what the state holds at the end."""

    def __init__(self, seen: dict[str, Any], name: str = "note") -> None:
        super().__init__(name)
        self.seen = seen

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        self.seen.update(
            plan=list(state.plan),
            completed=list(state.completed),
            active=state.active_subgoal,
            all_done=state.all_subgoals_complete,
            reflections=list(state.reflections),
            context=dict(state.context),
            messages=list(state.messages),
            visited=list(state.visited),
            tokens=state.total_tokens,
        )
        return NodeResult(self.name, output="noted")


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run nodes; `before` changes the state first, and a node `note` keeps it when it is led to."""

    async def run_nodes(
        model: ScriptedModel,
        *nodes: BaseNode,
        before: Callable[[GraphState], Any] = lambda state: None,
        connect: Callable[[PromptGraph], Any] = lambda graph: None,
        input: Any = "go",
    ) -> World:
        seen: dict[str, Any] = {}
        graph = PromptGraph("g", nodes=[Prepare(before, nodes[0].name), *nodes, Note(seen)])
        connect(graph)
        with model:
            return World(await PromptGraphEngine(graph, model).ainvoke(input), seen)

    return run_nodes
