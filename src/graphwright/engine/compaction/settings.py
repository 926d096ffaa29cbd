"""How a long tool loop is compacted, and how tokens are counted for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of

__all__ = ["SCOPES", "ContextCompaction", "estimate_tokens"]

SCOPES = ("full", "auto", "ledger", "scoped")
"""The values of a node's `context_scope`."""

_FACTS_PER_RESULT = 8
_MEDIA_TOKENS = 1000


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes in UTF-8, rounded up. Nothing is downloaded."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextCompaction:
    """When and how far the view of a tool loop is compacted. The conversation of the run is never changed."""

    enabled: bool = True
    """`False` always shows the whole conversation."""

    after_tool_results: int = 6
    """An `"auto"` node compacts from this many tool results of the run on; eight times as many facts are kept."""

    max_tokens: int | None = None
    """Most tokens of the messages shown; `None` is no limit. Definitions of tools are not counted."""

    keep_result_chars: int = 2000
    """Longest result text of a fact, in characters; a call that was made again is kept in full."""

    history_messages: int = 6
    """How many messages before the question are shown at length; each older one is a line."""

    history_chars: int = 400
    """Characters shown of each of these."""

    count_tokens: Callable[[str], int] | None = None
    """Counts the tokens of a text; `None` takes the model's own counter, or an estimate."""

    reuse_results: bool | Iterable[str] = False
    """Tools whose repeated calls are answered from the earlier result: names, with `*`, or `True` for all."""

    max_result_chars: int | None = None
    """Longest tool result that is shown, in characters; `None` shows each as it is."""

    def __post_init__(self) -> None:
        for name, least in (("after_tool_results", 1), ("keep_result_chars", 1), ("history_chars", 1)):
            _check(name, getattr(self, name), least)
        _check("history_messages", self.history_messages, 0)
        for name in ("max_tokens", "max_result_chars"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), 1)
        if self.count_tokens is not None and not callable(self.count_tokens):
            raise ConfigurationError(f"count_tokens is {self.count_tokens!r}; give a function of a text")
        names = self.reuse_results
        if isinstance(names, bool):
            return
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"reuse_results is {names!r}; give a list of tool names, such as [{str(names)!r}]")
        kept = tuple(names)
        if not all(isinstance(name, str) for name in kept):
            raise TypeError(f"reuse_results is {names!r}; a tool name is a text")
        object.__setattr__(self, "reuse_results", kept)

    @classmethod
    def coerce(cls, value: Any) -> ContextCompaction:
        """Return the settings for what a caller may give: None or True, False, a number of results, or settings.

        Raises:
            ConfigurationError: the value is none of these.
        """
        if isinstance(value, cls):
            return value
        if value is None or isinstance(value, bool):
            return cls(enabled=value is not False)
        if isinstance(value, int) and value >= 1:
            return cls(after_tool_results=value)
        raise ConfigurationError(
            f"context compaction is {value!r}; give True, False, a number of tool results from 1, "
            "or a ContextCompaction"
        )

    @property
    def most_facts(self) -> int:
        """Most facts that the ledger holds."""
        return self.after_tool_results * _FACTS_PER_RESULT

    def reuses(self, tool_name: str) -> bool:
        """Return whether repeated calls of a tool are answered from their earlier result."""
        names = self.reuse_results
        if isinstance(names, bool):
            return names
        return any(fnmatchcase(tool_name, name) for name in names)

    def tokens(self, messages: Iterable[Any]) -> int:
        """Return about how many tokens these messages have."""
        count = self.count_tokens or estimate_tokens
        return sum(count(_counted(message)) + _MEDIA_TOKENS * _media_in(message) for message in messages)

    def with_budget(self, max_tokens: int, count_tokens: Callable[[str], int] | None = None) -> ContextCompaction:
        """Return these settings with a token limit that is no higher, and a counter where they have none."""
        limit = max_tokens if self.max_tokens is None else min(self.max_tokens, max_tokens)
        return replace(self, max_tokens=limit, count_tokens=self.count_tokens or count_tokens)


def _check(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} is {value!r}; give a whole number from {least}")


def _counted(message: Any) -> str:
    calls = getattr(message, "tool_calls", None)
    text = text_of(message)
    return text + dumps([[call["name"], call["args"]] for call in calls]) if calls else text


def _media_in(message: Any) -> int:
    content = getattr(message, "content", None)
    if not isinstance(content, list):
        return 0
    return sum(isinstance(block, dict) and ("image" in str(block.get("type")) or "data" in block) for block in content)
