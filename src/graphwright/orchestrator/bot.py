"""The autonomous agent: it pursues a goal on a thread, pauses for people, and can be stopped."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, cast

from graphwright._internal.ids import new_run_id
from graphwright._internal.sync import run_sync
from graphwright.caller import CallerContext, calling_as
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.result import RunResult
from graphwright.exceptions import ConfigurationError, GraphExecutionError, GraphIterationLimitError, RunAbortedError
from graphwright.messages import HumanMessage
from graphwright.models import NO_RETRY, call_model
from graphwright.models.base import ModelRequest
from graphwright.orchestrator.build import bot_setup
from graphwright.orchestrator.goal import checked_mode, checked_thread, given_texts, goal_messages
from graphwright.orchestrator.graph import bot_nodes, topology
from graphwright.orchestrator.graph_view import BotGraph
from graphwright.orchestrator.guards import evaluate_io_guards
from graphwright.orchestrator.interfaces import IOrchestratorBot
from graphwright.orchestrator.outcome import response_of, visits_in_rows, visits_of
from graphwright.orchestrator.questions import check_answers
from graphwright.orchestrator.response import BotResponse, RunStatus
from graphwright.orchestrator.resuming import Armed
from graphwright.orchestrator.run import BotRun, BotStream
from graphwright.orchestrator.saver import as_thread_log
from graphwright.runtime import (
    NOTHING,
    Durability,
    Resume,
    RunRequest,
    Watched,
    abandon_run,
    build_stack,
    watch_options,
)
from graphwright.usage import Usage

__all__ = ["OrchestratorBot"]

REJECTED = "This request was not accepted: {reason}"


class OrchestratorBot(Watched, IOrchestratorBot):
    """An agent that plans, calls tools, asks, checks itself, and answers a goal.

    One bot serves any number of threads at once. Threads, with what they wait for, are in the run log.
    """

    def __init__(
        self,
        strong_model: Any,
        fast_model: Any = None,
        instructions: str = "",
        tools: Iterable[Any] | None = None,
        memory_path: str = "./memory",
        risk_threshold: int | None = None,
        max_retries: int = 3,
        code_model: Any = None,
        vision_model: Any = None,
        logger: logging.Logger | None = None,
        prompts: Any = None,
        checkpointer: Any = None,
        enable_user_questions: bool = False,
        enable_planning: bool = False,
        skills: Sequence[Any] | None = None,
        skills_dir: str | None = None,
        skills_eager: bool = False,
        max_parallel_tools: int = 8,
        recursion_limit: int = 50,
        tool_timeout_s: float | None = 120.0,
        enable_prompt_cache: bool = True,
        enable_compaction: bool = False,
        compaction_threshold_tokens: int = 60000,
        compaction_keep_messages: int = 10,
        enable_verification: bool = False,
        enable_memory_writeback: bool = False,
        tool_guards: Sequence[Any] | None = None,
        prohibited: Sequence[str] | None = None,
        injection_hardening: bool = True,
        input_guards: Sequence[Any] | None = None,
        output_guards: Sequence[Any] | None = None,
        output_guard_action: str = "annotate",
        untrusted_tool_outputs: Sequence[str] | None = None,
        *,
        verification_on_error: str = "accept",
        memory_scope: str = "caller",
        buffer_output: bool = True,
        approval_timeout_s: float | None = None,
        on_busy: str = "refuse",
        on_paused: str = "refuse",
        hooks: Iterable[Any] | None = None,
        observe: Any = None,
        events: Any = None,
    ) -> None:
        """Build a bot.

        `strong_model` and `fast_model` are language-model wrappers, chat models, or strings such as
        `"openai:gpt-5-mini"`. `max_retries`, `code_model` and `prompts` are taken and have no effect. `checkpointer`
        is a run log, a path, True for the default file, a LangGraph saver, or None for memory. `recursion_limit` is
        the most node executions of a run, `tool_timeout_s` the seconds a call may take, None for no limit.

        `on_busy` says what a run does when another is at work on its thread (`"refuse"` or `"wait"`), `on_paused`
        what a new goal does on a thread that waits for answers (`"refuse"` or `"abandon"`). `approval_timeout_s` is
        how long an approval can be given. With `buffer_output=False` text is shown before output guards have seen it.

        `observe` is True, an `ObservabilityConfig` or a dict of its fields: runs are recorded in `bot.collector`.
        `events` is an `EventNotifier`; `aclose` delivers what it holds.

        Raises:
            ConfigurationError: an argument does not fit; the message names it.
        """
        setup = bot_setup(
            strong_model=strong_model,
            fast_model=fast_model,
            vision_model=vision_model,
            instructions=instructions,
            tools=tools,
            memory_path=memory_path,
            memory_scope=memory_scope,
            memory_writeback=enable_memory_writeback,
            risk_threshold=risk_threshold,
            logger=logger,
            questions=enable_user_questions,
            planning=enable_planning,
            skills=skills,
            skills_dir=skills_dir,
            skills_eager=skills_eager,
            max_parallel_tools=max_parallel_tools,
            tool_timeout=tool_timeout_s,
            prompt_cache=enable_prompt_cache,
            compaction=enable_compaction,
            compaction_threshold=compaction_threshold_tokens,
            compaction_keep=compaction_keep_messages,
            verification=enable_verification,
            verification_on_error=verification_on_error,
            tool_guards=tool_guards,
            prohibited=prohibited,
            hardening=injection_hardening,
            input_guards=input_guards,
            output_guards=output_guards,
            output_guard_action=output_guard_action,
            buffer_output=buffer_output,
            untrusted=untrusted_tool_outputs,
            approval_timeout=approval_timeout_s,
        )
        if isinstance(recursion_limit, bool) or not isinstance(recursion_limit, int) or recursion_limit < 1:
            raise ConfigurationError(f"recursion_limit is {recursion_limit!r}; give a whole number of at least 1")
        for name, value, known in (
            ("on_busy", on_busy, ("refuse", "wait")),
            ("on_paused", on_paused, ("refuse", "abandon")),
        ):
            if value not in known:
                raise ConfigurationError(f"{name} is {value!r}; use {' or '.join(map(repr, known))}")
        self._setup = setup
        self._writes_memory = enable_memory_writeback
        self.strong_model, self.fast_model, self.vision_model = strong_model, fast_model or strong_model, vision_model
        self.model = strong_model
        self.instructions = instructions
        self.tools = list(setup.tools)
        self.skills = list(setup.skills)
        self.tool_guards, self.input_guards = list(setup.guards), list(setup.input_guards)
        self.output_guards = list(setup.output_guards)
        self.recursion_limit = recursion_limit
        self.logger = setup.logger
        self.checkpointer = as_thread_log(checkpointer)
        self.graph = BotGraph(self.checkpointer, bot_nodes(setup))
        self._topology = topology(list(self.graph.nodes))
        self._engine = PromptGraphEngine(
            self.graph,
            setup.strong,
            max_iterations=recursion_limit,
            max_node_iterations=None,
            allow_self_modification=False,
            hooks=hooks,
        )
        self._durability = Durability(
            log=self.checkpointer,
            owns_log=self.checkpointer is not checkpointer,
            on_busy=cast("Any", on_busy),
            on_paused=cast("Any", on_paused),
            keeps_conversation=True,
            checkers={"question": lambda item, answer: check_answers(item.value["questions"], answer)},
            metadata=lambda request: dict(request.metadata),
        )
        self._handler = build_stack(
            self._core,
            durability=self._durability,
            graph=lambda: self.graph,
            watching=self._watched_by(watch_options(observe=observe, events=events), self._engine),
        )
        self._armed = Armed()
        self._streams: list[weakref.ref[BotStream]] = []

    def get_graph_topology(self) -> dict[str, Any]:
        """Return the layout of the graph: `entry`, `nodes`, and `edges` with `source`, `target` and `conditional`."""
        return {
            "entry": self._topology["entry"],
            "nodes": list(self._topology["nodes"]),
            "edges": [dict(edge) for edge in self._topology["edges"]],
        }

    async def arun(
        self,
        goal: str,
        context: str = "",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        mode: str = "auto",
        *,
        caller: CallerContext | None = None,
    ) -> BotResponse:
        """Pursue a goal and return what came of it, on the thread `thread_id` or a new one.

        A run that waits for approval or answers returns with the status `paused`; go on with it by `aresume`, by
        `set_resume_command` and the stream, or by a handle.

        Raises:
            ConfigurationError: the goal, the mode or an image does not fit.
            RunPausedError: the thread has a run that is paused, and `on_paused` is `"refuse"`.
            ThreadBusy: another run is at work on the thread.
            SessionAccessDenied: the thread belongs to another caller.
        """
        request = self._request(goal, context, thread_id, images, history, mode, caller)
        self._armed.drop(request.thread_id)
        return await self._respond(request)

    def run(
        self,
        goal: str,
        context: str = "",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        mode: str = "auto",
        *,
        caller: CallerContext | None = None,
    ) -> BotResponse:
        """Do what `arun` does and wait for it, also inside a running event loop, which waits too."""
        response = run_sync(self.arun(goal, context, thread_id, images, history, mode, caller=caller))
        self._note_pause(response)
        return response

    async def aresume(
        self, thread_id: str, answers: Any = NOTHING, *, caller: CallerContext | None = None, by: str | None = None
    ) -> BotResponse:
        """Go on with the run of a thread that is paused or was cut off; `answers` are those of `set_resume_command`.

        Raises:
            InterruptError: the thread waits for nothing of this, or an answer does not fit; nothing has run.
        """
        self._armed.drop(thread_id)
        return await self._respond(self._resuming(thread_id, answers, caller, by))

    def start(
        self,
        goal: str | None,
        context: str = "",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        mode: str = "auto",
        *,
        caller: CallerContext | None = None,
        answers: Any = NOTHING,
    ) -> BotRun:
        """Start a run in a task of its own and return its handle: `events()`, `result()`, `answer()`, `abort()`.

        Without a goal, go on with the run of the thread.
        """
        if goal is None:
            request = self._resuming(self._needed(thread_id), answers, caller, None)
        else:
            request = self._request(goal, context, thread_id, images, history, mode, caller)
        self._armed.drop(request.thread_id)
        return BotRun(self, request)

    def astream_events(
        self,
        goal: str | None,
        mode: str = "ask",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        context: str = "",
        *,
        caller: CallerContext | None = None,
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """Pursue a goal and yield `(stream_mode, payload)` pairs on the way.

        The modes are `"graph"` (the layout first, then one `node_invoked` a node), `"messages"` (each text once) and
        `"updates"` (what a node changed, and `__interrupt__` when the run pauses). Without a goal the run of the
        thread goes on, with what `set_resume_command` was given. Leaving the iteration ends the run.

        Raises:
            GraphExecutionError: the run has no answer; `error.response` holds what was done.
            InterruptError: an answer does not fit; the run waits as before.
        """
        if not goal:
            answers = self._armed.take(thread_id)
            if answers is NOTHING and goal is not None:
                raise ConfigurationError(
                    "goal is '' and no answers were given; give a goal, or None to go on with the run of a thread"
                )
            thread_id = thread_id or self._armed.last_thread()
            request = self._resuming(self._needed(thread_id), answers, caller, None)
        else:
            request = self._request(goal, context, thread_id, images, history, mode, caller)
            self._armed.drop(request.thread_id)
        stream = BotStream(self, request, is_new=bool(goal))
        self._streams = [*(known for known in self._streams if known() is not None), weakref.ref(stream)]
        return cast("AsyncGenerator[tuple[str, Any], None]", stream)

    def set_resume_command(self, resume_data: Any, *, thread_id: str | None = None) -> None:
        """Keep the answer with which the next `astream_events(None, thread_id=...)` goes on.

        It is `True` or `False`, a decision with `args`, `feedback` or `always`, the answers to questions as
        `{question id: answer}`, or `{interrupt id: answer}` for several at once. It belongs to `thread_id`; without
        one, to the thread whose interrupt the calling task has just seen, else to the calling task.
        """
        self._armed.set(resume_data, thread_id)

    def abort(self, *, drain: bool = False) -> None:
        """End the newest stream that is open, wherever it is: its model call, its tools and everything below.

        Its last event is `("graph", {"type": "aborted", ...})`. With `drain` the node that is at work ends first. Safe
        from any thread. Nothing happens when no stream is open; runs of `arun` and `start` are not touched.
        """
        for known in reversed(self._streams):
            stream = known()
            if stream is not None:
                stream.abort(drain=drain)
                return

    async def abandon(self, thread_id: str, *, caller: CallerContext | None = None) -> None:
        """Give up the run of a thread that is paused or was cut off, so that the thread takes a new goal."""
        self._armed.drop(thread_id)
        with calling_as(caller):
            await abandon_run(self._durability, Resume(thread_id=thread_id))

    async def a_prewarm(self) -> None:
        """Open the connection to the model by a call of one word; an error is logged and not raised."""
        try:
            hello = ModelRequest(messages=[HumanMessage(content="hi")], max_tokens=1)
            await call_model(self._setup.strong, hello, retry=NO_RETRY)
        except Exception:  # the first real call will tell what is wrong
            self.logger.warning("the model could not be reached ahead of time", exc_info=True)

    async def aclose(self) -> None:
        """Release what the bot holds, and bring what was recorded of its runs to its place."""
        try:
            if self._durability.owns_log:
                await self.checkpointer.aclose()
        finally:
            await self._unwatch()

    # What follows is used by the handle and the stream of this package.

    def _closed(self, stream: BotStream) -> None:
        """Take a stream out of those that `abort` can end."""
        self._streams = [known for known in self._streams if known() not in (None, stream)]

    def _request(
        self,
        goal: Any,
        context: Any,
        thread_id: str | None,
        images: Sequence[Any] | None,
        history: Sequence[Any] | None,
        mode: str,
        caller: CallerContext | None,
    ) -> RunRequest:
        checked_mode(mode)
        checked_thread(thread_id)
        messages = goal_messages(goal, images, history)
        run_id = new_run_id()
        values: dict[str, Any] = {"goal": goal, "mode": mode}
        if context:
            values["given_context"] = str(context)
        thread = thread_id or run_id
        return RunRequest(
            messages,
            caller=caller,
            session_id=thread,
            context=values,
            run_id=run_id,
            thread_id=thread,
            metadata={"goal": goal, "mode": mode},
        )

    def _resuming(self, thread_id: str, answers: Any, caller: CallerContext | None, by: str | None) -> RunRequest:
        checked_thread(thread_id)
        resume = Resume(thread_id=thread_id, answers=answers, by=by)
        return RunRequest(None, caller=caller, session_id=thread_id, thread_id=thread_id, resume=resume)

    @staticmethod
    def _needed(thread_id: str | None) -> str:
        if not thread_id:
            raise ConfigurationError("thread_id is missing; without a goal, give the thread whose run goes on")
        return thread_id

    async def _respond(self, request: RunRequest) -> BotResponse:
        states: list[Any] = []
        request.on_state = states.append
        rejected = await self._rejected(request)
        if rejected is not None:
            return rejected
        try:
            result = await self._handler(request)
        except GraphExecutionError as error:
            return self.response_after(request, states, error)
        response = await self.response_for(request, states, result)
        self._note_pause(response)
        return response

    def _note_pause(self, response: BotResponse) -> None:
        """Let `set_resume_command` know what the calling task was shown."""
        if response.status == "paused":
            self._armed.saw_pause(response.session_id or "", [item["id"] for item in response.pending])

    async def response_for(self, request: RunRequest, states: Sequence[Any], result: RunResult) -> BotResponse:
        """Return the response of a run that ended well, or is paused."""
        if states:
            visits = visits_of(states[-1].node_history)
        else:
            visits = visits_in_rows(await self.checkpointer.rows(result.run_id))
        status = cast("RunStatus", result.status)
        return response_of(
            visits,
            status=status,
            run_id=result.run_id,
            thread_id=result.thread_id,
            goal=str(request.metadata.get("goal", "")),
            pending=result.pending,
            used_before=request.metadata.get("input_guard_usage"),
        )

    def response_after(self, request: RunRequest, states: Sequence[Any], error: BaseException) -> BotResponse:
        """Return the response of a run that has no answer."""
        status: RunStatus = "failed"
        if isinstance(error, GraphIterationLimitError):
            status = "limit"
        elif isinstance(error, (RunAbortedError, asyncio.CancelledError)):
            status = "aborted"
        reason = error.error if isinstance(error, GraphExecutionError) else str(error)
        return response_of(
            visits_of(states[-1].node_history) if states else [],
            status=status,
            run_id=request.run_id or "",
            thread_id=request.thread_id or "",
            goal=str(request.metadata.get("goal", "")),
            error=reason,
            limit=self.recursion_limit,
            used_before=request.metadata.get("input_guard_usage"),
        )

    async def _rejected(self, request: RunRequest) -> BotResponse | None:
        """Let the input guards look at everything that came with a new goal; return the refusal, if they refuse."""
        if request.resume is not None or not self._setup.input_guards:
            return None
        usage = Usage()
        for text in given_texts(request.input, request.context or {}):
            verdict = await evaluate_io_guards(self._setup.input_guards, text, stage="input", usage=usage)
            if not verdict.allowed:
                response = response_of(
                    [],
                    status="rejected",
                    run_id=request.run_id or "",
                    thread_id=request.thread_id or "",
                    goal=str(request.metadata.get("goal", "")),
                    error=REJECTED.format(reason=verdict.reason),
                    used_before=usage.as_dict(),
                )
                response["guard_events"] = [dict(event) for event in verdict.events]
                response["rejected_by"] = {"guard": verdict.guard, "reason": verdict.reason}
                return response
        if usage.total_tokens:
            # The judges of the input are a part of what the run costs.
            request.metadata = {**request.metadata, "input_guard_usage": usage.as_dict()}
        return None

    async def _core(self, request: RunRequest) -> RunResult:
        result = await self._engine.run(
            request.input,
            request.config,
            context=request.context,
            emit=request.emit,
            run_id=request.run_id,
            deadline=request.deadline,
            on_state=request.on_state,
            journal=request.journal,
            history=request.history,
            spent=request.spent,
        )
        if self._writes_memory and result.status == "completed":
            await self._remember(request, result)
        return result

    async def _remember(self, request: RunRequest, result: RunResult) -> None:
        assert self._setup.memory is not None
        try:
            await self._setup.memory.append(str(request.metadata.get("goal", "")), result.text)
        except Exception:  # the answer is there; that it is not remembered is logged
            self.logger.exception("the memory of run %s could not be written", result.run_id)
