"""The keywords of `build_agent`, gathered once into groups that are checked when the agent is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError, FeatureOffError, UnknownPatternError

__all__ = [
    "AGENT_PATTERNS",
    "DEFAULT_MAX_DELEGATION_DEPTH",
    "DEFAULT_SYSTEM_PROMPT",
    "LEFT_OUT",
    "GraphOptions",
    "RunOptions",
    "ToolOptions",
    "instructions_text",
    "refuse_missing_features",
]

AGENT_PATTERNS = ("react",)
"""The names that `agent_pattern` takes."""

DEFAULT_SYSTEM_PROMPT = (
    "You are a helpful assistant. Use the tools when they help, say what you do not know, and answer briefly."
)

DEFAULT_MAX_DELEGATION_DEPTH = 3


class _LeftOut(int):
    """A default that can be told from the same number given by the caller."""


LEFT_OUT = _LeftOut(25)
"""The `max_agent_iterations` of a caller who gives none."""

_REACT_ITERATIONS = 15
_NODE_ITERATIONS = 25

_OFF: dict[str, tuple[Any, ...]] = {
    "servers": (None,),
    "identity": (None,),
    "cross_agents": (None,),
    "include_broadcast": (False, None),
    "max_delegation_depth": (DEFAULT_MAX_DELEGATION_DEPTH,),
    "delegation_timeout": (None,),
    "sandbox": (None, False),
    "observer": (None,),
    "observer_agent_id": (None,),
    "observe": (None, False),
    "memory": (None,),
    "memory_auto_store": (False,),
    "memory_max_results": (5,),
    "memory_min_score": (0.0,),
    "memory_timeout": (5.0,),
    "flow": (None,),
    "conversation_store": (None,),
    "conversation_max_messages": (0,),
    "optimize_tools": (None, False),
    "guardrails": (None, False),
    "cache": (None, False),
    "approval": (None,),
    "events": (None,),
    "on_tool_progress": (None,),
    "adaptive": (None, False),
    "context_engine": (None,),
    "context_compaction": (None, False),
    "node_pool": (None,),
    "code_action": (None,),
    "expose_resources": (False, None),
    "expose_prompts": (False, None),
}


def refuse_missing_features(given: Mapping[str, Any]) -> None:
    """Refuse every keyword that asks for something this release does not have.

    Raises:
        FeatureOffError: there is one; the message names it.
    """
    for keyword, value in given.items():
        empty = isinstance(value, (Mapping, list, tuple)) and not value
        if not empty and not any(value is off or (type(value) is type(off) and value == off) for off in _OFF[keyword]):
            raise FeatureOffError(
                f"{keyword}={_short(value)} asks for a feature that this release does not have; leave {keyword} out"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOptions:
    """Which tools an agent has and how their calls are made."""

    extra_tools: Iterable[Any] | None = None
    trace_tools: bool = False
    tool_summary: str = "off"
    max_parallel_tools: int = 32
    tool_timeout: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.extra_tools, (str, Mapping)):
            raise ConfigurationError(f"extra_tools is {self.extra_tools!r}; give a list of functions or tools")


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOptions:
    """Which graph an agent runs."""

    agent_pattern: str | PromptGraph | None = None
    graph_blocks: list[Any] | None = None
    output_schema: Any = None
    max_agent_iterations: int = LEFT_OUT

    def __post_init__(self) -> None:
        pattern = self.agent_pattern
        if isinstance(pattern, PromptGraph):
            if self.graph_blocks:
                raise ConfigurationError(
                    "graph_blocks= goes to a named pattern; set blocks= on the nodes of your graph"
                )
            if self.output_schema is not None:
                raise ConfigurationError("output_schema= goes to a named pattern; set it on the node that answers")
        elif isinstance(pattern, str):
            if pattern not in AGENT_PATTERNS:
                raise UnknownPatternError(
                    f"no agent pattern named {pattern!r}; choose one of {', '.join(AGENT_PATTERNS)}, "
                    "or give a PromptGraph"
                )
        elif pattern is not None:
            raise ConfigurationError(
                f"agent_pattern is {pattern!r}; give one of {', '.join(AGENT_PATTERNS)}, or a PromptGraph"
            )

    @property
    def react_iterations(self) -> int:
        """The node limit of the ReAct graph: 15, or more when the caller asks for more."""
        if isinstance(self.max_agent_iterations, _LeftOut):
            return _REACT_ITERATIONS
        return max(_REACT_ITERATIONS, self.max_agent_iterations)

    @property
    def node_iterations(self) -> int:
        """The engine's ceiling for one node: 25, or more when the caller asks for more."""
        return max(_NODE_ITERATIONS, self.max_agent_iterations)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How long a run may take and who watches it."""

    max_invocation_time: float = 0
    """Seconds; 0 is no limit."""

    hooks: Iterable[Any] | None = None

    def __post_init__(self) -> None:
        seconds = self.max_invocation_time
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
            raise ConfigurationError(f"max_invocation_time is {seconds!r}; give seconds, or 0 for no limit")


def instructions_text(instructions: Any) -> str:
    """Return the system text for `instructions`: a string, or an object with `render(context)`.

    Raises:
        ConfigurationError: it is neither.
    """
    if instructions is None:
        return DEFAULT_SYSTEM_PROMPT
    if isinstance(instructions, str):
        return instructions
    if callable(getattr(instructions, "render", None)):
        return str(instructions.render({}))
    raise ConfigurationError(f"instructions is {instructions!r}; give a text, or an object with render(context)")
