"""Answer the tool calls of one turn for a node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._call_log import CallRecords
from graphwright.engine.base import NodeContext
from graphwright.engine.nodes._binding import NodeRun
from graphwright.engine.state import GraphState
from graphwright.messages import ToolMessage
from graphwright.models import calls_of
from graphwright.tools import answer_calls, joined_gates
from graphwright.tools.base import ToolHooks, ToolRun
from graphwright.types import ToolCall, ToolResult

if TYPE_CHECKING:
    from graphwright.engine.nodes.prompt import PromptNode

__all__ = ["cancelled_results", "owed_calls", "run_calls", "tool_run_of"]

_CANCELLED = "The run was stopped before this call had a result; whether it took effect is not known."


async def run_calls(
    node: PromptNode,
    calls: Sequence[ToolCall],
    run: NodeRun,
    state: GraphState,
    context: NodeContext,
    finished: list[ToolResult],
) -> list[ToolResult]:
    """Return one result a call, in the order asked; `finished` fills as they end."""
    if run.tool_run is None:
        run.tool_run = tool_run_of(node.name, state, context)
    tools = run.binding.callable_tools if run.offer is None else run.offer.callable_tools
    if run.reuse is not None:
        return await run.reuse.answer(calls, tools, run.tool_run, finished, context.hooks, state)
    return await answer_calls(calls, tools, run.tool_run, finished=finished)


def tool_run_of(node_name: str, state: GraphState, context: NodeContext, **options: Any) -> ToolRun:
    """Return the settings under which a node's calls are answered in this run."""
    hooks = context.hooks
    around = None
    if hooks.pre_tool or hooks.post_tool:

        async def before(name: str, args: dict[str, Any]) -> dict[str, Any]:
            return await hooks.before_tool(name, args, state)

        async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
            return await hooks.after_tool(name, content, args, state)

        around = ToolHooks(before if hooks.pre_tool else None, after if hooks.post_tool else None)
    if context.guards is not None and context.guards.after_tool is not None:
        around = _guarded(around, context.guards.after_tool)
    if context.journal is not None:
        options["log"] = CallRecords(context)
    if context.gate is not None:
        # A node's own gate comes beside the run's, never in its place.
        options["gate"] = joined_gates(options.get("gate"), context.gate)
    if options.get("gate") is not None:
        options["conversation"] = lambda: state.messages
    options.setdefault("parallel", context.limits.max_parallel_tools)
    options.setdefault("timeout", context.limits.tool_timeout)
    return ToolRun(
        node=node_name,
        path=context.path,
        run_id=context.run_id,
        emit=context.emit,
        hooks=around,
        config=context.caller_config,
        trace=context.trace,
        **options,
    )


def _guarded(around: ToolHooks | None, check: Callable[[str, Any, dict[str, Any]], Awaitable[Any]]) -> ToolHooks:
    """Return the hooks with the guards behind them: what a hook makes of a result is judged, too."""
    first = around.after if around is not None else None
    if first is None:
        return ToolHooks(around.before if around is not None else None, check)

    async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
        changed = await first(name, content, args)
        if changed is not None:
            content = changed if isinstance(changed, (str, list)) else dumps(changed)
        return await check(name, content, args)

    return ToolHooks(around.before if around is not None else None, after)


def owed_calls(messages: Sequence[Any]) -> list[ToolCall]:
    """Return the calls at the end of a conversation that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.type == "tool":
            answered.add(message.tool_call_id)
        elif message.type == "ai" and message.tool_calls:
            return [call for call in calls_of(message) if call.id not in answered]
        else:
            break
    return []


def cancelled_results(calls: Sequence[ToolCall], finished: Sequence[ToolResult]) -> list[ToolMessage]:
    """Return a result message for every call of a turn that was stopped: the real one where there is one."""
    known = {result.call.id: result.message for result in finished}
    return [
        known.get(call.id) or ToolMessage(content=_CANCELLED, tool_call_id=call.id, name=call.name, status="error")
        for call in calls
    ]
