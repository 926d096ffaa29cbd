"""What is said to a model for the length of one step, and then taken out of the conversation again."""

from __future__ import annotations

from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._transition import ANSWER_RETRY, SAME_NODE
from graphwright.engine.base import NodeContext, context_of
from graphwright.engine.nodes.prompt import PromptNode
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.messages import HumanMessage
from graphwright.run_events import Emit, RunEvent, TextDelta

__all__ = ["AsideNode", "shown", "with_emit", "without_text"]

DO_YOUR_STEP = "Do your step now, about the reply above. Do not continue that reply."

_SHOWN_CHARS = 500


class AsideNode(PromptNode):
    """A prompt node whose request to the model, and whose corrections, stay out of the conversation."""

    reenterable = True

    own_flags: frozenset[NodeFlag] = frozenset()
    own_prompt = ""
    own_output_key = ""

    _extra = ""
    # What follows the instructions, whether they are the node's own or given.

    def __init__(self, name: str, **options: Any) -> None:
        """Configure the node; all keywords of `PromptNode` are taken."""
        told = options.pop("instructions", "") or self.own_prompt
        # Instructions that come from a saved node hold it already.
        adds = self._extra and not told.endswith(self._extra)
        options["instructions"] = f"{told}\n\n{self._extra}" if adds else told
        if options.get("output_key") is None:
            options["output_key"] = self.own_output_key
        options["flags"] = self.own_flags | frozenset(options.get("flags") or ())
        super().__init__(name, **options)

    def aside(self, state: GraphState, context: NodeContext) -> str:
        """Return what the model is told at the end of the conversation when the step begins."""
        return ""

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run one visit, with the request in the conversation for as long as the step goes on."""
        context = context_of(config)
        asides: list[Any] | None = context.scratch.get((self, "asides"))
        if asides is None:
            asides = context.scratch[self, "asides"] = []
            self._begin(asides, state, context)
        concluded = True
        try:
            result = await super().execute(state, config)
            concluded = result.transition_reason not in SAME_NODE or not self.may_run_again(state, context)
            if result.transition_reason == ANSWER_RETRY:
                asides.extend(result.messages_added)
        finally:
            if concluded:
                context.scratch.pop((self, "asides"), None)
                _take_out(asides, state)
        return result

    def may_run_again(self, state: GraphState, context: NodeContext) -> bool:
        """Return whether the limits leave the node a visit after this one."""
        most = self.max_iterations
        loop = state.graph.loop_limit(self.name) if state.graph is not None else None
        for limit in (context.limits.max_node_iterations, loop.max_iterations if loop is not None else None):
            most = most if limit is None else min(most, limit)
        return state.node_iterations.get(self.name, 0) < most

    def _begin(self, asides: list[Any], state: GraphState, context: NodeContext) -> None:
        last = state.messages[-1]
        told = self.aside(state, context)
        if not told and last.type == "ai" and not last.tool_calls:
            # Providers read a conversation that ends on their own turn as one to be continued.
            told = DO_YOUR_STEP
        if told:
            asides.append(HumanMessage(content=told))
            state.messages.append(asides[0])


def with_emit(config: Any, emit: Emit) -> Any:
    """Return the config with another sink for the events of this step."""
    configurable = config["configurable"]
    return {**config, "configurable": {**configurable, "graphwright": context_of(config).listening(emit)}}


def without_text(emit: Emit) -> Emit:
    """Return a sink that leaves out the pieces of a model's text."""

    async def quiet(event: RunEvent) -> None:
        if not isinstance(event, TextDelta):
            await emit(event)

    return quiet


def shown(value: Any) -> str:
    """Return a value as a short text."""
    text = value if isinstance(value, str) else dumps(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"


def _take_out(asides: list[Any], state: GraphState) -> None:
    if not asides:
        return
    gone = {id(message) for message in asides}
    state.messages[:] = [message for message in state.messages if id(message) not in gone]
    state._checked = min(state._checked, len(state.messages))
