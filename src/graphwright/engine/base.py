"""What a node is: the protocol, the base class, the decorator, and what a node is handed when it runs."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from graphwright.engine.state import GraphState, NodeEvent, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError, GraphwrightError
from graphwright.run_scope import RunScope, Spent
from graphwright.usage import Usage

if TYPE_CHECKING:
    from graphwright.engine.hooks import Hooks
    from graphwright.engine.journal import Frame, Journal
    from graphwright.guardrails.base import RunChecks
    from graphwright.models.base import ChatModel, ModelReply
    from graphwright.run_events import Emit
    from graphwright.tools import ToolSet
    from graphwright.tools.base import ToolGate, ToolRun, ToolSelection

__all__ = ["BaseNode", "NodeConfig", "NodeContext", "NodeProtocol", "RunLimits", "context_of", "node"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """The limits of a run."""

    max_iterations: int = 50
    """Most node executions of a run."""

    max_node_iterations: int | None = 25
    """Most executions of one node; `None` leaves it to the node's own limit."""

    max_parallel_tools: int = 32
    """Most tool calls of one turn that run at once."""

    tool_timeout: float | None = None
    """Seconds one tool call may take; `None` means only the run's own limit."""

    max_mutations: int = 10
    """Most graph changes of a run."""

    allow_mutation: bool = True
    """Whether a run may change its graph at all."""


class _Here:
    """Where in the log a context is: one for all sinks of it, another for each child."""

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: Frame | None = None


class NodeContext(RunScope):
    """What a node can use while it runs, found at `config["configurable"]["graphwright"]`.

    It has `run_id`, `path`, `emit`, `deadline` and `usage` of the run besides.
    """

    __slots__ = (
        "_here",
        "caller_config",
        "compaction",
        "gate",
        "guards",
        "hooks",
        "human_handler",
        "instructions",
        "journal",
        "lightweight_model",
        "limits",
        "model",
        "outer_frame",
        "prepared",
        "scratch",
        "tool_selector",
        "tool_summary",
        "tools",
        "trace",
    )

    def __init__(
        self,
        model: ChatModel | None,
        tools: ToolSet,
        hooks: Hooks,
        limits: RunLimits,
        *,
        run_id: str | None = None,
        path: str = "",
        emit: Emit | None = None,
        deadline: float | None = None,
        caller_config: dict[str, Any] | None = None,
        tool_summary: str = "off",
        trace: Callable[[Any], None] | None = None,
        instructions: str = "",
        prepared: dict[Any, Any] | None = None,
        human_handler: Callable[..., Any] | None = None,
        compaction: Any = None,
        lightweight_model: ChatModel | None = None,
        journal: Journal | None = None,
        gate: ToolGate | None = None,
        tool_selector: ToolSelection | None = None,
        guards: RunChecks | None = None,
    ) -> None:
        self._run_id = run_id
        self.agent_id = ""
        self.path = path
        self.emit, self.quiet = emit, False
        self.deadline = deadline
        self.usage = Usage()
        self.spent = Spent()
        self.model = model
        self.tools = tools
        """The tools of the engine, for nodes that take them."""
        self.hooks = hooks
        self.limits = limits
        self.caller_config = caller_config
        """The config that the caller of the run gave."""
        self.tool_summary = tool_summary
        """The `tool_summary` of nodes that set none."""
        self.trace = trace
        """Called with the result of every tool call."""
        self.human_handler = human_handler
        """Asked for a person's decision: `human_handler(prompt, state)`."""
        self.compaction = compaction
        """The `ContextCompaction` of nodes that compact and set none; `None` means the defaults."""
        self.lightweight_model = lightweight_model
        """The model of nodes that are flagged `lightweight`; without one they use `model`."""
        self.instructions = instructions
        """What every prompt node tells its model before its own instructions."""
        self.prepared: dict[Any, Any] = {} if prepared is None else prepared
        """What nodes worked out once for this engine, by node."""
        self.scratch: dict[Any, Any] = {}
        """What nodes keep for this run, by node."""
        self.journal = journal
        """The log of the run; `None` where nothing is written down."""
        self._here = None if journal is None else _Here()
        self.outer_frame = ""
        """What the frames of this context begin with."""
        self.gate = gate
        """What judges every tool call before it runs."""
        self.guards = guards
        """What judges the texts of the run; `None` where nothing does."""
        self.tool_selector = tool_selector
        """What shortens and selects the tools that models are told of; `None` tells them of all, in full."""

    @property
    def frame(self) -> Frame | None:
        """The place in the log of the visit that goes on here; `None` without a log."""
        return self._here.frame if self._here is not None else None

    @frame.setter
    def frame(self, frame: Frame | None) -> None:
        assert self._here is not None
        self._here.frame = frame

    def model_for(self, node: Any) -> ChatModel | None:
        """Return the model of a node that brings none: the small one for a lightweight node, else the run's."""
        if self.lightweight_model is not None and NodeFlag.LIGHTWEIGHT in getattr(node, "flags", ()):
            return self.lightweight_model
        return self.model

    def held(self, model: ChatModel) -> ChatModel:
        """Return a model as this run may ask it: with guards, its replies wait for their verdict."""
        return model if self.guards is None else self.guards.held(model)

    def tool_run(self, node: str, state: GraphState, **options: Any) -> ToolRun:
        """Return the settings under which a node's calls are answered: those of the run, and `options` of `ToolRun`."""
        from graphwright.engine.nodes.tool_turn import tool_run_of

        return tool_run_of(node, state, self, **options)

    def once_asked(self, asking: Awaitable[ModelReply]) -> Awaitable[ModelReply]:
        """Return a model call that is not made again when the run goes on later; with no log, the call itself."""
        if self.frame is None:
            return asking
        from graphwright.engine._recorded_calls import recorded_reply

        return recorded_reply(self.frame, asking)

    def child(self, name: str) -> NodeContext:
        """Return the context of a child that runs inside this run: one step further down the path, the rest shared."""
        twin = copy(self)
        twin.path = f"{self.path}/{name}" if self.path else name
        twin.scratch = {}
        if self.frame is not None:
            number = self.frame.next(f"child {name}")
            twin.outer_frame = f"{self.frame.path}/{name}~{number}/" if number else f"{self.frame.path}/{name}/"
            twin._here = _Here()
        return twin

    def listening(self, emit: Emit | None) -> NodeContext:
        """Return the same context with another sink."""
        twin = copy(self)
        twin.emit = emit
        return twin


