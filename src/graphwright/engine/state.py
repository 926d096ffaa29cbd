"""What a run knows: its state, the result of each node, the report, and the words that describe nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from graphwright.engine.node_result import NodeResult
from graphwright.messages import as_message

__all__ = ["ExecutionReport", "GraphMutation", "GraphState", "NodeEvent", "NodeFlag", "NodeResult"]

_MAX_OBSERVATIONS = 50
_MAX_REFLECTIONS = 5

_MADE_LATER: dict[str, Callable[[], Any]] = {
    "plan": list,
    "completed": list,
    "observations": list,
    "reflections": list,
    "node_timings": dict,
    "turn_input": list,
}


class NodeFlag(str, Enum):
    """What a node declares about itself."""

    CACHEABLE = "cacheable"
    CRITICAL = "critical"
    ENTRY = "entry"
    INJECT_TOOLS = "inject_tools"
    ISOLATED_CONTEXT = "isolated_context"
    LIGHTWEIGHT = "lightweight"
    NO_HISTORY = "no_history"
    OBSERVABLE = "observable"
    PARALLEL_SAFE = "parallel_safe"
    READONLY = "readonly"
    REQUIRES_HUMAN = "requires_human"
    RETRYABLE = "retryable"
    SKIP_ON_ERROR = "skip_on_error"
    STATEFUL = "stateful"
    SUMMARIZE_OUTPUT = "summarize_output"
    TERMINAL = "terminal"
    VALIDATE_OUTPUT = "validate_output"
    VERBOSE = "verbose"


@dataclass
class NodeEvent:
    """An event of the engine's own, beside those that LangChain defines."""

    event: str
    node_name: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    timestamp: float = field(default_factory=time.monotonic)


@dataclass
class GraphMutation:
    """One change of the running graph. It is applied to the run's own copy, never to the original."""

    action: str
    """`"add_node"`, `"remove_node"`, `"add_edge"` or `"remove_edge"`."""
    node_name: str = ""
    node_config: dict[str, Any] = field(default_factory=dict)
    from_node: str = ""
    to_node: str = ""
    condition: str = ""


@dataclass
class ExecutionReport:
    """What a run did, in figures."""

    total_iterations: int = 0
    total_tokens: int = 0
    total_duration_ms: float = 0.0
    nodes_visited: list[str] = field(default_factory=list)
    tool_calls: int = 0
    graph_mutations: int = 0
    guards_passed: int = 0
    guards_failed: int = 0
    error: str | None = None
    """Why the run has no answer, or the limit or hook that ended it after one."""

    def summary(self) -> str:
        """Return the report as a few lines of text."""
        lines = [
            "Execution report",
            "----------------",
            f"Total iterations: {self.total_iterations}",
            f"Total tokens: {self.total_tokens:,}",
            f"Total duration: {self.total_duration_ms / 1000:.1f}s",
            f"Nodes visited: {' → '.join(self.nodes_visited)}",
            f"Tool calls: {self.tool_calls}",
            f"Graph mutations: {self.graph_mutations}",
            f"Guards: {self.guards_passed} passed, {self.guards_failed} failed",
        ]
        if self.error:
            lines.append(f"Error: {self.error}")
        return "\n".join(lines)


