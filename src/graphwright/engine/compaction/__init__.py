"""Keep what a model is shown small while a tool loop grows: a view over the conversation, which itself stays whole."""

from graphwright.engine.compaction.settings import SCOPES, ContextCompaction, estimate_tokens

__all__ = ["SCOPES", "ContextCompaction", "estimate_tokens"]
