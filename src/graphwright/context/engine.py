"""The context engine: layers of text that share a model's window with its instructions, its tools and the talk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from weakref import ref

from graphwright._internal.aio import call_maybe_async
from graphwright._internal.jsonio import dumps
from graphwright.context.budget import Assembled, ContextReport, share_out
from graphwright.context.layers import Content, ContextLayer, TrimStrategy
from graphwright.context.window import window_of
from graphwright.engine.compaction.settings import estimate_tokens
from graphwright.exceptions import ConfigurationError
from graphwright.types import ToolSpec

__all__ = ["UNKNOWN_WINDOW", "ContextEngine"]

logger = logging.getLogger(__name__)

UNKNOWN_WINDOW = 32_768
"""The window that is assumed of a model that does not say how large its own is."""

_TOOL_OVERHEAD = 8

_last: ContextVar[tuple[ref[ContextEngine], ContextReport] | None] = ContextVar("graphwright_context", default=None)


class ContextEngine:
    """Layers of context under one budget. One engine serves any number of runs at once."""

    def __init__(
        self,
        *,
        model_context_window: int = 0,
        model: Any = None,
        response_reserve: int = 4096,
        tokenizer: Any = None,
        auto_register_builtins: bool = True,
        layer_share: float = 0.5,
        on_report: Callable[[ContextReport], Any] | None = None,
    ) -> None:
        """Share out `model_context_window` tokens; 0 asks the profile of `model`, else of the agent's model.

        `response_reserve` is kept free for the answer, and is at most a quarter of the window. `layer_share` is the
        part of what instructions and tools leave that layers may take; the rest is the conversation's. `tokenizer` is
        a function that counts the tokens of a text, or has `encode(text)`; without one they are counted by the model
        where it can, else estimated, and nothing is downloaded. `auto_register_builtins=False` does not count
        instructions and tool definitions. `on_report` is called with the report of every run.

        Raises:
            ConfigurationError: a value does not fit.
        """
        for name, value in (("model_context_window", model_context_window), ("response_reserve", response_reserve)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} is {value!r}; give a number of tokens")
        if not 0 < layer_share < 1:
            raise ConfigurationError(f"layer_share is {layer_share!r}; give a number between 0 and 1")
        self._window = model_context_window or (window_of(model) if model is not None else None) or 0
        self._reserve = response_reserve
        self._count = _counter(tokenizer)
        self._counts_all = auto_register_builtins
        self._share = layer_share
        self._on_report = on_report
        self._layers: dict[str, ContextLayer] = {}
        self._latest: ContextReport | None = None
        self._self = ref(self)

    @property
    def layers(self) -> tuple[ContextLayer, ...]:
        """The layers, in the order in which they are shown."""
        return tuple(self._layers.values())

    def add_layer(
        self,
        name: str,
        *,
        priority: int = 5,
        content: Content | None = None,
        required: bool = False,
        trim_strategy: TrimStrategy = "truncate",
        metadata: Mapping[str, Any] | None = None,
    ) -> ContextLayer:
        """Add a layer behind those that there are; see `ContextLayer`.

        Raises:
            ConfigurationError: there is one of this name, or a value does not fit.
        """
        if name in self._layers:
            raise ConfigurationError(f"there is a layer {name!r} already; use set_content, or remove_layer first")
        layer = ContextLayer(
            name=name,
            content=content,
            priority=priority,
            required=required,
            trim_strategy=trim_strategy,
            metadata=dict(metadata or {}),
        )
        self._layers[name] = layer
        return layer

    def set_content(self, name: str, content: Content | None) -> None:
        """Give a layer another content, for every run that begins from now on.

        Raises:
            ConfigurationError: there is no such layer.
        """
        self._layers[name] = replace(self._named(name), content=content)

    def remove_layer(self, name: str) -> None:
        """Take a layer away.

        Raises:
            ConfigurationError: there is no such layer.
        """
        self._named(name)
        del self._layers[name]

    def window(self, model: Any = None) -> int:
        """Return the window in tokens: the given one, else that of the model's profile, else `UNKNOWN_WINDOW`."""
        return self._window or (window_of(model) if model is not None else None) or UNKNOWN_WINDOW

    def counter(self, model: Any = None) -> Callable[[str], int]:
        """Return what counts the tokens of a text."""
        own = getattr(model, "count_tokens", None)
        return self._count or (own if callable(own) else estimate_tokens)

    async def assemble(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        instructions: str = "",
        tools: Iterable[ToolSpec] = (),
        model: Any = None,
    ) -> Assembled:
        """Return the layers that fit, for a run with this context, these instructions, tools and model.

        A layer whose function raises is left out, and the report says why; a required one lets the error through.

        Raises:
            ConfigurationError: what has to be shown leaves nothing for the conversation.
        """
        texts = [(layer, *await _text_of(layer, context or {})) for layer in self.layers]
        count = self.counter(model)
        window = self.window(model)
        assembled = share_out(
            texts,
            window=window,
            reserve=self._reserved(window),
            instructions=count(instructions) if self._counts_all and instructions else 0,
            tools=self._tool_tokens(tools, model),
            share=self._share,
            count=count,
        )
        self._latest = assembled.report
        _last.set((self._self, assembled.report))
        if self._on_report is not None:
            self._on_report(assembled.report)
        return assembled

    def limit(self, tools: Iterable[ToolSpec] = (), model: Any = None) -> int:
        """Return the most tokens of system text and conversation together, with these tools and this model."""
        window = self.window(model)
        return max(1, window - self._reserved(window) - self._tool_tokens(tools, model))

    def _reserved(self, window: int) -> int:
        return min(self._reserve, window // 4)

    def _tool_tokens(self, tools: Iterable[ToolSpec], model: Any) -> int:
        count = self.counter(model)
        return sum(_size(tool, count) for tool in tools) if self._counts_all else 0

    def get_report(self) -> ContextReport | None:
        """Return the report of the run that this task made last, else of the one that began last."""
        seen = _last.get()
        return seen[1] if seen is not None and seen[0]() is self else self._latest

    def _named(self, name: str) -> ContextLayer:
        if name not in self._layers:
            raise ConfigurationError(f"there is no layer {name!r}; there are {', '.join(self._layers) or 'none'}")
        return self._layers[name]


async def _text_of(layer: ContextLayer, context: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of a layer, and what went wrong with making it."""
    if layer.content is None or isinstance(layer.content, str):
        return layer.content or "", ""
    try:
        return str(await call_maybe_async(layer.content, context) or ""), ""
    except Exception as error:  # the run goes on without the layer, which the report tells
        if layer.required:
            raise
        logger.exception("the context layer %r could not be made", layer.name)
        return "", f"{type(error).__name__}: {error}"


def _size(tool: ToolSpec, count: Callable[[str], int]) -> int:
    return _TOOL_OVERHEAD + count(tool.name) + count(tool.description) + count(dumps(tool.parameters))


def _counter(tokenizer: Any) -> Callable[[str], int] | None:
    if tokenizer is None:
        return None
    encode = getattr(tokenizer, "encode", None)
    if callable(encode):
        return lambda text: len(encode(text))
    if callable(tokenizer):
        counted: Callable[[str], int] = tokenizer
        return counted
    raise ConfigurationError(
        f"tokenizer is {tokenizer!r}; give a function that counts tokens, or an object with encode()"
    )
