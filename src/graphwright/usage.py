"""Token usage of model calls: read once, added once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Usage"]


@dataclass(slots=True)
class Usage:
    """Tokens of one model call, or of a whole run. `None` means that the provider did not say."""

    input_tokens: int | None = None
    """Everything the model read, cached tokens included."""

    output_tokens: int | None = None
    """Everything the model wrote, reasoning included."""

    total_tokens: int | None = None

    cached_tokens: int | None = None
    """The part of `input_tokens` that the provider read from its cache."""

    reasoning_tokens: int | None = None
    """The part of `output_tokens` that the model spent on reasoning."""

    def add(self, other: Usage) -> None:
        """Add the figures of another call to this one; a figure that is `None` on both sides stays `None`."""
        if other.input_tokens is not None:
            self.input_tokens = (self.input_tokens or 0) + other.input_tokens
        if other.output_tokens is not None:
            self.output_tokens = (self.output_tokens or 0) + other.output_tokens
        if other.total_tokens is not None:
            self.total_tokens = (self.total_tokens or 0) + other.total_tokens
        if other.cached_tokens is not None:
            self.cached_tokens = (self.cached_tokens or 0) + other.cached_tokens
        if other.reasoning_tokens is not None:
            self.reasoning_tokens = (self.reasoning_tokens or 0) + other.reasoning_tokens

    def as_dict(self) -> dict[str, int | None]:
        """Return the figures under the names that a run's report uses."""
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any] | None) -> Usage | None:
        """Read LangChain's `usage_metadata`; `None` when there is none.

        Cached and reasoning tokens are parts of input and output there, so nothing is added on top.
        """
        if not metadata:
            return None
        given_in, given_out = metadata.get("input_tokens"), metadata.get("output_tokens")
        total = metadata.get("total_tokens")
        if total is None and given_in is not None and given_out is not None:
            total = given_in + given_out
        input_details = metadata.get("input_token_details")
        output_details = metadata.get("output_token_details")
        return cls(
            given_in,
            given_out,
            total,
            input_details.get("cache_read") if input_details else None,
            output_details.get("reasoning") if output_details else None,
        )
