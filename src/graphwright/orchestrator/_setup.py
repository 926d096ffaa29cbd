"""What a bot was built with, checked once; shared by all of its runs and changed by none."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwright.models.base import ChatModel
from graphwright.orchestrator.memory import Memories
from graphwright.orchestrator.skills import Skill
from graphwright.tools import ToolSet
from graphwright.types import ToolSpec

__all__ = ["BotSetup"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BotSetup:
    """The fixed parts of a bot."""

    strong: ChatModel
    fast: ChatModel
    vision: ChatModel
    instructions: str
    tools: ToolSet
    """What can be called from the start, `load_skill` included."""
    skill_tools: Mapping[str, ToolSet]
    """What a lazy skill brings once it is loaded, by its name."""
    risks: Mapping[str, int]
    signals: tuple[ToolSpec, ...]
    """The specs of the calls that are no actions: plan and questions."""
    skills: Sequence[Skill] = ()
    skills_eager: bool = False
    memory: Memories | None = None
    guards: Sequence[Any] = ()
    prohibited: Sequence[str] = ()
    hardening: bool = True
    untrusted: frozenset[str] = frozenset()
    input_guards: Sequence[Any] = ()
    output_guards: Sequence[Any] = ()
    output_guard_action: str = "annotate"
    buffer_output: bool = True
    """Whether text is held until the output guards have seen it."""
    planning: bool = False
    questions: bool = False
    verification: bool = False
    verification_on_error: str = "accept"
    compaction: bool = False
    compaction_threshold: int = 60000
    compaction_keep: int = 10
    prompt_cache: bool = False
    max_parallel_tools: int = 8
    tool_timeout: float | None = 120.0
    approval_timeout: float | None = None
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("graphwright.orchestrator"))
