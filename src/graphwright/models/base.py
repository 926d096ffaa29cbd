"""The port that every model stands behind, and the data that crosses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graphwright.types import ToolCall, ToolChoice, ToolSpec
from graphwright.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

__all__ = ["ChatModel", "Embedder", "ModelCapabilities", "ModelReply", "ModelRequest", "StreamingChatModel"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCapabilities:
    """What a model can do by itself."""

    tools: bool = True
    """It takes tool definitions and asks for calls."""

    structured_output: bool = False
    """It takes `ModelRequest.output_schema` and answers with JSON that fits it."""

    streaming: bool = True
    """Its `stream` yields the answer while it is written."""


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One question to a model."""

    messages: Sequence[BaseMessage]

    tools: Sequence[ToolSpec] = ()

    tool_choice: ToolChoice = "auto"

    output_schema: type[Any] | None = None
    """A pydantic model. Given only to models whose capabilities say `structured_output`."""

    temperature: float | None = None
    """`None` is the model's own."""

    max_tokens: int | None = None
    """Most tokens of the answer; `None` is the model's own."""

    config: dict[str, Any] | None = None
    """The caller's LangChain config (callbacks, tags, metadata), when one was given."""


@dataclass(slots=True)
class ModelReply:
    """One answer of a model, ready to enter the conversation."""

    message: AIMessage
    """Unique non-empty call ids, arguments that are JSON objects, no invalid calls."""

    calls: list[ToolCall] = field(default_factory=list)
    """The calls asked for, in order; a call that must not run says why in `problem`."""

    text: str = ""

    usage: Usage | None = None

    refusal: str | None = None
    """The refusal, when the model or its provider refused."""


@runtime_checkable
class ChatModel(Protocol):
    """A model as the engine sees it: one coroutine. Raise `ModelError` for what the provider refused."""

    @property
    def name(self) -> str:
        """A short name for logs and reports."""
        ...

    @property
    def capabilities(self) -> ModelCapabilities:
        """What the model can do by itself."""
        ...

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer the request."""
        ...


@runtime_checkable
class StreamingChatModel(ChatModel, Protocol):
    """A model that can show its answer while it writes it."""

    def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Yield the answer in pieces; a plain `str` is a piece of text."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order."""
        ...
