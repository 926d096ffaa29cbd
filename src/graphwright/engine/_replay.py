"""End a run with an answer that was given before, in place of walking the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphwright._internal.ids import new_call_id
from graphwright.engine.result import FROM_CACHE
from graphwright.engine.node_result import NodeResult
from graphwright.messages import AIMessage
from graphwright.run_events import TextDelta

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun

__all__ = ["KnownAnswer", "replay"]


class KnownAnswer(Protocol):
    """An answer that needs no model."""

    @property
    def text(self) -> str:
        """What is said."""
        ...

    @property
    def output(self) -> Any:
        """The output of the run."""
        ...


async def replay(run: GraphRun, answer: KnownAnswer) -> None:
    """Say the answer, to whoever listens and in the conversation."""
    context = run.context
    if context.emit is not None:
        await context.emit(
            TextDelta("cache", answer.text, new_call_id(), run_id=context.run_id, path=context.path)
        )
    run.state.messages.append(AIMessage(content=answer.text, response_metadata={FROM_CACHE: True}))
    run.last = NodeResult(node_name="cache", node_type="cache", output=answer.output)
