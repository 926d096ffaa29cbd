"""Lessons from failed tool calls, shown to later runs."""

from __future__ import annotations

from graphwright.strategy.adaptive import AdaptiveStrategyConfig, AdaptiveStrategyManager
from graphwright.strategy.lessons import Failure, InMemoryLessons, Lesson, LessonBook, LessonStore

__all__ = [
    "AdaptiveStrategyConfig",
    "AdaptiveStrategyManager",
    "Failure",
    "InMemoryLessons",
    "Lesson",
    "LessonBook",
    "LessonStore",
]
