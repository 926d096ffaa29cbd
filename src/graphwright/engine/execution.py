"""Run a graph: the engine, and the errors that a run can end with."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Stream
from graphwright.engine import _topology
from graphwright.engine._delta import copied
from graphwright.engine._events_view import v2_event
from graphwright.engine._finish import finish
from graphwright.engine._loop import traverse
from graphwright.engine._replay import replay
from graphwright.engine._run import GraphRun
from graphwright.engine.base import NodeContext, RunLimits
from graphwright.engine.compaction import ContextCompaction
from graphwright.engine.graph import PromptGraph
from graphwright.engine.hooks import Hooks
from graphwright.engine.journal import LeavesRun
from graphwright.engine.result import RunResult
from graphwright.engine.state import ExecutionReport, GraphState
from graphwright.exceptions import (
    CodeActionBudgetError,
    ConfigurationError,
    GraphBudgetExceededError,
    GraphExecutionError,
    GraphInvalidError,
    GraphIterationLimitError,
    GraphStoppedError,
)
from graphwright.interrupts import Interrupted
from graphwright.messages import as_messages, repair_pairs
from graphwright.models import as_model
from graphwright.run_events import (
    NodeFinished,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolProgress,
    number,
    signed,
)
from graphwright.run_scope import Spent, run_scope
from graphwright.tools import as_tools, joined_gates

if TYPE_CHECKING:
    from graphwright.engine._replay import KnownAnswer
    from graphwright.engine.journal import Inside, Journal
    from graphwright.guardrails.base import RunChecks
    from graphwright.run_events import Emit, RunEvent
    from graphwright.tools.base import ToolGate, ToolSelection

__all__ = [
    "CodeActionBudgetError",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphIterationLimitError",
    "GraphStoppedError",
    "PromptGraphEngine",
    "RunResult",
    "ValuesView",
    "runs_ahead",
]

logger = logging.getLogger(__name__)

_last_run: ContextVar[tuple[weakref.ref[PromptGraphEngine], ExecutionReport] | None] = ContextVar(
    "graphwright_last_run", default=None
)
_SUMMARIES = ("off", "names", "full")


def runs_ahead(event: RunEvent) -> bool:
    """Return whether a reader may get an event a little later than it was emitted."""
    return isinstance(event, (TextDelta, ThinkingDelta, ToolProgress))


class PromptGraphEngine:
    """Runs a graph. Each run works on its own copy, so one engine serves any number of runs at once."""

    def __init__(
        self,
        graph: PromptGraph,
        model: Any = None,
        *,
        max_iterations: int = 50,
        max_node_iterations: int | None = 25,
        hooks: Iterable[Any] | None = None,
        allow_self_modification: bool = True,
        max_mutations_per_run: int = 10,
        tools: Iterable[Any] | None = None,
        compaction: Any = None,
        tool_summary: str | None = None,
        max_parallel_tools: int = 32,
        tool_timeout: float | None = None,
        trace: Any = None,
        instructions: str = "",
        human_handler: Callable[..., Any] | None = None,
        lightweight_model: Any = None,
        gate: ToolGate | None = None,
        tool_selector: ToolSelection | None = None,
    ) -> None:
        """Prepare to run `graph` with `model` (anything that `graphwright.models.as_model` takes).

        `instructions` come before the own instructions of every prompt node; `trace` is called with every tool result.
        `compaction` is for nodes that compact and set none: a `ContextCompaction`, a bool or a number of tool results.
        `human_handler(prompt, state)` gives the decision that a `HumanNode` waits for; `lightweight_model` is the
        model of nodes that are flagged `lightweight`. `tool_selector` says of which tools models are told, and what.

        Raises:
            ConfigurationError: an argument does not fit; the message names it.
        """
        if not isinstance(graph, PromptGraph):
            raise ConfigurationError(f"graph is {graph!r}; give a PromptGraph")
        if tool_summary not in (None, *_SUMMARIES):
            raise ConfigurationError(f"tool_summary {tool_summary!r} is unknown; use one of {', '.join(_SUMMARIES)}")
        _check_at_least(1, max_iterations=max_iterations, max_parallel_tools=max_parallel_tools)
        if max_node_iterations is not None:
            _check_at_least(1, max_node_iterations=max_node_iterations)
        if tool_timeout is not None and tool_timeout <= 0:
            raise ConfigurationError(f"tool_timeout is {tool_timeout!r}; give seconds above 0, or None for no limit")
        if human_handler is not None and not callable(human_handler):
            raise ConfigurationError(f"human_handler is {human_handler!r}; give a function that takes (prompt, state)")
        self.graph = graph
        self.model = None if model is None else as_model(model)
        self.tools = as_tools(tools or ())
        self.hooks = hooks if isinstance(hooks, Hooks) else Hooks(hooks or ())
        self.hooks.check_engine(graph, self.model)
        self.max_iterations = max_iterations
        self.allow_self_modification = allow_self_modification
        self._limits = RunLimits(
            max_iterations=max_iterations,
            max_node_iterations=max_node_iterations,
            max_parallel_tools=max_parallel_tools,
            tool_timeout=tool_timeout,
            max_mutations=max_mutations_per_run,
            allow_mutation=allow_self_modification,
        )
        self._tool_summary = tool_summary or "off"
        self._trace = trace
        self._instructions = instructions
        self._human_handler = human_handler
        self._gate = gate
        self._tool_selector = tool_selector
        self._lightweight_model = None if lightweight_model is None else as_model(lightweight_model)
        self._compaction = None if compaction is None else ContextCompaction.coerce(compaction)
        self.agent_id = ""
        """Who the agent is, for the events and the tool calls of its runs; empty without an identity."""
        self._prepared: dict[Any, Any] = {}
        self._checked: object | None = None
        self._self = weakref.ref(self)
        self._latest: ExecutionReport | None = None

    @property
    def last_report(self) -> ExecutionReport | None:
        """The report of the last run: of the one that this task awaited, else of the one that ended last."""
        seen = _last_run.get()
        if seen is not None and seen[0]() is self:
            return seen[1]
        return self._latest

    def use_tools(self, tools: Iterable[Any]) -> None:
        """Give later runs other tools; a run that is going on keeps those it began with."""
        self.tools = as_tools(tools)
        self._prepared = {}  # the runs that go on hold the old one

    async def ainvoke(self, input: Any, config: Mapping[str, Any] | None = None, **kwargs: Any) -> RunResult:
        """Run the graph to its end and return `{"messages": [...], "context": {...}}`.

        Keyword `context` is a dict that the nodes find in `GraphState.context`.

        Raises:
            GraphExecutionError: the run has no answer.
            GraphInvalidError: the graph cannot run.
            ConfigurationError: the input is no conversation.
        """
        return await self.run(input, config, **_context_only(kwargs))

    def invoke(self, input: Any, config: Mapping[str, Any] | None = None, **kwargs: Any) -> RunResult:
        """Do what `ainvoke` does and wait for it, also inside a running event loop, which waits too."""
        from graphwright._internal.sync import run_sync

        return run_sync(self.ainvoke(input, config, **kwargs))

    def astream(self, input: Any, config: Mapping[str, Any] | None = None, **kwargs: Any) -> Stream[dict[str, Any]]:
        """Run the graph and yield `{"messages": [...]}` after every node that went well.

        The last chunk equals what `ainvoke` returns. A run without an answer raises after its chunks.
        """
        given = _context_only(kwargs)
        return self.stream(lambda emit: self.run(input, config, emit=emit, **given), ValuesView())

    def astream_events(
        self, input: Any, *, config: Mapping[str, Any] | None = None, version: str = "v2", **kwargs: Any
    ) -> Stream[dict[str, Any]]:
        """Run the graph and yield LangChain's v2 event dicts, with `on_node_start`, `_end` and `_error` added."""
        if version != "v2":
            raise ConfigurationError(f"version {version!r} is not supported; use 'v2'")
        given = _context_only(kwargs)
        return self.stream(lambda emit: self.run(input, config, emit=emit, **given), v2_event)

    def stream(self, start: Any, view: Any, **options: Any) -> Stream[Any]:
        """Drive a run behind a channel and show its events as `view` gives them."""
        options.setdefault("finish", getattr(view, "finish", None))
        return _ReportingStream(self, start, view, may_run_ahead=runs_ahead, stamp=number, **options)

    async def run(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        emit: Emit | None = None,
        run_id: str | None = None,
        deadline: float | None = None,
        instructions: str | None = None,
        on_state: Callable[[GraphState], None] | None = None,
        journal: Journal | None = None,
        history: Sequence[Any] = (),
        gate: ToolGate | None = None,
        spent: Spent | None = None,
        inside: Inside | None = None,
        answer: KnownAnswer | None = None,
        compaction: ContextCompaction | None = None,
        guards: RunChecks | None = None,
    ) -> RunResult:
        """Run the graph once and report to `emit`: the one way in which every other method runs it.

        With a `journal` the run is written down and may pause; when it holds an earlier leg of the run, the run goes
        on and `input` is not looked at. `history` comes before the input, and is not written down again. With `inside`
        the run is a part of another one: its rows are in that one's log, and its pauses are that one's pauses. An
        `answer` that is known already ends the run in place of the graph.
        """
        if self._checked is not self.graph._version:
            self._check_graph()
        if inside is not None:
            journal = inside.journal
            # What needs approval in the outer run needs it here too: a peer is no way around it.
            gate = joined_gates(gate, inside.gate)
        if journal is None or inside is not None:
            messages, values = _read_input(input)
            if context:
                values.update(context)
            if history:
                messages = repair_pairs([*history, *messages], keep_owed=True)
        else:
            messages, values = _recorded_input(journal, input, context, history)
        quiet = False
        if emit is not None:
            outer = run_scope.get() if inside is not None else None
            quiet = outer.quiet if outer is not None else getattr(emit, "quiet", False)
            if self.agent_id:
                emit = signed(emit, self.agent_id)
        run = self._begin(messages, values, config, emit, run_id, deadline, instructions, journal, gate, compaction)
        if guards is not None:
            run.context.guards = guards
            run.context.gate = joined_gates(guards.gate, run.context.gate)
        if on_state is not None:
            on_state(run.state)
        run_context = run.context
        run_context.quiet = quiet
        if inside is not None:
            run_context.outer_frame, run_context.path = inside.frame, inside.path
        elif journal is not None:
            journal.note(run.state.messages)
        if spent is not None:
            run_context.spent = spent
        token = run_scope.set(run_context)
        try:
            if emit is not None:
                await emit(RunStarted(self.graph.name, run_id=run_context.run_id, path=run_context.path))
            await (traverse(run) if answer is None else replay(run, answer))
            result = finish(run)
            self._remember(result.report)
            if emit is not None:
                await emit(RunFinished(result.report, run_id=run_context.run_id, path=run_context.path))
            return result
        except GraphExecutionError as error:
            self._blame(run, error)
            raise
        except Interrupted as pause:
            if inside is not None:
                raise
            return await self._pause(run, pause)
        except LeavesRun as signal:
            if inside is not None:
                raise
            self._remember(run.report(str(signal.error)))
            raise signal.error from signal.error.__cause__
        except BaseException as error:
            self._remember(run.report(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__))
            raise
        finally:
            run_scope.reset(token)
            if inside is not None:
                inside.usage.add(run_context.usage)

    def _begin(
        self,
        messages: list[Any],
        context: dict[str, Any],
        config: Mapping[str, Any] | None,
        emit: Emit | None,
        run_id: str | None,
        deadline: float | None,
        instructions: str | None,
        journal: Journal | None = None,
        gate: ToolGate | None = None,
        compaction: ContextCompaction | None = None,
    ) -> GraphRun:
        caller_config = dict(config) if config else None
        node_context = NodeContext(
            self.model,
            self.tools,
            self.hooks,
            self._limits,
            run_id=run_id,
            emit=emit,
            deadline=deadline,
            caller_config=caller_config,
            tool_summary=self._tool_summary,
            trace=self._trace,
            instructions=self._instructions if instructions is None else instructions,
            prepared=self._prepared if instructions is None and compaction is None else None,
            human_handler=self._human_handler,
            lightweight_model=self._lightweight_model,
            compaction=self._compaction if compaction is None else compaction,
            journal=journal,
            gate=joined_gates(gate, self._gate),
            tool_selector=self._tool_selector,
        )
        node_context.agent_id = self.agent_id
        if caller_config is None:
            node_config: dict[str, Any] = {"configurable": {"graphwright": node_context}}
        else:
            given = caller_config.get("configurable") or {}
            node_config = {**caller_config, "configurable": {**given, "graphwright": node_context}}
        return GraphRun(
            GraphState.of_run(messages, context, self.graph.copy()),
            node_context,
            node_config,
        )

    async def _pause(self, run: GraphRun, pause: Interrupted) -> RunResult:
        journal = run.context.journal
        assert journal is not None
        await journal.flush()
        result = RunResult.paused(run, pause.pending)
        self._remember(result.report)
        return result

    def _check_graph(self) -> None:
        version = self.graph._version
        problems = _topology.errors(self.graph)
        if problems:
            raise GraphInvalidError(self.graph.name, problems)
        for finding in _topology.findings(self.graph):
            logger.warning("graph %r: %s", self.graph.name, finding)
        self._checked = version

    def _remember(self, report: ExecutionReport) -> None:
        self._latest = report
        _last_run.set((self._self, report))

    def _blame(self, run: GraphRun, error: GraphExecutionError) -> None:
        error.report = run.report(error.error)
        error.messages = run.state.messages
        self._remember(error.report)


