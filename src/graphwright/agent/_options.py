"""The keywords of `build_agent`, gathered once into groups that are checked when the agent is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright.agent._servers import check_mcp_input
from graphwright.conversations.base import AppendingStore
from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError, FeatureOffError, UnknownPatternError
from graphwright.interrupts import MCP_INPUT
from graphwright.runtime import Durability

if TYPE_CHECKING:
    from graphwright.agent._sandboxing import SandboxUse
    from graphwright.agent._shaping import Shaping
    from graphwright.engine.execution import PromptGraphEngine
    from graphwright.identity import AgentIdentity
    from graphwright.observability import Watch
    from graphwright.tools.base import ToolSelection

__all__ = [
    "AGENT_PATTERNS",
    "DEFAULT_MAX_DELEGATION_DEPTH",
    "DEFAULT_SYSTEM_PROMPT",
    "LEFT_OUT",
    "GraphOptions",
    "PromptOptions",
    "RunOptions",
    "ToolOptions",
    "agent_id_of",
    "guards_of",
    "instructions_text",
    "refuse_missing_features",
]

AGENT_PATTERNS = (
    "react",
    "managed",
    "code-action",
    "verify",
    "peoatr",
    "research",
    "autonomous",
    "deliberate",
    "debate",
)
"""The names that `agent_pattern` takes."""

DEFAULT_SYSTEM_PROMPT = (
    "You are a helpful assistant. Use the tools when they help, say what you do not know, and answer briefly."
)

DEFAULT_MAX_DELEGATION_DEPTH = 3


class _LeftOut(int):
    """A default that can be told from the same number given by the caller."""


LEFT_OUT = _LeftOut(25)
"""The `max_agent_iterations` of a caller who gives none."""

_OFF: dict[str, tuple[Any, ...]] = {
    "code_action": (None,),
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
    optimize_tools: Any = None
    """How much of its tools the model is told: True, a level, a `ToolOptimizationConfig` or a dict of its fields."""

    def __post_init__(self) -> None:
        if isinstance(self.extra_tools, (str, Mapping)):
            raise ConfigurationError(f"extra_tools is {self.extra_tools!r}; give a list of functions or tools")

    def selector(self) -> ToolSelection | None:
        """Return what shortens and selects tools; `None` when nothing does.

        Raises:
            ConfigurationError: `optimize_tools` does not fit.
        """
        if self.optimize_tools is None or self.optimize_tools is False:
            return None
        from graphwright.tools import ToolOptimizationConfig, ToolSelector

        config = ToolOptimizationConfig.coerce(self.optimize_tools)
        return None if config is None else ToolSelector(config)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOptions:
    """Which graph an agent runs."""

    agent_pattern: str | PromptGraph | None = None
    graph_blocks: list[Any] | None = None
    node_pool: Iterable[Any] | None = None
    output_schema: Any = None
    max_agent_iterations: int = LEFT_OUT
    allow_self_modification: bool = True
    max_mutations_per_run: int = 10
    context_compaction: Any = None
    """How long tool loops are compacted: a bool, a number of tool results or a `ContextCompaction`."""

    def __post_init__(self) -> None:
        if self.node_pool is not None:
            self._check_pool()
        if isinstance(self.agent_pattern, PromptGraph):
            self._check_graph()
        elif self.agent_pattern is not None:
            _check_name(self.agent_pattern)
        mutations = self.max_mutations_per_run
        if isinstance(mutations, bool) or not isinstance(mutations, int) or mutations < 0:
            raise ConfigurationError(f"max_mutations_per_run is {mutations!r}; give a whole number, or 0 for none")

    @property
    def iterations(self) -> int | None:
        """The most node executions of a run, or `None` when the caller leaves it open."""
        return None if isinstance(self.max_agent_iterations, _LeftOut) else self.max_agent_iterations

    def _check_pool(self) -> None:
        if isinstance(self.node_pool, (str, Mapping, PromptGraph)) or not isinstance(self.node_pool, Iterable):
            raise ConfigurationError(f"node_pool is {self.node_pool!r}; give a list of nodes")
        if self.agent_pattern not in (None, "autonomous"):
            raise ConfigurationError(
                f"node_pool= makes an autonomous agent, and agent_pattern is {self.agent_pattern!r}; give one of them"
            )
        if self.graph_blocks:
            raise ConfigurationError("graph_blocks= goes to a named pattern; set blocks= on the nodes of node_pool=")

    def _check_graph(self) -> None:
        if self.graph_blocks:
            raise ConfigurationError("graph_blocks= goes to a named pattern; set blocks= on the nodes of your graph")
        if self.output_schema is not None:
            raise ConfigurationError("output_schema= goes to a named pattern; set it on the node that answers")


def _check_name(pattern: Any) -> None:
    known = ", ".join(AGENT_PATTERNS)
    if not isinstance(pattern, str):
        raise ConfigurationError(f"agent_pattern is {pattern!r}; give one of {known}, or a PromptGraph")
    if pattern == "pipeline":
        raise UnknownPatternError(
            "the pattern 'pipeline' is made of your own nodes; give agent_pattern=PromptGraph.pipeline(first, second)"
        )
    if pattern not in AGENT_PATTERNS:
        raise UnknownPatternError(f"no agent pattern named {pattern!r}; choose one of {known}, or give a PromptGraph")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How long a run may take and who watches it."""

    max_invocation_time: float = 0
    """Seconds; 0 is no limit."""

    hooks: Iterable[Any] | None = None

    human_handler: Callable[..., Any] | None = None
    """`human_handler(prompt, state)` decides for a person."""

    lightweight_model: Any = None
    """The model of nodes that are flagged `lightweight`; `None` leaves them the agent's."""

    durability: Durability | None = None
    """How runs are kept; `None` keeps none."""

    conversations: AppendingStore | None = None
    """Where `chat` keeps what is said; `None` keeps nothing."""

    identity: AgentIdentity | None = None
    """Who the agent is."""

    agent_id: str = ""
    """Its name in events, tool calls and the log."""

    watch: Watch | None = None
    """What watches its runs."""

    sandbox: SandboxUse | None = None
    """Where its commands and programs run."""

    max_messages: int = 0
    """How many of the newest messages of a session a run is shown; 0 is all."""

    guards: tuple[Any, ...] = ()
    """What judges the texts of a run."""

    def __post_init__(self) -> None:
        seconds = self.max_invocation_time
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
            raise ConfigurationError(f"max_invocation_time is {seconds!r}; give seconds, or 0 for no limit")


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptOptions:
    """What makes the system prompt, where it is not the same in every run."""

    flow: Any = None
    """A `ConversationFlow`, a subclass, or a function that makes one."""

    adaptive: Any = None
    """How failed tool calls become lessons: True, an `AdaptiveStrategyConfig` or a dict of its fields."""

    context_engine: Any = None
    """A `ContextEngine`."""

    memory: Mapping[str, Any] | None = None
    """The provider of memories and how it is used; `None` without memory."""

    def shaping(self, engine: PromptGraphEngine, graph: GraphOptions, given: Any, instructions: str) -> Shaping | None:
        """Return the parts that do it; `None` where no prompt changes.

        Raises:
            ConfigurationError: one of the options does not fit.
        """
        if self.flow is self.context_engine is self.memory is None and self.adaptive in (None, False):
            return None
        from graphwright.agent._shaping import shaping_of

        return shaping_of(
            engine,
            flow=self.flow,
            memory=self.memory,
            adaptive=self.adaptive,
            context_engine=self.context_engine,
            compaction=graph.context_compaction,
            given="" if given is None else instructions_text(given),
            instructions=instructions,
        )


