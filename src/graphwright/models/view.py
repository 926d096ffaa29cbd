"""Look at a LangChain chat model through a subclass that keeps what its class would drop, and never blocks the loop.

The view shares the state of the model it was made from: what one changes, the other sees. It is only used to call it.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from graphwright._internal.threads import run_in_thread
from graphwright.models.reply import RAW_ARGUMENTS
from graphwright.models.tokens import RAW_USAGE

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

__all__ = ["streaming_view", "view_of"]

logger = logging.getLogger(__name__)

_STATE = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_OPENED = "graphwright_opened"
_END = object()
_classes: WeakValueDictionary[type[Any], type[Any]] = WeakValueDictionary()


def view_of(model: BaseChatModel, updates: Mapping[str, Any] | None = None) -> BaseChatModel:
    """Return the view of a model; with `updates`, one that differs from it in these fields and shares nothing new."""
    cls: Any = type(model)
    try:
        view_class = _classes.get(cls)
        if view_class is None:
            view_class = _classes[cls] = _view_class(cls)
        view: Any = object.__new__(view_class)
        for name in _STATE:
            object.__setattr__(view, name, getattr(model, name))
    except Exception:  # a class that cannot be extended is used as it is
        logger.debug("no view of %s", cls.__name__, exc_info=True)
        return model.model_copy(update=updates) if updates else model
    if updates:
        object.__setattr__(view, "__dict__", {**model.__dict__, **updates})
    return cast("BaseChatModel", view)


def streaming_view(view: BaseChatModel) -> tuple[BaseChatModel, list[Any]]:
    """Return a view for one stream, and the list in which it keeps the provider's streams that it opens."""
    opened: list[Any] = []
    cls: Any = type(view)
    if _OPENED not in cls.__dict__:
        return view, opened
    mine: Any = object.__new__(cls)
    for name in _STATE:
        object.__setattr__(mine, name, getattr(view, name))
    object.__setattr__(mine, _OPENED, opened)
    return mine, opened


def _view_class(cls: type[Any]) -> type[Any]:
    from langchain_core.language_models.chat_models import BaseChatModel, SimpleChatModel

    namespace: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__slots__": (_OPENED,),
    }
    if cls._agenerate in (BaseChatModel._agenerate, SimpleChatModel._agenerate):
        namespace["_agenerate"] = _generate_in_thread
    if cls._astream is not BaseChatModel._astream:
        namespace["_astream"] = _remembering(cls._astream)
    elif cls._stream is not BaseChatModel._stream:
        namespace["_astream"] = _remembering(_stream_in_thread)
    for name, keeping in _KEEPING.items():
        original = getattr(cls, name, None)
        if original is not None:
            namespace[name] = keeping(original)
    metaclass: Any = type(cls)
    return cast("type[Any]", metaclass(cls.__name__, (cls,), namespace))


async def _generate_in_thread(
    self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> Any:
    manager = run_manager.get_sync() if run_manager else None
    return await run_in_thread(partial(self._generate, messages, stop=stop, run_manager=manager, **kwargs))


async def _stream_in_thread(
    self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
) -> AsyncIterator[Any]:
    manager = run_manager.get_sync() if run_manager else None
    source = _Pulled(partial(self._stream, messages, stop=stop, run_manager=manager, **kwargs))
    try:
        while (chunk := await run_in_thread(source.pull)) is not _END:
            yield chunk
    finally:
        source.close()


class _Pulled:
    """An iterator that worker threads advance one at a time, and that ends when nobody wants more of it."""

    def __init__(self, start: Callable[[], Iterator[Any]]) -> None:
        self._start = start
        self._source: Iterator[Any] | None = None
        self._busy = threading.Lock()
        self._closed = False

    def pull(self) -> Any:
        """Return the next item, or `_END`."""
        with self._busy:
            try:
                if self._closed:
                    return _END
                if self._source is None:
                    self._source = iter(self._start())
                return next(self._source, _END)
            finally:
                if self._closed:
                    self._end()

    def close(self) -> None:
        """End the iterator now, or as soon as the thread that is inside it comes back."""
        self._closed = True
        if self._busy.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._busy.release()

    def _end(self) -> None:
        end = getattr(self._source, "close", None)
        self._source = None
        if end is not None:
            end()


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    def _astream(self: Any, *args: Any, **kwargs: Any) -> Any:
        source = original(self, *args, **kwargs)
        opened = getattr(self, _OPENED, None)
        if opened is not None:
            opened.append(source)
        return source

    return _astream


def _keeping_refusal(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the refusal text, and cache figures under their older names, of a chat completions chunk."""

    def _convert_chunk_to_generation_chunk(self: Any, chunk: Any, *args: Any, **kwargs: Any) -> Any:
        generation = original(self, chunk, *args, **kwargs)
        if generation is None or not isinstance(chunk, Mapping):
            return generation
        inner = chunk.get("chunk")
        choices = chunk.get("choices") or (inner.get("choices") if isinstance(inner, Mapping) else None)
        delta = choices[0].get("delta") if choices else None
        if isinstance(delta, Mapping) and delta.get("refusal"):
            generation.message.additional_kwargs["refusal"] = delta["refusal"]
        usage = chunk.get("usage")
        if isinstance(usage, Mapping) and "prompt_cache_hit_tokens" in usage:
            generation.message.response_metadata[RAW_USAGE] = dict(usage)
        return generation

    return _convert_chunk_to_generation_chunk


def _keeping_prompt_tokens(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the figures of a stream's first event: in older APIs only these hold the input."""

    def _make_message_chunk_from_anthropic_event(self: Any, event: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, event, *args, **kwargs)
        if getattr(event, "type", "") == "message_start" and isinstance(made, tuple) and made[0] is not None:
            usage = getattr(event.message, "usage", None)
            if usage is not None:
                made[0].response_metadata[RAW_USAGE] = usage.model_dump(exclude_none=True)
        return made

    return _make_message_chunk_from_anthropic_event


def _keeping_arguments(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep argument texts that are JSON but no object, which the class takes for empty ones or fails on."""

    def _create_chat_result(self: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        odd: dict[str, str] = {}
        found = list(_odd_calls(response))
        if found:
            response = response if isinstance(response, dict) else response.model_dump(warnings=False)
            for call in _odd_calls(response):
                odd[call["id"]] = call["function"]["arguments"]
                call["function"]["arguments"] = "{}"
        result = original(self, response, *args, **kwargs)
        if odd:
            for generation in result.generations:
                generation.message.response_metadata[RAW_ARGUMENTS] = dict(odd)
        return result

    return _create_chat_result


def _odd_calls(response: Any) -> Iterator[Any]:
    for choice in _field(response, "choices") or ():
        for call in _field(_field(choice, "message"), "tool_calls") or ():
            text = _field(_field(call, "function"), "arguments")
            if isinstance(text, str) and _field(call, "id") and _is_odd(text):
                yield call


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _is_odd(text: str) -> bool:
    if text.lstrip().startswith("{") or not text.strip():
        return False
    try:
        return not isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False


_KEEPING: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "_convert_chunk_to_generation_chunk": _keeping_refusal,
    "_create_chat_result": _keeping_arguments,
    "_make_message_chunk_from_anthropic_event": _keeping_prompt_tokens,
}