@dataclass
class GraphState:
    """The state of one run. Nodes read and write it; the engine brings it up to date after each node."""

    messages: list[Any] = field(default_factory=list)
    """The whole conversation as LangChain messages; dicts, tuples and strings are converted."""
    context: dict[str, Any] = field(default_factory=dict)
    """Values that nodes hand to each other."""
    current_node: str = ""
    """The node at work. A hook that sets it to `"__end__"` ends the run; to another name, redirects it."""
    visited: list[str] = field(default_factory=list)
    iteration: int = 0
    node_iterations: dict[str, int] = field(default_factory=dict)
    graph: Any = None
    plan: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    observations: list[dict[str, Any]] = field(default_factory=list)
    """The newest 50 tool results: `{tool, result, args, success, duration_ms}`."""
    reflections: list[dict[str, Any]] = field(default_factory=list)
    """The newest 5: `{iteration, mistake, correction, confidence, stage}`."""
    tool_calls_made: int = 0
    node_timings: dict[str, float] = field(default_factory=dict)
    """Milliseconds spent in each node, by name."""
    total_tokens: int = 0
    node_history: list[NodeResult] = field(default_factory=list)
    turn_question: Any = field(default=None, repr=False)
    turn_input: list[Any] = field(default_factory=list, repr=False)
    max_messages: int = 200
    """How many messages `trim_messages` keeps; the engine itself never trims."""

    _checked = 0
    # How many messages are known to be in a form that a strict provider accepts; no field of the state.
    _stop_reason = ""
    # Why a hook of the engine's ends the run; no field of the state.

    def __post_init__(self) -> None:
        self.messages = [as_message(message) for message in self.messages]
        if self.turn_question is None:
            self._find_turn()

    @classmethod
    def of_run(cls, messages: list[Any], context: dict[str, Any], graph: Any) -> GraphState:
        """Return the state at the start of a run, from messages that are converted already."""
        state = object.__new__(cls)
        state.__dict__ = {
            "messages": messages,
            "context": context,
            "visited": [],
            "node_iterations": {},
            "graph": graph,
            "node_history": [],
            "_checked": len(messages),
        }
        state._find_turn()
        return state

    def __getattr__(self, name: str) -> Any:
        # Only reached for a container that nobody has written yet: most runs need few of them.
        make = _MADE_LATER.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = make()
        setattr(self, name, made)
        return made

    @property
    def has_notes(self) -> bool:
        """Whether there is a plan, an observation, a reflection or a refused graph action."""
        noted = self.__dict__
        return bool(noted.get("plan") or noted.get("observations") or noted.get("reflections")) or (
            "_graph_action_refused" in self.context
        )

    def _find_turn(self) -> None:
        if len(self.messages) == 1 and self.messages[0].type == "human":
            self.turn_question = self.messages[0]
            self.turn_input = self.messages[:]
            return
        for index in range(len(self.messages) - 1, -1, -1):
            if getattr(self.messages[index], "type", "") == "human":
                self.turn_question = self.messages[index]
                self.turn_input = self.messages[: index + 1]
                return

    @property
    def active_subgoal(self) -> str | None:
        """The first subgoal of the plan that is not completed, or `None`."""
        for subgoal in self.plan:
            if subgoal not in self.completed:
                return subgoal
        return None

    @property
    def all_subgoals_complete(self) -> bool:
        """Whether there is a plan and all of it is completed."""
        return bool(self.plan) and self.active_subgoal is None

    def add_observation(
        self,
        tool_name: str,
        result: Any,
        args: dict[str, Any] | None = None,
        success: bool = True,
        duration_ms: float = 0.0,
    ) -> None:
        """Record a tool result, and count the call."""
        self.tool_calls_made += 1
        observations = self.observations
        observations.append(
            {"tool": tool_name, "result": result, "args": args or {}, "success": success, "duration_ms": duration_ms}
        )
        if len(observations) > _MAX_OBSERVATIONS:
            del observations[: len(observations) - _MAX_OBSERVATIONS]

    def add_reflection(
        self, iteration: int, mistake: str, correction: str, confidence: float = 0.5, stage: str = ""
    ) -> None:
        """Record a lesson from an earlier step."""
        self.reflections.append(
            {
                "iteration": iteration,
                "mistake": mistake,
                "correction": correction,
                "confidence": confidence,
                "stage": stage,
            }
        )
        del self.reflections[: max(0, len(self.reflections) - _MAX_REFLECTIONS)]

    def complete_subgoal(self, subgoal: str) -> None:
        """Mark a subgoal as completed; an empty name is ignored, a repeated one counts once."""
        if subgoal and subgoal not in self.completed:
            self.completed.append(subgoal)

    def increment_node_iteration(self, node_name: str) -> int:
        """Count one more visit of a node and return the count."""
        count = self.node_iterations.get(node_name, 0) + 1
        self.node_iterations[node_name] = count
        return count

    def record_node_timing(self, node_name: str, ms: float) -> None:
        """Add milliseconds to a node's total."""
        self.node_timings[node_name] = self.node_timings.get(node_name, 0.0) + ms

    def trim_messages(self) -> None:
        """Cut the conversation to about `max_messages`, for callers who keep a state between runs.

        Every system message and the current question stay, then the newest others. A tool call and its results
        stay or go together, so the result is one that a provider accepts. `max_messages <= 0` keeps everything.
        """
        from graphwright.messages import trim_history

        if self.max_messages > 0:
            self.messages = trim_history(self.messages, self.max_messages, keep=self.turn_question)
