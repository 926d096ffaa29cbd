"""What happened in one visit of a node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.engine.state import GraphMutation

__all__ = ["NodeResult"]

_LISTS = frozenset(
    {
        "tool_calls",
        "messages_added",
        "blocks_used",
        "blocks_dropped",
        "guards_passed",
        "guards_failed",
        "graph_mutations",
    }
)


class _Cause:
    """The exception behind a failed result; it is no field of the result."""

    __slots__ = ("cause",)
    cause: BaseException | None

    def blame(self, cause: BaseException) -> None:
        """Keep the exception that made the visit fail."""
        self.cause = cause


@dataclass(slots=True, init=False)
class NodeResult(_Cause):
    """Everything that happened in one visit of a node.

    A list that nobody wrote is made when it is first asked for: a run of many steps would otherwise leave
    hundreds of empty lists to the garbage collector.
    """

    node_name: str = ""
    node_type: str = ""
    iteration: int = 0
    """Number of the visit in the run, from 1."""

    duration_ms: float = 0.0
    llm_duration_ms: float = 0.0
    tool_duration_ms: float = 0.0

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0

    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """One `{name, args, result, success}` a call, in the order asked; also `reused`, `invalid` and `raw_args`."""
    tool_calls_deduplicated: int = 0
    tool_calls_failed: int = 0

    output: Any = None
    raw_output: str = ""
    next_node: str | None = None
    transition_reason: str = ""

    messages_added: list[Any] = field(default_factory=list)
    blocks_used: list[str] = field(default_factory=list)
    blocks_dropped: list[str] = field(default_factory=list)
    strategy_applied: str | None = None
    perspective_applied: str | None = None

    guards_passed: list[str] = field(default_factory=list)
    guards_failed: list[str] = field(default_factory=list)
    guard_retries: int = 0

    graph_mutations: list[GraphMutation] = field(default_factory=list)

    error: str | None = None
    error_recovered: bool = False

    def __init__(
        self,
        node_name: str = "",
        node_type: str = "",
        iteration: int = 0,
        duration_ms: float = 0.0,
        llm_duration_ms: float = 0.0,
        tool_duration_ms: float = 0.0,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        total_tokens: int = 0,
        tool_calls: list[dict[str, Any]] | None = None,
        tool_calls_deduplicated: int = 0,
        tool_calls_failed: int = 0,
        output: Any = None,
        raw_output: str = "",
        next_node: str | None = None,
        transition_reason: str = "",
        messages_added: list[Any] | None = None,
        blocks_used: list[str] | None = None,
        blocks_dropped: list[str] | None = None,
        strategy_applied: str | None = None,
        perspective_applied: str | None = None,
        guards_passed: list[str] | None = None,
        guards_failed: list[str] | None = None,
        guard_retries: int = 0,
        graph_mutations: list[GraphMutation] | None = None,
        error: str | None = None,
        error_recovered: bool = False,
    ) -> None:
        self.node_name = node_name
        self.node_type = node_type
        self.iteration = iteration
        self.duration_ms = duration_ms
        self.llm_duration_ms = llm_duration_ms
        self.tool_duration_ms = tool_duration_ms
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.total_tokens = total_tokens
        self.tool_calls_deduplicated = tool_calls_deduplicated
        self.tool_calls_failed = tool_calls_failed
        self.output = output
        self.raw_output = raw_output
        self.next_node = next_node
        self.transition_reason = transition_reason
        self.strategy_applied = strategy_applied
        self.perspective_applied = perspective_applied
        self.guard_retries = guard_retries
        self.error = error
        self.error_recovered = error_recovered
        if tool_calls is not None:
            self.tool_calls = tool_calls
        if messages_added is not None:
            self.messages_added = messages_added
        if blocks_used is not None:
            self.blocks_used = blocks_used
        if blocks_dropped is not None:
            self.blocks_dropped = blocks_dropped
        if guards_passed is not None:
            self.guards_passed = guards_passed
        if guards_failed is not None:
            self.guards_failed = guards_failed
        if graph_mutations is not None:
            self.graph_mutations = graph_mutations

    def __getattr__(self, name: str) -> Any:
        # Only reached for a slot that was never set.
        if name in _LISTS:
            made: list[Any] = []
            setattr(self, name, made)
            return made
        if name == "cause":
            return None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
