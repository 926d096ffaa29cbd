"""Put any object with `bind_tools`, `astream` and `ainvoke` behind the model port."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from graphwright.exceptions import ModelError
from graphwright.models.base import ModelCapabilities, ModelRequest

__all__ = ["DuckModel"]


class DuckModel:
    """A model that only looks like a LangChain chat model, such as a stand-in of a test.

    It is asked with `ainvoke(messages)` and `astream(messages)`, after `bind_tools(definitions)` where there are tools;
    a stream without a single piece is followed by `ainvoke`.
    """

    def __init__(self, model: Any, *, name: str = "") -> None:
        self.model = model
        self.name = name or _name_of(model)
        self.capabilities = ModelCapabilities(
            tools=callable(getattr(model, "bind_tools", None)), streaming=callable(getattr(model, "astream", None))
        )

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Ask the object and return its whole answer."""
        return _as_message(await _value_of(self._bound(request).ainvoke(list(request.messages))), self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Ask the object and yield its answer in pieces; closing the iterator closes the object's stream."""
        source = await _value_of(self._bound(request).astream(list(request.messages)))
        some = False
        try:
            async for piece in source:
                some = True
                yield piece if isinstance(piece, str) else _as_chunk(_as_message(piece, self.name))
        finally:
            if inspect.isasyncgen(source):
                await source.aclose()
        if not some:
            yield _as_chunk(await self.complete(request))

    def _bound(self, request: ModelRequest) -> Any:
        if not request.tools or request.tool_choice == "none":
            return self.model
        options: dict[str, Any] = {}
        if request.tool_choice != "auto":
            options["tool_choice"] = "any" if request.tool_choice == "required" else request.tool_choice
        definitions = [
            {
                "type": "function",
                "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": deepcopy(spec.parameters),
                },
            }
            for spec in request.tools
        ]
        return self.model.bind_tools(definitions, **options)

    def __repr__(self) -> str:
        return f"DuckModel({self.name!r})"


async def _value_of(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _as_message(value: Any, name: str) -> AIMessage:
    if isinstance(value, AIMessage):
        return value
    if isinstance(value, str):
        return AIMessage(content=value)
    content = getattr(value, "content", None)
    if isinstance(value, BaseMessage) or not isinstance(content, (str, list)):
        raise ModelError(f"model {name!r} answered with a {type(value).__name__}, which is no message and no text")
    # Of an object that makes attributes up, only what has the right type is meant.
    calls, usage, extra = (getattr(value, key, None) for key in ("tool_calls", "usage_metadata", "additional_kwargs"))
    return AIMessage(
        content=content,
        tool_calls=calls if isinstance(calls, list) else [],
        usage_metadata=cast("Any", dict(usage)) if isinstance(usage, Mapping) else None,
        additional_kwargs=dict(extra) if isinstance(extra, Mapping) else {},
    )


def _as_chunk(message: AIMessage) -> AIMessageChunk:
    if isinstance(message, AIMessageChunk):
        return message
    pieces = [
        {"name": call["name"], "args": json.dumps(call["args"], ensure_ascii=False), "id": call["id"], "index": index}
        for index, call in enumerate(message.tool_calls)
    ]
    return AIMessageChunk(
        content=message.content,
        tool_call_chunks=cast("Any", pieces),
        usage_metadata=message.usage_metadata,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        id=message.id,
    )


def _name_of(model: Any) -> str:
    for key in ("model_name", "model", "name"):
        value = getattr(model, key, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__
