"""The node that asks the model what to do next."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from graphwright.engine.base import NodeContext, context_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import EmptyReplyError
from graphwright.messages import HumanMessage, SystemMessage, thinking_of
from graphwright.models import call_model
from graphwright.models.base import ModelReply, ModelRequest
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.compaction import compacted, is_summary
from graphwright.orchestrator.nodes._base import BotNode, after_answer, route_of, usage_of
from graphwright.orchestrator.output import held_reply, verdict_in
from graphwright.orchestrator.prompts import IMAGE_NOT_SHOWN, WITHDRAWN
from graphwright.orchestrator.system_prompt import dynamic_text, stable_text
from graphwright.run_events import Emit, Retrying, RunEvent
from graphwright.tools import ToolSet
from graphwright.types import ToolSpec

__all__ = ["AgentNode", "tools_of"]


class AgentNode(BotNode):
    """Asks the model, and leads on by what it calls."""

    node_type = "agent"
    reenterable = True

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Make one turn of the model."""
        context = context_of(config)
        setup, mode = self.setup, state.context.get("mode")
        before = context.usage.as_dict()
        update: dict[str, Any] = {}
        if setup.compaction and mode != "plan":
            update |= await compacted(setup, state, context)
        kept = context.scratch.setdefault(self, {})
        if "stable" not in kept:
            memory = await setup.memory.render() if setup.memory is not None else ""
            kept["stable"] = stable_text(setup, state, memory)
        reply = await context.once_asked(self._ask(state, context, kept))
        if reply.usage is not None:
            context.usage.add(reply.usage)
        calls = [] if mode == "plan" else reply.calls
        message = reply.message
        if not calls and message.tool_calls:
            # In plan mode nothing is called, whatever the model makes up.
            message = message.model_copy(update={"tool_calls": []})
        if not calls and not reply.text.strip():
            raise EmptyReplyError("the model answered with no text and no tool call; ask again or use another model")
        thought = thinking_of(message)
        if thought:
            update["thinking"] = thought
        used = usage_of(context, before)
        if used:
            update["token_usage"] = used
        verdict = verdict_in(message)
        if verdict is not None and verdict["hidden"] and not setup.buffer_output:
            event = {"type": "warning", "reason": WITHDRAWN, "attempt": 0, "wait_s": 0.0}
            update["status_events"] = [*update.get("status_events", ()), event]
        if calls:
            if reply.text.strip():
                update["partial_responses"] = [reply.text]
            if verdict is not None:
                update["guard_events"] = verdict["events"]
            return self.result(state, update, [message], route_of(calls, setup), calls=calls)
        update["final_report"] = reply.text
        return self.result(state, update, [message], after_answer(setup, state))

    def _ask(self, state: GraphState, context: NodeContext, kept: dict[str, Any]) -> Awaitable[ModelReply]:
        setup = self.setup
        plan_mode = state.context.get("mode") == "plan"
        looks = _has_images(state.turn_question)
        request = ModelRequest(
            messages=self._view(state, kept) if looks else self._without_images(self._view(state, kept)),
            tools=() if plan_mode else self._specs(state),
            config=context.caller_config,
        )
        model = setup.vision if looks else setup.strong
        emit = context.emit
        if emit is not None and setup.output_guards and setup.buffer_output:
            emit = _without_text(emit)
        if emit is None:
            asking = call_model(model, request)
        else:
            asking = call_model(model, request, node=self.name, path=context.path, run_id=context.run_id, emit=emit)
        return held_reply(setup, asking, state) if setup.output_guards else asking

    def _specs(self, state: GraphState) -> Sequence[ToolSpec]:
        return (*tools_of(self.setup, state).specs, *self.setup.signals)

    def _view(self, state: GraphState, kept: dict[str, Any]) -> list[Any]:
        """Return what the model is shown: one system message, then the conversation without any other."""
        setup, messages = self.setup, state.messages
        summary = ""
        if messages and is_summary(messages[0]):
            summary, messages = str(messages[0].content), messages[1:]
        told = kept.get("told")
        if told is None or (told and kept["first"] is not state.messages[0]):
            # Only what came with the goal has system messages in it, so later turns need no look at all of it.
            told = kept["told"] = [message for message in messages if message.type == "system"]
            kept["first"] = state.messages[0]
        dynamic = dynamic_text(setup, state, summary, told)
        if kept.get("dynamic") != dynamic:
            kept["dynamic"] = dynamic
            kept["system"] = _system(kept["stable"], dynamic, cached=setup.prompt_cache)
        if told:
            messages = [message for message in messages if message.type != "system"]
        return [kept["system"], *messages]

    def _without_images(self, messages: list[Any]) -> list[Any]:
        """Return the messages as the strong model is sent them: images of earlier goals are not for it to see."""
        if self.setup.vision is self.setup.strong:
            return messages
        return [_told_of_images(message) if _has_images(message) else message for message in messages]


def _without_text(emit: Emit) -> Emit:
    """Return a sink that hears of retries at once, and of nothing that the guards have not seen."""

    async def held(event: RunEvent) -> None:
        if isinstance(event, Retrying):
            await emit(event)

    return held


def tools_of(setup: BotSetup, state: GraphState) -> ToolSet:
    """Return what can be called now: the tools of the bot, and those of the skills that were loaded."""
    tools = setup.tools
    for name in state.context.get("skills_loaded", ()):
        brought = setup.skill_tools.get(name)
        if brought is not None:
            tools = tools.merged(brought)
    return tools


def _system(stable: str, dynamic: str, *, cached: bool) -> SystemMessage:
    if not cached:
        return SystemMessage(content="\n\n".join(text for text in (stable, dynamic) if text))
    blocks: list[str | dict[Any, Any]] = [
        {"type": "text", "text": stable, "cache_control": {"type": "ephemeral"}},
    ]
    if dynamic:
        # What changes within a run stands behind the part that the provider caches.
        blocks.append({"type": "text", "text": dynamic})
    return SystemMessage(content=blocks)


def _told_of_images(message: Any) -> Any:
    content = [
        block if not _is_image(block) else {"type": "text", "text": IMAGE_NOT_SHOWN} for block in message.content
    ]
    return message.model_copy(update={"content": content})


def _has_images(message: Any) -> bool:
    if not isinstance(message, HumanMessage) or not isinstance(message.content, list):
        return False
    return any(map(_is_image, message.content))


def _is_image(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("image", "image_url")
