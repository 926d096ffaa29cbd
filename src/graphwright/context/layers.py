"""One layer of context: where its text comes from, and how it is made shorter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from graphwright.exceptions import ConfigurationError

__all__ = ["ContextLayer", "TrimStrategy", "trimmed"]

TrimStrategy = Literal["truncate", "keep_end", "drop"]
"""How a layer without enough room is cut: to its beginning, to its end, or not shown at all."""

Content = str | Callable[[Mapping[str, Any]], str | Awaitable[str | None] | None]

CUT = "[...]"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextLayer:
    """A named piece of context."""

    name: str

    content: Content | None = None
    """The text, or a function, async or not, that makes it from the context of the run; `None` or an empty text leaves
    the layer out. What belongs to one caller comes from a function: a text is shown to everybody."""

    priority: int = 5
    """Layers of the highest are given room first."""

    required: bool = False
    """Whether the layer is shown in full, whatever it costs."""

    trim_strategy: TrimStrategy = "truncate"

    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours; it comes back in the report."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError(f"a layer is named {self.name!r}; give it a name")
        if self.content is not None and not isinstance(self.content, str) and not callable(self.content):
            raise ConfigurationError(
                f"content of layer {self.name!r} is {self.content!r}; give a text, or a function of the run's context"
            )
        if isinstance(self.priority, bool) or not isinstance(self.priority, int):
            raise ConfigurationError(f"priority of layer {self.name!r} is {self.priority!r}; give a whole number")
        if self.trim_strategy not in get_args(TrimStrategy):
            raise ConfigurationError(
                f"trim_strategy of layer {self.name!r} is {self.trim_strategy!r}; "
                f"use one of {', '.join(get_args(TrimStrategy))}"
            )


def trimmed(text: str, room: int, strategy: TrimStrategy, count: Callable[[str], int]) -> str:
    """Return as much of `text` as has at most `room` tokens, cut between words where there are any."""
    if count(text) <= room:
        return text
    if strategy == "drop" or count(CUT) >= room:
        return ""

    def cut(length: int) -> str:
        if strategy == "keep_end":
            kept = text[len(text) - length :] if length else ""
            _, space, rest = kept.partition(" ")
            return f"{CUT} {rest if space else kept}"
        kept = text[:length]
        rest, space, _ = kept.rpartition(" ")
        return f"{rest if space else kept} {CUT}"

    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if count(cut(middle)) <= room:
            least = middle
        else:
            most = middle - 1
    return cut(least) if least else ""
