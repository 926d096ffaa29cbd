"""The agent: every way of running its graph, as views of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import Stream
from graphwright._internal.optional import load
from graphwright._internal.sync import run_sync
from graphwright.agent._sessions import Sessions, caller_of
from graphwright.agent._stream_views import ToolsView
from graphwright.agent.stream_events import StreamEvent
from graphwright.caller import CallerContext, calling_as
from graphwright.conversations.base import AppendingStore
from graphwright.engine.answer_schema import AnswerSchema
from graphwright.engine.execution import PromptGraphEngine, RunResult, ValuesView
from graphwright.engine.graph import PromptGraph
from graphwright.engine.state import ExecutionReport
from graphwright.exceptions import (
    ConfigurationError,
    EmptyReplyError,
    GraphExecutionError,
    RunPausedError,
    ToolError,
)
from graphwright.messages import HumanMessage
from graphwright.runlog.base import RunLog
from graphwright.runtime import (
    NOTHING,
    CacheUse,
    Durability,
    Resume,
    Run,
    RunRequest,
    Turn,
    Watched,
    abandon_run,
    build_stack,
)

if TYPE_CHECKING:
    from graphwright.agent._sandboxing import SandboxUse
    from graphwright.agent._servers import ServerTools
    from graphwright.agent._shaping import Shaping
    from graphwright.identity import AgentIdentity
    from graphwright.mcp.client import MCPPool
    from graphwright.observability import Watch
    from graphwright.strategy import AdaptiveStrategyManager

__all__ = ["Agent"]


class Agent(Watched, Sessions):
    """An agent, as `build_agent` makes it. It serves any number of runs at once and keeps nothing of them."""

    provider: Any = None
    """The memory provider; `None` without memory."""

    identity: Any = None
    """Who the agent is; `None` without an identity."""

    adaptive_strategy: AdaptiveStrategyManager | None = None
    """What the agent learned from failed tool calls; `None` while it learns nothing."""

    def __init__(
        self,
        engine: PromptGraphEngine,
        *,
        max_seconds: float = 0,
        output_schema: AnswerSchema | None = None,
        durability: Durability | None = None,
        conversations: AppendingStore | None = None,
        max_messages: int = 0,
        servers: ServerTools | None = None,
        identity: AgentIdentity | None = None,
        cache: CacheUse | None = None,
        sandbox: SandboxUse | None = None,
        shaping: Shaping | None = None,
        watch: Watch | None = None,
        guards: Sequence[Any] = (),
    ) -> None:
        """Wrap an engine. Use `build_agent`, which checks what it is given."""
        self._engine = engine
        self._answer = output_schema
        self._durability = durability
        self._servers = servers
        if identity is not None:
            self.identity = identity
        self._conversations = conversations
        self._cache = cache
        self._sandbox = sandbox
        self._flows = shaping.flows if shaping is not None else None
        self._memories = shaping.memories if shaping is not None else None
        if self._memories is not None:
            self.provider = self._memories.provider
        self.adaptive_strategy = shaping.strategy if shaping is not None else None
        self._handler = build_stack(
            self._core,
            max_seconds=max_seconds,
            durability=durability,
            graph=lambda: engine.graph,
            store=conversations,
            max_messages=max_messages,
            shapers=shaping.layers if shaping is not None else (),
            cache=cache,
            guards=guards,
            watching=self._watched_by(watch, engine, asks_cache=cache is not None),
        )
        self._closed = False

    @property
    def graph(self) -> PromptGraph:
        """The graph that every run is a copy of."""
        return self._engine.graph

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self._engine.model.name if self._engine.model is not None else ""

    @property
    def tools(self) -> list[Any]:
        """The tools that the agent was given."""
        return list(self._engine.tools)

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools that the agent was given."""
        return list(self._engine.tools.names)

    @property
    def servers(self) -> MCPPool | None:
        """The MCP servers of the agent; `None` without any."""
        return self._servers.pool if self._servers is not None else None

    @property
    def max_iterations(self) -> int:
        """The most node executions of a run."""
        return self._engine.max_iterations

    @property
    def runlog(self) -> RunLog | None:
        """Where the runs are kept; `None` while they are not."""
        return self._durability.log if self._durability is not None else None

    @property
    def last_report(self) -> ExecutionReport | None:
        """The report of the run that this task awaited last, else of the one that ended last."""
        return self._engine.last_report

    async def ainvoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        caller: CallerContext | None = None,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> RunResult:
        """Run the agent and return `{"messages": [...]}`, with `text`, `output`, `report` and `usage` as attributes.

        `input` is `{"messages": [...]}`, a string, a message or a list of them. `caller` is who asks: without one, the
        caller of the run around this one is kept.

        Raises:
            GraphExecutionError: the run has no answer; the provider's exception is the `__cause__`.
            RunTimeoutError: the run took longer than `max_invocation_time`.
            ConfigurationError: the input is no conversation.
        """
        if kwargs or self._closed:
            self._check(kwargs)
        result: RunResult = await self._handler(RunRequest(input, config, caller, session_id, context))
        return result

    def invoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        caller: CallerContext | None = None,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> RunResult:
        """Do what `ainvoke` does and wait for it, also inside a running event loop (which waits too)."""
        return run_sync(self.ainvoke(input, config, caller=caller, session_id=session_id, context=context, **kwargs))

    def astream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        caller: CallerContext | None = None,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        resume: Resume | None = None,
        **kwargs: Any,
    ) -> Stream[dict[str, Any]]:
        """Run the agent and yield `{"messages": [...]}` after each step; the last equals what `ainvoke` returns.

        With `resume` the input is None, and a paused run goes on. Leaving the iteration ends the run. A cache is not
        asked.
        """
        self._check(kwargs, resume)
        request = RunRequest(input, config, caller, session_id, context, resume=resume, uses_cache=False)
        return self._stream(request, ValuesView())

    def astream_with_tools(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        caller: CallerContext | None = None,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        include_arguments: bool = True,
        tool_display_names: Mapping[str, str] | None = None,
        resume: Resume | None = None,
        **kwargs: Any,
    ) -> Stream[StreamEvent]:
        """Run the agent and yield tool calls, pieces of text and the end, as `graphwright.streaming` events.

        A run that pauses ends with an `InterruptEvent`; with `resume` the input is None, and it goes on. Leaving the
        iteration ends the run. A run without an answer yields an `ErrorEvent` and then raises.
        """
        self._check(kwargs, resume)
        view = ToolsView(include_arguments=include_arguments, display_names=tool_display_names)
        return self._stream(RunRequest(input, config, caller, session_id, context, resume=resume), view, fail=view.fail)

    def start(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        caller: CallerContext | None = None,
        session_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        resume: Resume | None = None,
    ) -> Run:
        """Start a run, or with `resume` go on with one, in a task of its own.

        Return its handle: `events()`, `result()`, `answer()` and `abort()`.
        """
        self._check({}, resume)
        return Run(self._handler, RunRequest(input, config, caller, session_id, context, resume=resume))

    async def resume(
        self,
        run: str,
        answers: Any = NOTHING,
        *,
        config: Mapping[str, Any] | None = None,
        caller: CallerContext | None = None,
        by: str | None = None,
        allow_changed_graph: bool = False,
    ) -> RunResult:
        """Go on with a run that is paused or was cut off, in this process or any other, and return its result.

        `run` is the run's id or its thread's, which is the session's where the run has one. `answers` is
        `{interrupt id: answer}`, or one answer for the first thing that is asked; a run that still waits for others
        is returned as paused. Leave `answers` out for a run that was cut off. `caller` has the isolation key of
        whoever began the run; `by` says who answered, for the log.

        Raises:
            InterruptError: there is no such run, it waits for nothing of this, or an answer does not fit. Nothing
                has run, and the run waits as before.
            SessionAccessDenied: the run belongs to somebody else.
            ThreadBusy: somebody is at work on it.
        """
        resume = Resume(run_id=run, answers=answers, by=by, allow_changed_graph=allow_changed_graph)
        self._check({}, resume)
        result: RunResult = await self._handler(RunRequest(None, config, caller, resume=resume))
        return result

    async def abandon(self, run: str, *, caller: CallerContext | None = None) -> None:
        """Give up a run that is paused or was cut off: the calls that it owes are answered as cancelled.

        Raises:
            InterruptError: there is no such run.
            SessionAccessDenied: the run belongs to somebody else.
        """
        resume = Resume(run_id=run)
        self._check({}, resume)
        assert self._durability is not None
        with calling_as(caller):
            await abandon_run(self._durability, resume)

    async def chat(
        self,
        message: str,
        *,
        session_id: str,
        user_id: str | None = None,
        caller: CallerContext | None = None,
        metadata: dict[str, Any] | None = None,
        system_prompt: str | None = None,
    ) -> str:
        """Send one message of a conversation and return the text of the answer.

        With a conversation store the session's history is read first, and what is said is kept before the answer is
        returned. A model that says nothing gives an empty text. `system_prompt` takes the place of the agent's
        instructions for this call.

        Raises:
            SessionAccessDenied: the session belongs to somebody else.
            StoreUnavailable: whose session it is could not be checked.
            RunPausedError: the run waits for answers; `resume` returns the reply.
        """
        try:
            result = await self._handler(
                self._turn(message, session_id, caller_of(user_id, caller), metadata, system_prompt)
            )
        except GraphExecutionError as error:
            if isinstance(error.__cause__, EmptyReplyError):
                return ""
            raise
        if result.status == "paused":
            raise RunPausedError(
                f"the run {result.run_id} is paused and waits for {len(result.pending)} answer(s); "
                "give them with agent.resume()",
                pending=result.pending,
                run_id=result.run_id,
                thread_id=result.thread_id,
            )
        return str(result.text)

    def chat_stream(
        self,
        message: str,
        *,
        session_id: str,
        user_id: str | None = None,
        caller: CallerContext | None = None,
        metadata: dict[str, Any] | None = None,
        system_prompt: str | None = None,
        include_arguments: bool = True,
        tool_display_names: Mapping[str, str] | None = None,
    ) -> Stream[StreamEvent]:
        """Send one message of a conversation, and yield the events of `astream_with_tools` while it is answered."""
        request = self._turn(message, session_id, caller_of(user_id, caller), metadata, system_prompt)
        view = ToolsView(include_arguments=include_arguments, display_names=tool_display_names)
        return self._stream(request, view, fail=view.fail)

    def _turn(
        self,
        message: Any,
        session_id: str,
        caller: CallerContext | None,
        metadata: dict[str, Any] | None,
        system_prompt: str | None,
    ) -> RunRequest:
        self._check({})
        if not isinstance(message, str):
            raise ConfigurationError(f"message is {message!r}; chat takes a text, ainvoke takes everything else")
        question = HumanMessage(content=message)
        if metadata and self._conversations is None:
            # Kept where no provider's adapter looks: it is for stores and observers.
            question.response_metadata = {"metadata": metadata}
        turn = Turn(session_id, metadata) if self._conversations is not None else None
        return RunRequest([question], None, caller, session_id, system_prompt=system_prompt, conversation=turn)

    def _kept(self) -> dict[str, Any]:
        cache = self._cache.cache if self._cache is not None else None
        return {
            **super()._kept(),
            "memory": self.provider,
            "cache": cache,
            "flows": self._flows,
            "lessons": self.adaptive_strategy,
            "observed": self.collector,
            "runlog": self.runlog,
        }

    def as_mcp(self, **options: Any) -> Any:
        """Return an MCP server that asks this agent; `options` are those of `graphwright.serve.mcp_server`."""
        return load("graphwright.serve.mcp:mcp_server")(self, **options)

    def as_a2a(self, **options: Any) -> Any:
        """Return an ASGI app that serves this agent by A2A; `options` are those of `graphwright.serve.a2a_app`."""
        return load("graphwright.serve.a2a:a2a_app")(self, **options)

    async def open(self) -> None:
        """Connect to the MCP servers; `build_agent` has done it. When it fails, the agent is shut down.

        Raises:
            MCPError: a server cannot be used.
        """
        if self._servers is None:
            return
        try:
            await self._servers.open()
        except BaseException:
            await self.shutdown()
            raise

    async def shutdown(self) -> None:
        """Release what the agent holds. Safe to call again; a run started later is refused."""
        self._closed = True
        try:
            await self._release()
        finally:
            await self._unwatch()

    async def _release(self) -> None:
        if self._memories is not None:
            await self._memories.close()
        if self.adaptive_strategy is not None:
            await self.adaptive_strategy.close()
        if self._servers is not None:
            await self._servers.close()
        if self._durability is not None and self._durability.owns_log:
            await self._durability.log.aclose()
        if self._cache is not None and self._cache.owns_cache:
            await self._cache.cache.close()
        if self._sandbox is not None and self._sandbox.owned:
            await self._sandbox.manager.cleanup()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown()

    def _stream(self, request: RunRequest, view: Any, **options: Any) -> Stream[Any]:
        async def run(emit: Any) -> RunResult:
            request.emit = emit
            result: RunResult = await self._handler(request)
            return result

        return self._engine.stream(run, view, **options)

    async def ask_inside(self, input: Any, config: Any, *, inside: Any, emit: Any) -> str:
        """Answer an agent of ours inside its run; used by the tools that ask peers."""
        self._check({})
        result = await self._handler(RunRequest(input, config, emit=emit, inside=inside))
        if result.status == "paused":
            raise ToolError(f"the agent is paused and waits for a person (run {result.run_id}); it gave no answer")
        return str(result.text)

    async def _core(self, request: RunRequest) -> RunResult:
        if self._servers is not None:
            await self._servers.refresh()
        result = await self._engine.run(
            request.input,
            request.config,
            context=request.context,
            emit=request.emit,
            run_id=request.run_id,
            deadline=request.deadline,
            instructions=request.system_prompt,
            compaction=request.compaction,
            on_state=request.on_state,
            journal=request.journal,
            history=request.history,
            gate=request.gate,
            spent=request.spent,
            inside=request.inside,
            answer=request.cached,
            guards=request.guards,
        )
        if self._answer is not None and result.status == "completed":
            result.output = self._answer.parse(result.output)
        return result

    def _check(self, kwargs: Mapping[str, Any], resume: Resume | None = None) -> None:
        if resume is not None and self._durability is None:
            raise ConfigurationError("this agent keeps no run log, so it has no runs to go on with; give it runlog=")
        if kwargs:
            unknown = ", ".join(map(repr, sorted(kwargs)))
            raise ConfigurationError(f"unknown keyword {unknown}; see the method's signature for those it takes")
        if self._closed:
            raise ConfigurationError("this agent was shut down; build a new one")
