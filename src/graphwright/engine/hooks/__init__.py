"""Hooks: objects that watch the boundaries of nodes, tools and graph changes, and those that come with the engine."""

from graphwright.engine.hooks.budget import BudgetHook
from graphwright.engine.hooks.cycle import CycleDetectionHook
from graphwright.engine.hooks.dispatch import Hook, Hooks
from graphwright.engine.hooks.log import LoggingHook
from graphwright.engine.hooks.metrics import MetricsHook
from graphwright.engine.hooks.timing import TimingHook

__all__ = [
    "BudgetHook",
    "CycleDetectionHook",
    "Hook",
    "Hooks",
    "LoggingHook",
    "MetricsHook",
    "TimingHook",
]