class _ReportingStream(Stream[Any]):
    """A stream whose reader finds the run's report at `engine.last_report` afterwards."""

    def __init__(self, engine: PromptGraphEngine, start: Any, view: Any, **options: Any) -> None:
        super().__init__(start, view, **options)
        self._engine = engine

    def _end(self, task: Any) -> None:
        super()._end(task)
        result = None if task.cancelled() or task.exception() is not None else task.result()
        report = getattr(result, "report", None) or getattr(self._error, "report", None)
        if report is not None:
            self._engine._remember(report)


class ValuesView:
    """Shows the conversation after every node of the outer graph that went well, and at the end of the run."""

    def __init__(self) -> None:
        self._shown = -1

    def __call__(self, event: RunEvent) -> Iterable[dict[str, Any]]:
        """Return the chunk of one event, if it has one."""
        if isinstance(event, NodeFinished) and not event.path:
            self._shown = len(event.messages)
            return [{"messages": list(event.messages)}]
        return ()

    def finish(self, result: RunResult) -> Iterable[dict[str, Any]]:
        """Return a last chunk where the end of the run added the reply, or the run paused."""
        if result.status == "paused":
            return [dict(result)]
        return [] if len(result["messages"]) == self._shown else [{"messages": list(result["messages"])}]


def _context_only(kwargs: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(kwargs) - {"context"})
    if unknown:
        raise ConfigurationError(f"unknown keyword {', '.join(map(repr, unknown))}; the only one is 'context'")
    return kwargs


