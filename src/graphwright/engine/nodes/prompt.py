"""The node that asks a model: prepare, ask, run the tools it calls, check what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine._transition import ANSWER_RETRY, TOOL_LOOP
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.compaction import SCOPES, ContextCompaction
from graphwright.engine.journal import AnswerRefused
from graphwright.engine.nodes._answer import Answer, check_answer, read_answer
from graphwright.engine.nodes._binding import NodeRun, begin_late_view, begin_run
from graphwright.engine.nodes._model_call import ask, mark_checked, provider_view
from graphwright.engine.nodes._prompt_parts import system_text
from graphwright.engine.nodes.tool_turn import cancelled_results, owed_calls, run_calls
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import Interrupted
from graphwright.messages import AIMessage, SystemMessage
from graphwright.models.base import ModelReply
from graphwright.tools import as_tools
from graphwright.types import ToolCall, ToolResult

__all__ = ["PromptNode"]

_SUMMARIES = (None, "off", "names", "full")


class PromptNode(BaseNode):
    """A reasoning step: one model call a visit, with the tool calls that the model asks for.

    While the model calls tools, the engine runs the node again, so that the model sees their results. `temperature`
    and `max_tokens` default to None, the model's own: many models refuse values that others take.
    """

    node_type = "prompt"
    reenterable = True
    keeps_messages = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        blocks: Iterable[Any] | None = None,
        strategy: Any = None,
        perspective: Any = None,
        tools: Iterable[Any] | None = None,
        tool_choice: str = "auto",
        inject_tools: bool = False,
        tool_summary: str | None = None,
        output_schema: Any = None,
        output_retries: int = 1,
        guards: Iterable[Any] | None = None,
        model_override: Any = None,
        context_layers: Mapping[str, int] | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        input_keys: Iterable[str] | None = None,
        output_key: str | None = None,
        inherit_context_from: str | None = None,
        preprocessor: Callable[..., Any] | None = None,
        postprocessor: Callable[..., Any] | None = None,
        include_observations: bool = True,
        include_plan: bool = True,
        include_reflections: bool = True,
        inherit_instructions: bool = True,
        context_scope: str = "full",
        auto_ledger_after: int | None = None,
        compaction: Any = None,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        `output_retries` is how often the model is told that its answer does not fit `output_schema`.
        `context_scope` is how much of the conversation the model sees: `"full"`, `"auto"` (all, compacted once the
        tool loop is long; the default where `compaction` or `auto_ledger_after` is given), `"ledger"` or `"scoped"`.
        `inherit_instructions=False` keeps the instructions of the agent away from this step.

        Raises:
            ConfigurationError: a value does not fit; the message names it.
        """
        super().__init__(name, **base)
        if inject_tools:
            self.flags = self.flags | {NodeFlag.INJECT_TOOLS}
        if tool_summary not in _SUMMARIES:
            raise ConfigurationError(
                f"tool_summary {tool_summary!r} of node {name!r} is unknown; use 'off', 'names' or 'full'"
            )
        if context_scope not in SCOPES:
            raise ConfigurationError(
                f"context_scope {context_scope!r} of node {name!r} is unknown; use one of {', '.join(SCOPES)}"
            )
        settings = None if compaction is None else ContextCompaction.coerce(compaction)
        if context_scope == "full" and (auto_ledger_after is not None or (settings is not None and settings.enabled)):
            context_scope = "auto"  # settings for compaction ask for it
        if auto_ledger_after is not None:
            ContextCompaction(after_tool_results=auto_ledger_after)  # refuses what is no number of results
        self.blocks = list(blocks or ())
        for block in self.blocks:
            if not isinstance(block, str) and not callable(getattr(block, "render", None)):
                raise ConfigurationError(
                    f"block {block!r} of node {name!r} has no render(context); give a text or a block"
                )
        if strategy is not None and not callable(getattr(strategy, "wrap", None)):
            raise ConfigurationError(f"strategy {strategy!r} of node {name!r} has no wrap(text, context)")
        for what, function in (("preprocessor", preprocessor), ("postprocessor", postprocessor)):
            if function is not None and not callable(function):
                raise ConfigurationError(f"{what} {function!r} of node {name!r} is not callable")
        self.strategy = strategy
        self.perspective = perspective
        self.tools = as_tools(tools or ())
        self.tool_choice = tool_choice
        self.tool_summary = tool_summary
        self.output_schema = output_schema
        self.output_retries = output_retries
        self.guards = list(guards or ())
        self.model_override = model_override
        self.context_layers = dict(context_layers or {})
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.input_keys = list(input_keys or ())
        self.output_key = output_key
        self.inherit_context_from = inherit_context_from
        self.preprocessor = preprocessor
        self.postprocessor = postprocessor
        self.include_observations = include_observations
        self.include_plan = include_plan
        self.include_reflections = include_reflections
        self.inherit_instructions = inherit_instructions
        self.context_scope = context_scope
        self.auto_ledger_after = auto_ledger_after
        self.compaction = settings

    @property
    def inject_tools(self) -> bool:
        """Whether this node also gets the tools of the engine."""
        return NodeFlag.INJECT_TOOLS in self.flags

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PromptNode:
        """Return the node that a dict of the constructor's keywords describes.

        Raises:
            ConfigurationError: a key is unknown, or a value does not fit.
        """
        from graphwright.engine.nodes._config import known_keywords

        unknown = sorted(set(config) - known_keywords(cls))
        if unknown:
            raise ConfigurationError(f"unknown key {', '.join(map(repr, unknown))} in the config of a {cls.__name__}")
        if not config.get("name"):
            raise ConfigurationError(f"the config of a {cls.__name__} has no 'name'")
        return cls(**config)

    def action_targets(self) -> set[str]:
        """Return the nodes that an answer of the schema can name as the target of a graph action."""
        if self.output_schema is None:
            return set()
        from graphwright.engine.answer_schema import AnswerSchema

        target = AnswerSchema(self.output_schema).json_schema.get("properties", {}).get("_target", {})
        named = target.get("enum", [target.get("const")])
        return {name for name in named if isinstance(name, str)}

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run one visit: answer what the conversation still owes, else ask the model and run what it calls."""
        context = context_of(config)
        if self.preprocessor is not None:
            changed = await call_maybe_async(self.preprocessor, state, config)
            if isinstance(changed, GraphState) and changed is not state:
                state.__dict__.update(changed.__dict__)
        run = context.scratch.get(self)
        if run is None:
            run = context.scratch[self] = begin_run(self, context, state)
        if context.tool_selector is not None and not run.has_offer:
            from graphwright.engine.nodes._tool_offer import offer_tools

            run.offer = await offer_tools(self, run.binding, context, state)
            run.has_offer = True
        result = NodeResult(self.name, "prompt")
        if state.iteration <= 1 and state.messages[-1].type != "human" and (owed := owed_calls(state.messages)):
            await self._answer_calls(owed, None, run, state, context, result)
            return result
        if not run.looping:
            self._enter(run, state, result)
        view = provider_view(run.system, state, run.view)
        if run.view is not None and run.view.changed and context.emit is not None:
            await context.emit(run.view.event(state, run_id=context.run_id, path=context.path))
        started = perf_counter()
        reply = await ask(self, run, view, context)
        result.llm_duration_ms = (perf_counter() - started) * 1000
        usage = reply.usage
        if usage is not None:
            context.usage.add(usage)
            result.prompt_tokens = usage.input_tokens or 0
            result.completion_tokens = usage.output_tokens or 0
            result.total_tokens = usage.total_tokens or 0
        result.raw_output = reply.text
        if reply.calls and not (run.binding.answer_tool and self._is_answer_call(run, reply)):
            await self._answer_calls(reply.calls, reply.message, run, state, context, result)
            return result
        run.looping = False
        if self._answers_plainly and reply.text and reply.refusal is None and not reply.text.isspace():
            result.output = reply.text
            self._add_answer(reply.message, state, result)
            return result
        answer = read_answer(self, run, reply)
        if answer.correction:
            self._ask_again(answer, run, state, result)
            return result
        await self._conclude(answer, state, config, context, result)
        return result

    @property
    def _answers_plainly(self) -> bool:
        """Whether a text that the model gives is the answer as it stands."""
        return self.output_schema is None and not self.guards and self.strategy is None and self.postprocessor is None

    def _enter(self, run: NodeRun, state: GraphState, result: NodeResult) -> None:
        """Prepare for the visits of one tool loop: the system text stays the same in all of them."""
        run.tools_used = False
        run.corrections = 0
        if run.view is not None:
            run.view.enter()
        binding = run.binding
        if binding.system_is_fixed and not state.has_notes:
            run.system = binding.system
            return
        text = system_text(self, binding, state, result)
        run.system = SystemMessage(content=text) if text else None

    def _is_answer_call(self, run: NodeRun, reply: ModelReply) -> bool:
        return len(reply.calls) == 1 and reply.calls[0].name == run.binding.answer_tool

    async def _answer_calls(
        self,
        calls: list[ToolCall],
        message: AIMessage | None,
        run: NodeRun,
        state: GraphState,
        context: NodeContext,
        result: NodeResult,
    ) -> None:
        started = perf_counter()
        added: list[Any] = [] if message is None else [message]
        finished: list[ToolResult] = []
        try:
            results = await run_calls(self, calls, run, state, context, finished)
        except (Interrupted, AnswerRefused):
            raise  # the visit is made again when the run goes on
        except BaseException:
            state.messages.extend([*added, *cancelled_results(calls, finished)])
            raise
        result.tool_duration_ms = (perf_counter() - started) * 1000
        records = result.tool_calls = []
        for answered in results:
            added.append(answered.message)
            records.append(answered.record())
            if not answered.success:
                result.tool_calls_failed += 1
            if answered.reused:
                result.tool_calls_deduplicated += 1
            state.add_observation(
                answered.call.name, answered.message.content, answered.args, answered.success, answered.duration_ms
            )
        state.messages.extend(added)
        mark_checked(state)
        result.messages_added = added
        result.transition_reason = TOOL_LOOP
        run.looping = run.tools_used = True
        if run.view is None and run.binding.compaction is not None:
            begin_late_view(self, run, state)

    def _ask_again(self, answer: Answer, run: NodeRun, state: GraphState, result: NodeResult) -> None:
        """Tell the model what does not fit, and let the engine run the node again."""
        run.corrections += 1
        run.looping = True
        state.messages.extend(answer.correction)
        result.messages_added = answer.correction
        result.transition_reason = ANSWER_RETRY

    async def _conclude(
        self, answer: Answer, state: GraphState, config: Any, context: NodeContext, result: NodeResult
    ) -> None:
        result.output = answer.output
        if self.strategy is not None and callable(getattr(self.strategy, "parse", None)):
            parsed = self.strategy.parse(result.raw_output, state.context)
            result.output = result.output if parsed is None else parsed
        if self.postprocessor is not None:
            changed = await call_maybe_async(self.postprocessor, result.output, state, config)
            result.output = result.output if changed is None else changed
        message = answer.message
        if self.guards:
            message = await check_answer(self, answer, context, result)
        if result.error is not None:
            state.context[f"{self.name}_output"] = result.raw_output
            return
        self._add_answer(message, state, result)

    def _add_answer(self, message: AIMessage, state: GraphState, result: NodeResult) -> None:
        state.context[f"{self.name}_output"] = result.raw_output
        if self.output_key:
            state.context[self.output_key] = result.output
        state.messages.append(message)
        state._checked = len(state.messages)
        result.messages_added = [message]