class _Configurable(TypedDict, total=False):
    graphwright: NodeContext


class NodeConfig(TypedDict, total=False):
    """The `config` of `execute`: the caller's dict, and under `configurable` the engine's `NodeContext`."""

    configurable: _Configurable
    callbacks: Any
    tags: list[str]
    metadata: dict[str, Any]


def context_of(config: Mapping[str, Any]) -> NodeContext:
    """Return the `NodeContext` of a node's config.

    Raises:
        ConfigurationError: the config did not come from an engine.
    """
    try:
        found = config["configurable"]["graphwright"]
    except (KeyError, TypeError):
        found = None
    if type(found) is not NodeContext:
        raise ConfigurationError("this config has no NodeContext; a node is run by a PromptGraphEngine")
    return found


@runtime_checkable
class NodeProtocol(Protocol):
    """The least that a graph node has to offer."""

    name: str

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run once and say what happened."""
        ...

    def stream(self, state: GraphState, config: Any) -> AsyncIterator[NodeEvent]:
        """Run once and yield events; the last is `on_node_end` with the result under `data["result"]`."""
        ...


class BaseNode:
    """Base class of graph nodes: subclass it and override `execute`.

    A node is configuration, shared by all runs of its graph: keep what belongs to a run in the state.
    """

    node_type: str = ""

    reenterable: bool = False
    """Whether `execute` may run again from its top when a run goes on that was cut off or paused inside it. A node
    that says so does no effect of its own outside of tools, models, children and `once`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if ("execute" in own or "stream" in own) and "reenterable" not in own:
            # What holds for the code of a class does not hold for code that takes its place.
            cls.reenterable = False

    def __init__(
        self,
        name: str,
        *,
        instructions: str = "",
        description: str = "",
        transitions: Mapping[str, str] | None = None,
        default_next: str | None = None,
        max_iterations: int = 10,
        metadata: Mapping[str, Any] | None = None,
        is_entry: bool = False,
        is_terminal: bool = False,
        flags: Iterable[NodeFlag | str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or name.startswith("__end__"):
            raise ConfigurationError(f"a node's name is a non-empty string other than '__end__', not {name!r}")
        if max_iterations < 1:
            raise ConfigurationError(f"max_iterations of node {name!r} is {max_iterations!r}; it must be at least 1")
        self.name = name
        self.instructions = instructions
        self.description = description or instructions[:80]
        self.transitions: dict[str, str] = dict(transitions or {})
        self.default_next = default_next
        self.max_iterations = max_iterations
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.flags: frozenset[NodeFlag] = _as_flags(name, flags, is_entry=is_entry, is_terminal=is_terminal)

    @property
    def is_entry(self) -> bool:
        """Whether this node starts the graph."""
        return NodeFlag.ENTRY in self.flags

    @property
    def is_terminal(self) -> bool:
        """Whether this node can end the graph."""
        return NodeFlag.TERMINAL in self.flags

    def has_flag(self, flag: NodeFlag | str) -> bool:
        """Whether the node carries `flag`."""
        return NodeFlag(flag) in self.flags

    def targets(self) -> dict[str, str]:
        """Return the nodes that this node's own configuration leads to: what leads there -> the name."""
        found = {f"transition {key!r}": target for key, target in self.transitions.items()}
        if self.default_next is not None:
            found["default_next"] = self.default_next
        return found

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run the node once. Subclasses override this (or `stream`, which is then read to its end)."""
        if type(self).stream is BaseNode.stream:
            raise NotImplementedError(f"{type(self).__name__} overrides neither execute() nor stream()")
        result: NodeResult | None = None
        async for event in self.stream(state, config):
            if event.event == "on_node_end":
                result = event.data.get("result")
        if result is None:
            raise GraphwrightError(
                f"stream() of node {self.name!r} ended without an on_node_end event that holds a result"
            )
        return result

    async def stream(self, state: GraphState, config: Any) -> AsyncIterator[NodeEvent]:
        """Run the node once, yielding its events; the last is `on_node_end` with `data["result"]`."""
        from graphwright.engine._node_stream import stream_node

        async for event in stream_node(self, state, config):
            yield event

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def _as_flags(
    name: str, flags: Iterable[NodeFlag | str] | None, *, is_entry: bool, is_terminal: bool
) -> frozenset[NodeFlag]:
    found = set()
    for flag in flags or ():
        try:
            found.add(NodeFlag(flag))
        except ValueError:
            known = ", ".join(sorted(member.value for member in NodeFlag))
            raise ConfigurationError(f"node {name!r}: {flag!r} is no node flag; choose from {known}") from None
    if is_entry:
        found.add(NodeFlag.ENTRY)
    if is_terminal:
        found.add(NodeFlag.TERMINAL)
    return frozenset(found)


class _FunctionNode(BaseNode):
    """A node made of one async function."""

    def __init__(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        if not options.get("description") and not options.get("instructions"):
            options["description"] = (inspect.getdoc(function) or "").split("\n", 1)[0]
        super().__init__(name, **options)
        self.function = function
        self._arity = _positional_count(function)

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Call the function with as much of `(state, config)` as it takes."""
        value = await self.function(*(state, config)[: self._arity])
        if isinstance(value, NodeResult):
            return value
        return NodeResult(self.name, output=value, raw_output=value if isinstance(value, str) else "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _positional_count(function: Callable[..., Any]) -> int:
    count = 0
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return 2
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            count += 1
    return min(count, 2)


def node(
    name: str,
    *,
    instructions: str = "",
    description: str = "",
    transitions: Mapping[str, str] | None = None,
    default_next: str | None = None,
    max_iterations: int = 10,
    metadata: Mapping[str, Any] | None = None,
    flags: Iterable[NodeFlag | str] | None = None,
    is_entry: bool = False,
    is_terminal: bool = False,
) -> Callable[[Callable[..., Any]], BaseNode]:
    """Turn an async function into a graph node.

    The function takes `(state, config)`, `(state)` or nothing. What it returns becomes the node's output,
    unless it is a `NodeResult`.

    Raises:
        TypeError: the function is not declared with `async def`.
    """

    def make(function: Callable[..., Any]) -> BaseNode:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"@node({name!r}) needs an 'async def' function, not {function!r}")
        return _FunctionNode(
            name,
            function,
            instructions=instructions,
            description=description,
            transitions=transitions,
            default_next=default_next,
            max_iterations=max_iterations,
            metadata=metadata,
            flags=flags,
            is_entry=is_entry,
            is_terminal=is_terminal,
        )

    return make
