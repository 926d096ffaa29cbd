"""Share out the room of a window: what is told, what is cut for lack of room, and what is left for the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwright.context.layers import ContextLayer, trimmed
from graphwright.exceptions import ConfigurationError

__all__ = ["Assembled", "ContextReport", "LayerReport", "share_out"]

_SEPARATOR = "\n\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerReport:
    """What became of one layer."""

    name: str
    priority: int
    tokens: int
    """Those of its whole text."""
    shown_tokens: int
    """Those that the model is shown; 0 where the layer was dropped."""
    required: bool = False
    error: str = ""
    """Why its text could not be made; it is left out then."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        """Whether the model is not shown all of it."""
        return self.shown_tokens < self.tokens or bool(self.error)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextReport:
    """How the window of one run was shared out, in tokens."""

    window: int
    response_reserve: int
    instructions: int
    tools: int
    layers: tuple[LayerReport, ...] = ()
    """In the order in which they are shown."""
    conversation: int = 0
    """What is left for the conversation; its tool loop is compacted to stay within."""

    @property
    def cut(self) -> tuple[str, ...]:
        """The names of the layers that the model is not shown, or not all of."""
        return tuple(layer.name for layer in self.layers if layer.cut)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembled:
    """The context of one run."""

    text: str
    """The layers, to be put after the instructions."""
    max_tokens: int
    """Most tokens of the system text and the conversation together."""
    report: ContextReport


def share_out(
    texts: Sequence[tuple[ContextLayer, str, str]],
    *,
    window: int,
    reserve: int,
    instructions: int,
    tools: int,
    share: float,
    count: Callable[[str], int],
) -> Assembled:
    """Return what fits of the layers, each given with its text and what went wrong with making it.

    They get at most `share` of what reserve, tools and instructions leave; required ones are shown in any case.

    Raises:
        ConfigurationError: what has to be shown leaves nothing for the conversation.
    """
    left = window - reserve - tools - instructions
    shown, taken = _fitting(texts, int(left * share), count)
    left -= taken
    if left <= 0:
        raise ConfigurationError(
            f"the window of {window} tokens has no room for the conversation: {reserve} are reserved for the answer, "
            f"the tools take {tools}, the instructions {instructions}, and the required layers the rest; shorten one "
            "of them, or give model_context_window= where the window is larger"
        )
    report = ContextReport(
        window=window,
        response_reserve=reserve,
        instructions=instructions,
        tools=tools,
        layers=tuple(_reported(each, shown, count) for each in texts if each[1] or each[2]),
        conversation=left,
    )
    text = _SEPARATOR.join(_headed(layer, shown[layer.name]) for layer, _, _ in texts if layer.name in shown)
    return Assembled(text=text, max_tokens=window - reserve - tools, report=report)


def _fitting(
    texts: Sequence[tuple[ContextLayer, str, str]], room: int, count: Callable[[str], int]
) -> tuple[dict[str, str], int]:
    """Return what is shown of each layer by name, and the tokens that all of it takes."""
    shown: dict[str, str] = {}
    taken = 0
    ordered = sorted(texts, key=lambda each: (not each[0].required, -each[0].priority))
    for layer, text, _ in ordered:
        if not text:
            continue
        if not layer.required and count(_headed(layer, text) + _SEPARATOR) > room - taken:
            text = trimmed(text, room - taken - count(_headed(layer, _SEPARATOR)), layer.trim_strategy, count)
        cost = count(_headed(layer, text) + _SEPARATOR)
        if text and (layer.required or cost <= room - taken):
            shown[layer.name] = text
            taken += cost
    return shown, taken


def _headed(layer: ContextLayer, text: str) -> str:
    return f"{layer.name}:\n{text}"


def _reported(each: tuple[ContextLayer, str, str], shown: dict[str, str], count: Callable[[str], int]) -> LayerReport:
    layer, whole, error = each
    return LayerReport(
        name=layer.name,
        priority=layer.priority,
        tokens=count(whole),
        shown_tokens=count(shown.get(layer.name, "")),
        required=layer.required,
        error=error,
        metadata=layer.metadata,
    )
