"""End a run with an answer that was given before, in place of walking the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphwright._internal.ids import new_call_id
from graphwright.engine.node_result import NodeResult
from graphwright.engine.result import FROM_CACHE
from graphwright.messages import AIMessage, text_of
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.run_events import TextDelta
from graphwright.usage import Usage

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


class _Says:
    """A model that says one thing."""

    name = "cache"
    capabilities = ModelCapabilities(tools=False, streaming=False)

    def __init__(self, text: str) -> None:
        self._text = text

    async def complete(self, request: ModelRequest) -> AIMessage:
        return AIMessage(content=self._text)


async def replay(run: GraphRun, answer: KnownAnswer) -> None:
    """Say the answer, to whoever listens and in the conversation. The guards of the run judge it first."""
    context = run.context
    text = answer.text
    if context.guards is not None:
        # It may come from an agent with other guards.
        reply = await context.guards.held(_Says(text)).complete(ModelRequest(messages=run.state.messages))
        text = text_of(reply)
    if context.emit is not None:
        await context.emit(TextDelta("cache", text, new_call_id(), run_id=context.run_id, path=context.path))
    context.usage.add(Usage(input_tokens=0, output_tokens=0, total_tokens=0))
    run.state.messages.append(AIMessage(content=text, response_metadata={FROM_CACHE: True}))
    output = answer.output if text == answer.text else text
    run.last = NodeResult(node_name="cache", node_type="cache", output=output)
