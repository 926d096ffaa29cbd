"""The node that runs tools without asking a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright._internal.ids import new_call_id
from graphwright._internal.jsonio import dumps
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.journal import AnswerRefused
from graphwright.engine.nodes.tool_turn import cancelled_results, owed_calls, tool_run_of
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError, GraphwrightError
from graphwright.interrupts import Interrupted
from graphwright.messages import AIMessage, ToolMessage
from graphwright.run_events import ToolFinished, ToolStarted
from graphwright.tools import answer_calls, as_tools
from graphwright.tools.base import ToolRun
from graphwright.types import ToolCall, ToolResult

__all__ = ["ToolNode"]


class ToolNode(BaseNode):
    """Runs the calls of the last assistant message, or the one that `tool_selector` names.

    The calls of a turn run one after another, in order.
    """

    node_type = "tool"
    reenterable = True
    keeps_messages = True

    def __init__(
        self,
        name: str,
        *,
        tools: Iterable[Any] | None = None,
        validate_inputs: bool = True,
        deduplicate: bool = True,
        max_result_chars: int | None = 4000,
        tool_selector: Callable[[GraphState], Any] | None = None,
        inject_tools: bool = False,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        With `deduplicate`, equal calls of one turn run once and share the result, unless it is an error.
        `tool_selector(state)` returns `(tool name, arguments)`, or None for no call.
        """
        super().__init__(name, **base)
        if inject_tools:
            self.flags = self.flags | {NodeFlag.INJECT_TOOLS}
        if tool_selector is not None and not callable(tool_selector):
            raise ConfigurationError(f"tool_selector {tool_selector!r} of node {name!r} is not callable")
        if max_result_chars is not None and max_result_chars < 1:
            raise ConfigurationError(
                f"max_result_chars of node {name!r} is {max_result_chars!r}; give at least 1 or None"
            )
        self.tools = as_tools(tools or ())
        self.validate_inputs = validate_inputs
        self.deduplicate = deduplicate
        self.max_result_chars = max_result_chars
        self.tool_selector = tool_selector

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run the calls that are due."""
        context = context_of(config)
        result = NodeResult(self.name, "tool")
        added: list[Any] = []
        calls = await self._due(state, added, context)
        if not calls:
            return result
        tools = self.tools.merged(context.tools) if NodeFlag.INJECT_TOOLS in self.flags else self.tools
        settings = tool_run_of(
            self.name, state, context, validate=self.validate_inputs, max_result_chars=self.max_result_chars
        )
        started = perf_counter()
        done: dict[str, ToolResult] = {}
        finished: list[ToolResult] = []
        try:
            for index, call in enumerate(calls):
                finished.append(await self._answer(call, index, done, settings, tools, state, context, result))
        except (Interrupted, AnswerRefused):
            raise  # the visit is made again when the run goes on
        except BaseException:
            state.messages.extend([*added, *cancelled_results(calls, finished)])
            raise
        result.tool_duration_ms = (perf_counter() - started) * 1000
        for answered in finished:
            added.append(answered.message)
            result.tool_calls.append(answered.record())
            if not answered.success:
                result.tool_calls_failed += 1
            state.add_observation(
                answered.call.name, answered.message.content, answered.args, answered.success, answered.duration_ms
            )
        state.messages.extend(added)
        result.messages_added = added
        if self.tool_selector is not None:
            result.output = finished[0].message.content
        return result

    async def _due(self, state: GraphState, added: list[Any], context: NodeContext) -> list[ToolCall]:
        if self.tool_selector is None:
            return owed_calls(state.messages)
        frame = context.frame
        known = frame.journal.find("once", frame.path, "selected") if frame is not None else None
        call = ToolCall(*known["value"]) if known is not None else await self._select(state)
        if call is None:
            return []
        if frame is not None and known is None:
            frame.journal.put("once", frame.path, "selected", {"value": [call.id, call.name, call.args]})
        # The call is written into the conversation, so that its result has one to belong to.
        added.append(AIMessage(content="", tool_calls=[{"name": call.name, "args": call.args, "id": call.id}]))
        return [call]

    async def _select(self, state: GraphState) -> ToolCall | None:
        assert self.tool_selector is not None
        chosen = await call_maybe_async(self.tool_selector, state)
        if chosen is None:
            return None
        if not (isinstance(chosen, (tuple, list)) and len(chosen) == 2 and isinstance(chosen[1], dict)):
            raise GraphwrightError(
                f"tool_selector of node {self.name!r} returned {chosen!r}; return (tool name, arguments) or None"
            )
        return ToolCall(new_call_id(), str(chosen[0]), chosen[1])

    async def _answer(
        self,
        call: ToolCall,
        index: int,
        done: dict[str, ToolResult],
        settings: ToolRun,
        tools: Any,
        state: GraphState,
        context: Any,
        result: NodeResult,
    ) -> ToolResult:
        key = f"{call.name} {dumps(call.args)}"
        earlier = done.get(key) if self.deduplicate and not call.problem else None
        if earlier is None:
            answered = (await answer_calls([call], tools, settings, first_index=index))[0]
            if answered.success:
                done[key] = answered
            return answered
        reused = _reuse(earlier, call)
        result.tool_calls_deduplicated += 1
        await context.hooks.tool_reused(call.name, reused.args, reused.message.content, state)
        if settings.trace is not None:
            settings.trace(reused)
        if settings.emit is not None:
            run_id, path = settings.run_id, settings.path
            await settings.emit(ToolStarted(self.name, call, index, run_id=run_id, path=path))
            await settings.emit(ToolFinished(self.name, call, reused, index, run_id=run_id, path=path))
        return reused


def _reuse(earlier: ToolResult, call: ToolCall) -> ToolResult:
    message = ToolMessage(
        content=earlier.message.content, tool_call_id=call.id, name=call.name, artifact=earlier.message.artifact
    )
    return ToolResult(call, message, earlier.args, reused=True)
