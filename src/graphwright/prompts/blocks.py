"""Blocks of prompt text with a priority, and sets of them that stay within a budget.

A block is shown the context of the run, a dict. Blocks stand in the order in which they were given; the priority
only decides which ones go when there is no room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphwright.exceptions import ConfigurationError

__all__ = ["Block", "BlockSet", "Selection"]

Context = Mapping[str, Any]

_CHARS_PER_TOKEN = 4
_CUT = "..."


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a prompt."""

    name: str
    """Shown in `NodeResult.blocks_used` and `blocks_dropped`."""

    content: str | Callable[[Context], str]
    """The text, or a function that makes it from the context. `{key}` in a text is not filled in."""

    priority: int = 5
    """The block with the lowest goes first when a set is over its budget."""

    required: bool = False
    """Whether a set keeps the block whatever it costs."""

    when: Callable[[Context], object] | None = None
    """The block is left out where this returns something false."""

    max_chars: int | None = None
    """Longer texts are cut to this many characters, the mark `...` included."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigurationError("a block has an empty name; give it one")
        if not isinstance(self.content, str) and not callable(self.content):
            raise ConfigurationError(f"content of block {self.name!r} is {self.content!r}; give a text or a function")
        if self.max_chars is not None and self.max_chars <= len(_CUT):
            raise ConfigurationError(f"max_chars of block {self.name!r} is {self.max_chars!r}; give more than 3")

    def render(self, context: Context | None = None) -> str:
        """Return the text for this context, or an empty string where the block does not apply."""
        known = {} if context is None else context
        if self.when is not None and not self.when(known):
            return ""
        text = self.content if isinstance(self.content, str) else self.content(known) or ""
        if self.max_chars is not None and len(text) > self.max_chars:
            text = text[: self.max_chars - len(_CUT)] + _CUT
        return text


@dataclass(frozen=True, slots=True)
class Selection:
    """What a set of blocks shows, and what it left out for lack of room."""

    text: str
    used: tuple[str, ...]
    dropped: tuple[str, ...]


class BlockSet:
    """Blocks that together keep to a budget: a node takes it like a single block."""

    def __init__(
        self,
        blocks: Iterable[Block | str],
        *,
        name: str = "blocks",
        max_tokens: int | None = None,
        max_chars: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        separator: str = "\n\n",
    ) -> None:
        """Keep to `max_tokens` or `max_chars`, whichever is reached first; `None` is no limit.

        `count_tokens` counts the tokens of a text; without it, four characters are taken for one. A plain string
        is a block named after its place, `block_1` and so on.

        Raises:
            ConfigurationError: two blocks have one name, or a budget is below 1.
        """
        self.name = name
        self.blocks = tuple(
            Block(f"block_{place}", block) if isinstance(block, str) else block for place, block in enumerate(blocks, 1)
        )
        names = [block.name for block in self.blocks]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"two blocks are named {twice[0]!r}; give each its own name")
        for what, limit in (("max_tokens", max_tokens), ("max_chars", max_chars)):
            if limit is not None and limit < 1:
                raise ConfigurationError(f"{what} is {limit!r}; give at least 1, or None for no limit")
        self.max_tokens = max_tokens
        self.max_chars = max_chars
        self.separator = separator
        self._count = count_tokens or _estimate

    def __add__(self, other: BlockSet | Iterable[Block | str]) -> BlockSet:
        """Return a set with the blocks of `other` behind these, under the budget of this one."""
        more = other.blocks if isinstance(other, BlockSet) else tuple(other)
        return BlockSet(
            [*self.blocks, *more],
            name=self.name,
            max_tokens=self.max_tokens,
            max_chars=self.max_chars,
            count_tokens=self._count,
            separator=self.separator,
        )

    def select(self, context: Context | None = None) -> Selection:
        """Return what fits. The lowest priority goes first, and of equal ones the last.

        Required blocks stay, also when they alone are over the budget.
        """
        texts = {block.name: text for block in self.blocks if (text := block.render(context))}
        shown = [block for block in self.blocks if block.name in texts]
        droppable = sorted((block for block in reversed(shown) if not block.required), key=lambda block: block.priority)
        dropped: set[str] = set()
        for block in droppable:
            if self._fits(self._joined(texts, dropped)):
                break
            dropped.add(block.name)
        # A large block may have gone after smaller ones: what still fits comes back, the most important first.
        for block in reversed(droppable):
            if block.name in dropped and self._fits(self._joined(texts, dropped - {block.name})):
                dropped.discard(block.name)
        return Selection(
            self._joined(texts, dropped),
            tuple(block.name for block in shown if block.name not in dropped),
            tuple(block.name for block in shown if block.name in dropped),
        )

    def render(self, context: Context | None = None) -> str:
        """Return the text of what fits."""
        return self.select(context).text

    def _joined(self, texts: Mapping[str, str], dropped: set[str]) -> str:
        return self.separator.join(text for name, text in texts.items() if name not in dropped)

    def _fits(self, text: str) -> bool:
        if self.max_chars is not None and len(text) > self.max_chars:
            return False
        return self.max_tokens is None or self._count(text) <= self.max_tokens


def _estimate(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)
