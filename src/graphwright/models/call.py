"""Ask a model: the one place where it is done, with retries, live events, and one form of answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.ids import new_call_id
from graphwright._internal.real_requests import RealRequestForbidden
from graphwright.exceptions import GraphwrightError, ModelError
from graphwright.messages import text_of, thinking_of
from graphwright.models.base import ChatModel, ModelReply, ModelRequest, StreamingChatModel
from graphwright.models.callbacks import CallReport, start_report
from graphwright.models.failures import foreign_cancel, model_error
from graphwright.models.joining import ChunkJoiner
from graphwright.models.reply import finish_reason_of, joined_reply, reply_of
from graphwright.models.retry import DEFAULT_RETRY, NO_RETRY, RetryPolicy
from graphwright.run_events import ModelFinished, ModelStarted, Restarted, Retrying, TextDelta, ThinkingDelta
from graphwright.run_scope import run_scope

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

    from graphwright.run_events import Emit, RunEvent

__all__ = ["call_model"]

logger = logging.getLogger(__name__)


async def call_model(
    model: ChatModel,
    request: ModelRequest,
    *,
    node: str = "",
    path: str = "",
    run_id: str = "",
    emit: Emit | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> ModelReply:
    """Ask the model, again where that can help, and return its answer in one form.

    With `emit` every step is reported, and the answer is streamed where the model can, unless the run is quiet. A
    failed attempt whose text was already shown is followed by a `Restarted` event before anything else of the call is
    shown. A client that retries by itself is asked once. When cancelled, the provider's stream is closed before this
    returns.

    Raises:
        ModelError: the model gave no answer; the provider's exception is the `__cause__`.
        ConfigurationError: the request does not fit the model.
    """
    failure = None
    if emit is None and not request.config:
        try:
            return reply_of(await model.complete(request))
        except (Exception, asyncio.CancelledError) as error:
            failure = _failure(error, model)
    policy = NO_RETRY if getattr(model, "own_retries", False) else retry
    if emit is None:
        return await _completed(model, request, policy, failure)
    call = _Call(model, request, node, path, run_id, emit)
    return await call.run(policy)


async def _completed(
    model: ChatModel, request: ModelRequest, policy: RetryPolicy, failure: ModelError | None = None
) -> ModelReply:
    """Ask until there is an answer or no hope; `failure` is that of an attempt that was made already."""
    attempt = 0
    while True:
        attempt += 1
        if failure is None:
            try:
                return await _reported(model, request)
            except (Exception, asyncio.CancelledError) as error:
                failure = _failure(error, model)
        wait = policy.wait_for(failure, attempt)
        if wait is None:
            raise _final(failure, attempt, policy)
        logger.info("model %r failed, attempt %d; again in %.2f s: %s", model.name, attempt, wait, failure)
        await policy.sleep(wait)
        failure = None


async def _reported(model: ChatModel, request: ModelRequest) -> ModelReply:
    report = await start_report(model, request) if request.config else None
    if report is None:
        return reply_of(await model.complete(request))
    try:
        reply = reply_of(await model.complete(request))
    except BaseException as error:
        await report.fail(error)
        raise
    await report.end(reply.message)
    return reply


def _failure(error: BaseException, model: ChatModel) -> ModelError:
    """Return what went wrong as a `ModelError`, or raise what is none of the provider's."""
    cancel = foreign_cancel(error, model_name=model.name)
    if cancel is not None:
        return cancel
    if isinstance(error, (asyncio.CancelledError, RealRequestForbidden)):
        raise error
    if isinstance(error, GraphwrightError) and not isinstance(error, ModelError):
        raise error
    return model_error(cast(Exception, error), model_name=model.name)


def _final(failure: ModelError, attempt: int, policy: RetryPolicy) -> ModelError:
    """Return the error that ends the call: the failure, and why it was not tried again where that needs saying."""
    asked = failure.retry_after
    if failure.retryable and asked is not None and asked > policy.cap_s and attempt < policy.attempts:
        why = f"the provider asks to wait {asked:.0f} s, which is more than the cap of {policy.cap_s:.0f} s"
    elif attempt > 1:
        why = f"given up after {attempt} attempts"
    else:
        return failure
    text = str(failure)
    if not text.endswith(why):
        failure.args = (f"{text}; {why}",)
    return failure


