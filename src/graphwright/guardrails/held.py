"""A model whose replies are judged before anybody sees them: no stream, log, trace or conversation has them before."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from graphwright.guardrails.texts import replaced_texts, texts_in
from graphwright.messages import text_of
from graphwright.models.base import ChatModel, ModelReply, ModelRequest, StreamingChatModel

__all__ = ["checked_reply", "held_model"]

Check = Callable[[str], Awaitable[str]]
"""Returns the text that may be seen, or raises."""

_SENTENCE_END = re.compile(r"[.!?…。！？](?=[\s\"')\]])|\n")


def held_model(
    model: ChatModel, check: Check, *, refused: Callable[[], BaseException], by_sentence: bool = False
) -> ChatModel:
    """Return the model with its replies held for `check`: whole, or sentence by sentence where it can stream.

    `refused` makes what is raised where a text would have to change that was shown already.
    """
    if by_sentence and model.capabilities.streaming and isinstance(model, StreamingChatModel):
        return _BySentence(model, check, refused)
    return _Held(model, check)


class _Held:
    """Gives a reply when it is whole and judged."""

    def __init__(self, model: ChatModel, check: Check) -> None:
        self._model, self._check = model, check
        self.name = model.name
        self.own_retries = getattr(model, "own_retries", False)
        self.capabilities = replace(model.capabilities, streaming=False)

    async def complete(self, request: ModelRequest) -> Any:
        """Ask, judge and return."""
        return await checked_reply(await self._model.complete(_unwatched(request)), self._check)


class _BySentence(_Held):
    """Gives each sentence when the text up to its end has passed."""

    def __init__(self, model: StreamingChatModel, check: Check, refused: Callable[[], BaseException]) -> None:
        super().__init__(model, check)
        self._source, self._refused = model, refused
        self.capabilities = model.capabilities

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        """Yield the pieces of the answer, sentence by sentence."""
        held: list[Any] = []
        shown = ""
        source = self._source.stream(_unwatched(request))
        try:
            async for piece in source:
                held.append(piece)
                ready = _whole_sentences(held)
                if ready:
                    passed = await self._passed(shown, held[:ready])
                    for each in _with_text(held[:ready], shown, passed):
                        yield each
                    shown, held = passed, held[ready:]
            passed = await self._passed(shown, held)
            for each in _with_text(held, shown, passed):
                yield each
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    async def _passed(self, shown: str, pieces: list[Any]) -> str:
        """Return the text so far as it may be seen; what was taken out before stays out of what is judged."""
        whole = shown + "".join(map(_text_of_piece, pieces))
        passed = await self._check(whole) if whole != shown else whole
        if not passed.startswith(shown):
            raise self._refused()
        return passed


def _text_of_piece(piece: Any) -> str:
    return piece if isinstance(piece, str) else "".join(texts_in(piece))


def _whole_sentences(pieces: list[Any]) -> int:
    """Return how many of the pieces lie before the last end of a sentence."""
    texts = [_text_of_piece(piece) for piece in pieces]
    end = 0
    for match in _SENTENCE_END.finditer("".join(texts)):
        end = match.end()
    count = length = 0
    for text in texts:
        length += len(text)
        if length > end or not end:
            break
        count += 1
    return count


async def checked_reply(reply: Any, check: Check) -> Any:
    """Return a reply of a model with what may not be seen taken out of its text and its thinking."""
    if isinstance(reply, str):
        return await check(reply) if reply else reply
    if isinstance(reply, ModelReply):
        message = await checked_reply(reply.message, check)
        refusal = await check(reply.refusal) if reply.refusal else reply.refusal
        if message is reply.message and refusal == reply.refusal:
            return reply
        return ModelReply(message, reply.calls, text_of(message), reply.usage, refusal)
    found = texts_in(reply)
    if not any(found):
        return reply
    whole = "\n".join(found) if len(found) > 1 else found[0]
    passed = await check(whole)
    if passed == whole:
        return reply
    new = [passed] if len(found) == 1 else [await check(text) for text in found]
    changed = replaced_texts(reply, new)
    # What the provider says of single words, such as their probabilities, holds the text as well.
    told = {key: value for key, value in reply.response_metadata.items() if _tells_no_text(key, value)}
    return changed.model_copy(update={"response_metadata": told})


def _tells_no_text(key: str, value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str)) or key.startswith("graphwright")


def _unwatched(request: ModelRequest) -> ModelRequest:
    """Return the request without the callbacks, which would be told of the reply before it is judged."""
    if not request.config or not request.config.get("callbacks"):
        return request
    return replace(request, config={key: value for key, value in request.config.items() if key != "callbacks"})


def _with_text(pieces: list[Any], shown: str, passed: str) -> list[Any]:
    """Return the pieces with the text that passed: as they came, or the first with all of it."""
    text = passed[len(shown) :]
    if text == "".join(map(_text_of_piece, pieces)):
        return pieces
    out: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str):
            out += [text] if text else []
            text = ""
            continue
        count = len(texts_in(piece))
        out.append(replaced_texts(piece, [text, *[""] * (count - 1)]) if count else piece)
        text = "" if count else text
    return [*out, text] if text else out
