"""What a model is told besides the conversation, in layers that share its window."""

from __future__ import annotations

from graphwright.context.budget import Assembled, ContextReport, LayerReport
from graphwright.context.engine import ContextEngine
from graphwright.context.layers import ContextLayer, TrimStrategy
from graphwright.context.window import window_of

__all__ = [
    "Assembled",
    "ContextEngine",
    "ContextLayer",
    "ContextReport",
    "LayerReport",
    "TrimStrategy",
    "window_of",
]