@dataclass(slots=True)
class _Call:
    """One call that somebody watches."""

    model: ChatModel
    request: ModelRequest
    node: str
    path: str
    run_id: str
    emit: Emit
    call_id: str = field(default_factory=new_call_id)
    shown: list[str] = field(default_factory=list)
    """The text of this attempt that was shown."""
    thought: bool = False
    quiet: bool = False
    """Whether the answer is taken in one piece and its text not shown."""
    sink_error: BaseException | None = None
    """What the listener raised: no failure of the model."""

    async def run(self, policy: RetryPolicy) -> ModelReply:
        """Ask until there is an answer or no hope."""
        scope = run_scope.get()
        self.quiet = scope is not None and scope.quiet
        asked = self.request.messages
        await self.emit(ModelStarted(self.node, self.call_id, asked, run_id=self.run_id, path=self.path))
        attempt = 0
        while True:
            attempt += 1
            try:
                reply = await self._attempt()
                break
            except (Exception, asyncio.CancelledError) as error:
                if error is self.sink_error:
                    raise
                failure = _failure(error, self.model)
            wait = policy.wait_for(failure, attempt)
            if wait is None:
                raise _final(failure, attempt, policy)
            await self._restart(attempt, wait, failure)
            await policy.sleep(wait)
        await self.emit(
            ModelFinished(self.node, self.call_id, reply.message, reply.usage, run_id=self.run_id, path=self.path)
        )
        return reply

    async def _restart(self, attempt: int, wait: float, failure: ModelError) -> None:
        await self.emit(Retrying(self.node, attempt, wait, str(failure), run_id=self.run_id, path=self.path))
        if self.shown or self.thought:
            dropped = "".join(self.shown)
            self.shown.clear()
            self.thought = False
            await self.emit(Restarted(self.node, self.call_id, dropped, run_id=self.run_id, path=self.path))

    async def _attempt(self) -> ModelReply:
        model, request = self.model, self.request
        report = await start_report(model, request) if request.config else None
        try:
            if self.quiet:
                reply = reply_of(await model.complete(request))
            elif model.capabilities.streaming and isinstance(model, StreamingChatModel):
                reply = await self._streamed(model, report)
            else:
                reply = reply_of(await model.complete(request))
                await self._show_thinking(thinking_of(reply.message))
            if reply.text and not self.shown and not self.quiet:
                await self._show(reply.text)
        except BaseException as error:
            if report is not None:
                await report.fail(error)
            raise
        if report is not None:
            await report.end(reply.message)
        return reply

    async def _streamed(self, model: StreamingChatModel, report: CallReport | None) -> ModelReply:
        joiner = ChunkJoiner()
        shown, tell, run_id, path = self.shown, self._tell, self.run_id, self.path
        source = model.stream(self.request)
        try:
            async for piece in source:
                if report is not None:
                    await report.token(piece)
                if isinstance(piece, str):
                    text, chunk = piece, None
                    joiner.add_text(piece)
                else:
                    chunk = piece
                    joiner.add(chunk)
                    content = chunk.content
                    plain = type(content) is str and not chunk.additional_kwargs
                    text = cast(str, content) if plain else await self._read(chunk)
                if text:
                    shown.append(text)
                    await tell(TextDelta(self.node, text, self.call_id, chunk, run_id=run_id, path=path))
        finally:
            await _close(source)
        reply = joined_reply(joiner)
        _check_ended(reply, model.name)
        return reply

    async def _read(self, chunk: AIMessageChunk) -> str:
        """Show the thinking in a chunk and return its text."""
        await self._show_thinking(thinking_of(chunk))
        return text_of(chunk.content)

    async def _tell(self, event: RunEvent) -> None:
        try:
            await self.emit(event)
        except BaseException as error:
            self.sink_error = error
            raise

    async def _show(self, text: str) -> None:
        self.shown.append(text)
        await self._tell(TextDelta(self.node, text, self.call_id, run_id=self.run_id, path=self.path))

    async def _show_thinking(self, text: str) -> None:
        if text:
            self.thought = True
            await self._tell(ThinkingDelta(self.node, text, self.call_id, run_id=self.run_id, path=self.path))


async def _close(source: AsyncIterator[Any]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


def _check_ended(reply: ModelReply, model_name: str) -> None:
    """Refuse a stream that broke off: the provider always says why it ends, and this time it did not."""
    message = reply.message
    from_provider = message.response_metadata.get("model_provider") in ("openai", "anthropic")
    if from_provider and not reply.calls and reply.usage is None and not finish_reason_of(message):
        raise ModelError(f"the stream of model {model_name!r} broke off before the answer was complete", retryable=True)