def _read_input(input: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the conversation of an input, fit for a provider, and the context that came with it."""
    context: dict[str, Any] = {}
    if type(input) is not str and isinstance(input, (dict, Mapping)) and "messages" in input:
        if len(input) > 1:
            unknown = sorted(str(key) for key in input if key not in ("messages", "context"))
            if unknown:
                named = ", ".join(map(repr, unknown))
                raise ConfigurationError(f"unknown input key {named}; use 'messages' and 'context'")
            context = dict(input.get("context") or {})
        messages = as_messages(input["messages"])
    else:
        messages = as_messages(input)
    if len(messages) == 1 and messages[0].type == "human":
        return messages, context
    messages = repair_pairs(messages, keep_owed=True)
    if not any(message.type == "human" for message in messages):
        raise ConfigurationError("the input has no user message; add one with the question")
    return messages, context


def _recorded_input(
    journal: Journal, input: Any, context: Mapping[str, Any] | None, history: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the conversation and the context of a run with a log: what the log has, else the input, now written."""
    row = journal.find("input", "")
    if row is None:
        messages, values = _read_input(input)
        if context:
            values.update(context)
        kept: dict[str, Any] = {"m": messages[:]}
        if values:
            kept["c"] = copied(values)
        journal.put("input", "", "", kept)
    else:
        messages, values = list(row["m"]), copied(row.get("c", {}))
    if history:
        messages = repair_pairs([*history, *messages], keep_owed=True)
    return messages, values


def _check_at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigurationError(f"{name} is {value!r}; give a whole number of at least {least}")
