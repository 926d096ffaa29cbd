"""The layers around a run, in one fixed order.

A layer awaits `call_next(request)` or answers itself. A layer that is off is not in the stack.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphwright.runtime.durable import Durability, durable_layer
from graphwright.runtime.layers.cache import CacheUse, cache_layer
from graphwright.runtime.layers.caller import caller_layer
from graphwright.runtime.layers.deadline import deadline_layer
from graphwright.runtime.layers.prompt import prompt_layer
from graphwright.runtime.layers.store import store_layer
from graphwright.runtime.request import RunRequest

if TYPE_CHECKING:
    from graphwright.conversations.base import AppendingStore
    from graphwright.engine.graph import PromptGraph

__all__ = ["Handler", "Layer", "build_stack"]

Handler = Callable[[RunRequest], Awaitable[Any]]
Layer = Callable[[RunRequest, Handler], Awaitable[Any]]


def build_stack(
    core: Handler,
    *,
    max_seconds: float = 0,
    durability: Durability | None = None,
    graph: Callable[[], PromptGraph] | None = None,
    store: AppendingStore | None = None,
    max_messages: int = 0,
    shapers: Sequence[Layer] = (),
    cache: CacheUse | None = None,
    guards: Sequence[Any] = (),
    watching: Layer | None = None,
) -> Handler:
    """Return `core` with the layers that the options ask for around it, outermost first."""
    layers: list[Layer] = [
        caller_layer,  # outermost: every other layer may ask who the caller is
    ]
    if watching is not None:
        # Outside of all that can end a run: whoever watches is told of every end, and knows the caller.
        layers.append(watching)
    if store is not None:
        log = durability.log if durability is not None else None
        # Outside of the deadline and of the log: it keeps failed turns too, and no deadline cuts it.
        layers.append(store_layer(store, max_messages=max_messages, log=log))
    if guards:
        from graphwright.runtime.layers.guard import guard_layer

        # Outside of the log, which keeps what a run is asked. What is refused here is no turn for the store either.
        layers.append(guard_layer(guards, max_seconds=max_seconds))
    if durability is not None:
        assert graph is not None
        # Outside of the deadline: how a run ended is written also when its time ran out.
        layers.append(durable_layer(durability, graph))
    if max_seconds:
        layers.append(deadline_layer(max_seconds))
    # A prompt is made within the deadline, from the outside in: flow, memory, strategy, context.
    layers.extend(shapers)
    if shapers or durability is not None:
        # Inside of what makes the prompt: what it made is kept for when the run goes on, and not made again then.
        layers.append(prompt_layer)
    if cache is not None:
        # Inside of whatever adds to the request, for all of it is a part of the key, and of the log: an answer that
        # is known is a run, too.
        layers.append(cache_layer(cache))
    return _compose(layers, core)


def _compose(layers: Sequence[Layer], core: Handler) -> Handler:
    handler = core
    for layer in reversed(layers):
        handler = _around(layer, handler)
    return handler


def _around(layer: Layer, call_next: Handler) -> Handler:
    return lambda request: layer(request, call_next)
