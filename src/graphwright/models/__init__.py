"""Models: what a string or an object means, and the one place where a model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.models.base import (
    ChatModel,
    Embedder,
    ModelCapabilities,
    ModelReply,
    ModelRequest,
    StreamingChatModel,
)
from graphwright.models.call import call_model
from graphwright.models.check import ModelCheck, check_model
from graphwright.models.registry import as_model
from graphwright.models.reply import calls_of
from graphwright.models.retry import DEFAULT_RETRY, NO_RETRY, RetryPolicy

if TYPE_CHECKING:
    from graphwright.models.adapters import LangChainModel, RunnableModel, supports_tools

__all__ = [
    "DEFAULT_RETRY",
    "NO_RETRY",
    "ChatModel",
    "Embedder",
    "LangChainModel",
    "ModelCapabilities",
    "ModelCheck",
    "ModelReply",
    "ModelRequest",
    "RetryPolicy",
    "RunnableModel",
    "StreamingChatModel",
    "as_model",
    "call_model",
    "calls_of",
    "check_model",
    "supports_tools",
]

_ADAPTERS = frozenset({"LangChainModel", "RunnableModel", "supports_tools"})


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:
        from graphwright.models import adapters

        value = globals()[name] = getattr(adapters, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
