"""Read a model's final reply, and let a node's guards decide over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.answer_schema import Unfit
from graphwright.engine.base import NodeContext
from graphwright.engine.nodes._binding import NodeRun
from graphwright.engine.nodes._guarding import guard_name, verdict_of
from graphwright.engine.state import NodeResult
from graphwright.exceptions import EmptyReplyError, ModelRefusalError, OutputSchemaError
from graphwright.messages import AIMessage, HumanMessage, ToolMessage
from graphwright.models.base import ModelReply
from graphwright.run_events import TextDelta

if TYPE_CHECKING:
    from graphwright.engine.nodes.prompt import PromptNode

__all__ = ["Answer", "check_answer", "read_answer"]

DOES_NOT_FIT = "The answer does not fit the wanted form:\n{problems}\nGive the whole answer again, corrected."


@dataclass(slots=True)
class Answer:
    """What a final reply says."""

    message: AIMessage
    output: Any = None
    correction: list[Any] = field(default_factory=list)
    """The exchange that tells the model what does not fit; empty when the answer stands."""


def read_answer(node: PromptNode, run: NodeRun, reply: ModelReply) -> Answer:
    """Return the answer in a reply without tool calls, or the correction to ask for.

    Raises:
        EmptyReplyError: the model said nothing.
        ModelRefusalError: the model refused where data was asked for, or refused without a word.
        OutputSchemaError: the answer still does not fit after all corrections.
    """
    schema = run.binding.schema
    if reply.refusal is not None and (schema is not None or not reply.text):
        raise ModelRefusalError(f"the model refused: {reply.refusal}", refusal=reply.refusal)
    if schema is None:
        if not reply.text.strip() and not _has_other_content(reply.message):
            raise EmptyReplyError("the model answered with no text and no tool call; ask again or use another model")
        return Answer(reply.message, reply.text)
    try:
        if reply.calls:
            call = reply.calls[0]
            if call.problem:
                raise Unfit(call.problem)
            instance = schema.parse(call.args)
        elif not reply.text:
            raise Unfit("the answer is empty")
        else:
            instance = schema.parse_text(reply.text)
    except Unfit as problem:
        return _correction(node, run, reply, str(problem))
    data = schema.as_data(instance)
    message = reply.message
    if reply.calls:
        # The call was only the form of the answer: as text it needs no result and reads well later.
        message = AIMessage(
            content=dumps(data),
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            id=message.id,
        )
    return Answer(message, data)


def _has_other_content(message: AIMessage) -> bool:
    from graphwright.messages import problem_in

    return problem_in([HumanMessage(content="?"), message]) is None


def _correction(node: PromptNode, run: NodeRun, reply: ModelReply, problem: str) -> Answer:
    if run.corrections >= node.output_retries:
        raw = reply.calls[0].raw or dumps(reply.calls[0].args) if reply.calls else reply.text
        raise OutputSchemaError(
            f"the answer of node {node.name!r} does not fit {run.binding.schema.type.__name__} "  # type: ignore[union-attr]
            f"after {run.corrections + 1} attempts: {problem}",
            raw=raw,
        )
    told = DOES_NOT_FIT.format(problems=problem)
    if reply.calls:
        call = reply.calls[0]
        answer = ToolMessage(content=told, tool_call_id=call.id, name=call.name, status="error")
        return Answer(reply.message, correction=[reply.message, answer])
    if not reply.text:
        return Answer(reply.message, correction=[HumanMessage(content=told)])
    return Answer(reply.message, correction=[reply.message, HumanMessage(content=told)])


async def check_answer(node: PromptNode, answer: Answer, context: NodeContext, result: NodeResult) -> AIMessage:
    """Let every guard of the node see the answer; return the message as they leave it.

    A guard that fails, or cannot run, makes the node fail. The text is shown to a listener only after the verdict.
    """
    message = answer.message
    text = result.raw_output if not isinstance(result.output, str) else result.output
    for guard in node.guards:
        name = guard_name(guard)
        verdict = await verdict_of(guard, text)
        if not verdict.passed:
            result.guards_failed.append(name)
            result.error = f"guard {name!r} refused the answer{verdict.because}"
            continue
        result.guards_passed.append(name)
        if verdict.text is not None and verdict.text != text:
            text = verdict.text
            message = message.model_copy(update={"content": text})
            result.raw_output = text
            if isinstance(result.output, str):
                result.output = text
    if result.error is None and context.emit is not None:
        shown = TextDelta(node.name, result.raw_output, message.id or "", run_id=context.run_id, path=context.path)
        await context.emit(shown)
    return message
