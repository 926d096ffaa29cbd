"""Answer repeated calls of tools that are opted in from their earlier result, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.compaction.settings import ContextCompaction
from graphwright.messages import ToolMessage
from graphwright.run_events import ToolFinished, ToolStarted
from graphwright.tools import answer_calls
from graphwright.tools.base import ToolRun
from graphwright.types import ToolCall, ToolResult

__all__ = ["ReusedResults"]


class ReusedResults:
    """The results of one node in one run that a repeated call may get again.

    A call is a repeat when an earlier turn made it with the same arguments and it went well.
    """

    __slots__ = ("_known", "_settings")

    def __init__(self, settings: ContextCompaction) -> None:
        self._settings = settings
        self._known: dict[str, ToolResult] = {}

    async def answer(
        self, calls: Sequence[ToolCall], tools: Any, run: ToolRun, finished: list[ToolResult], hooks: Any, state: Any
    ) -> list[ToolResult]:
        """Return one result a call, in the order asked; only calls that are no repeat run."""
        places = [place for place, call in enumerate(calls) if self._earlier(call) is None]
        answers: dict[int, ToolResult] = {}
        for place, call in enumerate(calls):
            earlier = self._earlier(call)
            if earlier is not None:
                answers[place] = await _reuse(earlier, call, place, run, hooks, state)
                finished.append(answers[place])
        if places:
            fresh = [calls[place] for place in places]
            settings = replace(run, emit=_at(places, run.emit)) if run.emit is not None else run
            answered = await answer_calls(fresh, tools, settings, finished=finished)
            answers.update(zip(places, answered, strict=True))
            for result in answered:
                if result.success and self._settings.reuses(result.call.name):
                    self._known[_key(result.call)] = result
        return [answers[place] for place in range(len(calls))]

    def _earlier(self, call: ToolCall) -> ToolResult | None:
        if call.problem or not self._settings.reuses(call.name):
            return None
        return self._known.get(_key(call))


def _key(call: ToolCall) -> str:
    return f"{call.name} {dumps(dict(sorted(call.args.items())))}"


async def _reuse(earlier: ToolResult, call: ToolCall, index: int, run: ToolRun, hooks: Any, state: Any) -> ToolResult:
    content, artifact = earlier.message.content, earlier.message.artifact
    message = ToolMessage(content=content, tool_call_id=call.id, name=call.name, artifact=artifact)
    result = ToolResult(call, message, earlier.args, reused=True)
    await hooks.tool_reused(call.name, result.args, content, state)
    if run.trace is not None:
        run.trace(result)
    if run.emit is not None:
        await run.emit(ToolStarted(run.node, call, index, run_id=run.run_id, path=run.path))
        await run.emit(ToolFinished(run.node, call, result, index, run_id=run.run_id, path=run.path))
    return result


def _at(places: list[int], emit: Any) -> Any:
    async def forward(event: Any) -> None:
        if isinstance(event, (ToolStarted, ToolFinished)):
            # The calls that run are a part of the turn: each keeps its place in the whole of it.
            event.index = places[event.index]
        await emit(event)

    return forward
