"""Ask a chat model without tool support for its calls in words, and stand behind `ConstrainedToolModel` with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from graphwright.messages import text_of
from graphwright.models.base import ChatModel, ModelCapabilities, ModelRequest, StreamingChatModel
from graphwright.models.constrained import ConstrainedToolModel, Written
from graphwright.models.plain_turns import Turn
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

__all__ = ["PromptedText", "ToolsInWords", "tools_in_words"]

_LIMIT_REACHED = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"})


def tools_in_words(model: ChatModel) -> ChatModel:
    """Return a model that takes tools and output schemas, made of one that does not."""
    return ToolsInWords(model)


class ToolsInWords:
    """A chat model without tool support, told of tools and schemas in words; anything else goes to it as it is."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._with_tools = ConstrainedToolModel(PromptedText(model))
        self.own_retries = bool(getattr(model, "own_retries", False))
        """Whether the client makes failed calls again by itself."""
        self.reports_itself = bool(getattr(model, "reports_itself", False))
        """Whether the model inside tells LangChain callbacks of its calls by itself."""

    def __repr__(self) -> str:
        return f"ToolsInWords({self._model!r})"

    @property
    def model(self) -> ChatModel:
        """The chat model inside."""
        return self._model

    @property
    def name(self) -> str:
        """The name of the chat model."""
        return self._model.name

    @property
    def capabilities(self) -> ModelCapabilities:
        """Tools and structured output, and streaming where the model can."""
        streaming = self._model.capabilities.streaming and isinstance(self._model, StreamingChatModel)
        return ModelCapabilities(tools=True, structured_output=True, streaming=streaming)

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer the request. Raises what `ConstrainedToolModel.complete` does."""
        return await self._asked(request).complete(request)

    def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Yield the answer in pieces. Raises what `ConstrainedToolModel.stream` does."""
        return cast(StreamingChatModel, self._asked(request)).stream(request)

    def _asked(self, request: ModelRequest) -> ChatModel:
        plain = not request.tools and request.output_schema is None
        return self._model if plain else self._with_tools


class PromptedText:
    """Ask a chat model for JSON in the words of the conversation; nothing forces it to comply."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"PromptedText({self._model!r})"

    @property
    def name(self) -> str:
        """The name of the chat model."""
        return self._model.name

    @property
    def forces_schema(self) -> bool:
        """Always false: a chat model may write anything."""
        return False

    async def generate_json(self, turns: Sequence[Turn], schema: dict[str, Any], request: ModelRequest) -> Written:
        """Return what the model answers; the form that is wanted is part of the turns."""
        reply = await self._model.complete(_plain_request(turns, request))
        return Written(
            text=text_of(reply),
            usage=Usage.from_metadata(cast("Any", reply.usage_metadata)),
            cut_off=_reached_limit(reply.response_metadata),
        )

    async def stream_text(self, turns: Sequence[Turn], request: ModelRequest) -> AsyncIterator[str | Written]:
        """Yield the answer as the model writes it, or at once where it cannot stream."""
        plain = _plain_request(turns, request)
        if not (self._model.capabilities.streaming and isinstance(self._model, StreamingChatModel)):
            reply = await self._model.complete(plain)
            text = text_of(reply)
            if text:
                yield text
            usage = Usage.from_metadata(cast("Any", reply.usage_metadata))
            yield Written(text=text, usage=usage, cut_off=_reached_limit(reply.response_metadata))
            return
        parts: list[str] = []
        total: Usage | None = None
        cut_off = False
        async with aclosing(cast("Any", self._model.stream(plain))) as chunks:
            async for chunk in chunks:
                text = text_of(chunk)
                if text:
                    parts.append(text)
                    yield text
                if isinstance(chunk, str):
                    continue
                cut_off = cut_off or _reached_limit(chunk.response_metadata)
                usage = Usage.from_metadata(chunk.usage_metadata)
                if usage is not None:
                    total = total or Usage()
                    total.add(usage)
        yield Written(text="".join(parts), usage=total, cut_off=cut_off)


def _plain_request(turns: Sequence[Turn], request: ModelRequest) -> ModelRequest:
    return replace(
        request, messages=[_message_of(turn) for turn in turns], tools=(), tool_choice="auto", output_schema=None
    )


def _message_of(turn: Turn) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return cast("BaseMessage", kinds[turn.role](content=turn.content))


def _reached_limit(metadata: dict[str, Any]) -> bool:
    return any(metadata.get(key) in _LIMIT_REACHED for key in ("finish_reason", "stop_reason", "done_reason"))