def memory_of(
    provider: Any, auto_store: bool, max_results: int, min_score: float, timeout: float
) -> Mapping[str, Any] | None:
    """Return how memory is used; `None` without a provider.

    Raises:
        ConfigurationError: one of the keywords does not fit.
    """
    if provider is None:
        if auto_store:
            raise ConfigurationError("memory_auto_store=True has nowhere to store; give memory= a provider")
        return None
    from graphwright.memory.base import MemoryProvider

    if isinstance(provider, type) or not isinstance(provider, MemoryProvider):
        raise ConfigurationError(f"memory is {_short(provider)}; give a MemoryProvider such as InMemoryProvider()")
    if isinstance(max_results, bool) or not isinstance(max_results, int) or max_results < 1:
        raise ConfigurationError(f"memory_max_results is {max_results!r}; it must be 1 or more")
    if not 0 <= min_score <= 1:
        raise ConfigurationError(f"memory_min_score is {min_score!r}; it must be from 0 to 1")
    if not 0 < timeout < float("inf"):
        raise ConfigurationError(f"memory_timeout is {timeout!r}; it must be a number of seconds above 0")
    return {
        "provider": provider,
        "auto_store": auto_store,
        "max_results": max_results,
        "min_score": min_score,
        "timeout": timeout,
    }


def guards_of(guardrails: Any) -> tuple[Any, ...]:
    """Return the guards that the keyword of `build_agent` asks for.

    Raises:
        ConfigurationError: something there is no guard.
    """
    if guardrails is None or guardrails is False:
        return ()
    from graphwright.guardrails import as_guards

    return as_guards(guardrails)


def conversations_of(store: Any, max_messages: Any) -> AppendingStore | None:
    """Return the store of the conversations, from the keywords of `build_agent`.

    Raises:
        ConfigurationError: one of them does not fit.
    """
    if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 0:
        raise ConfigurationError(
            f"conversation_max_messages is {max_messages!r}; give a number of messages, or 0 for no limit"
        )
    if store is None:
        return None
    from graphwright.conversations import as_appending

    return as_appending(store)


async def agent_id_of(identity: Any) -> str:
    """Return who the agent is; empty without an identity.

    Raises:
        ConfigurationError: the identity is none.
        IdentityError: it does not say, and nobody else does.
    """
    if identity is None:
        return ""
    from graphwright.identity import AgentIdentity

    if not isinstance(identity, AgentIdentity):
        raise ConfigurationError(f"identity is {identity!r}; give an AgentIdentity")
    return await identity.resolve_identifier()


def durability_of(runlog: Any, *, on_busy: str, on_paused: str, agent_id: str = "") -> Durability | None:
    """Return how runs are kept, from the keywords of `build_agent`.

    Raises:
        ConfigurationError: one of them does not fit.
    """
    if on_busy not in ("refuse", "wait"):
        raise ConfigurationError(f"on_busy is {on_busy!r}; use 'refuse' or 'wait'")
    if on_paused not in ("refuse", "abandon"):
        raise ConfigurationError(f"on_paused is {on_paused!r}; use 'refuse' or 'abandon'")
    if runlog is None or runlog is False:
        return None
    from graphwright.runlog import as_run_log

    log = as_run_log(runlog)
    assert log is not None
    signature = {"agent_id": agent_id} if agent_id else {}
    return Durability(
        log=log,
        metadata=lambda request: {**request.metadata, **signature},
        checkers={MCP_INPUT: check_mcp_input},
        owns_log=log is not runlog,
        on_busy="wait" if on_busy == "wait" else "refuse",
        on_paused="abandon" if on_paused == "abandon" else "refuse",
    )


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
