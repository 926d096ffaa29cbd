"""Check what a bot is given, and make its fixed parts of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.models import as_model
from graphwright.models.base import ChatModel
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.bot_tools import LoadSkillTool, as_bot_tool
from graphwright.orchestrator.guards import (
    ProhibitedActionsGuard,
    RiskThresholdGuard,
    as_guards,
    untrusted_names,
)
from graphwright.orchestrator.language_models import as_language_model
from graphwright.orchestrator.memory import Memories
from graphwright.orchestrator.planning import PLAN_TOOL_NAMES, SET_PLAN, UPDATE_STEP
from graphwright.orchestrator.questions import ASK_USER_TOOL_NAME, AskUserQuestionTool
from graphwright.orchestrator.risk import risk_of
from graphwright.orchestrator.skills import LOAD_SKILL_NAME, Skill, load_skills, merge_tools
from graphwright.tools import ToolSet
from graphwright.types import ToolSpec

__all__ = ["bot_setup"]

_ACTIONS = ("annotate", "block", "retry")


def bot_setup(
    *,
    strong_model: Any,
    fast_model: Any,
    vision_model: Any,
    instructions: Any,
    tools: Iterable[Any] | None,
    memory_path: Any,
    memory_scope: Any,
    memory_writeback: bool,
    risk_threshold: int | None,
    logger: logging.Logger | None,
    questions: bool,
    planning: bool,
    skills: Sequence[Any] | None,
    skills_dir: Any,
    skills_eager: bool,
    max_parallel_tools: int,
    tool_timeout: float | None,
    prompt_cache: bool,
    compaction: bool,
    compaction_threshold: int,
    compaction_keep: int,
    verification: bool,
    verification_on_error: str,
    tool_guards: Any,
    prohibited: Sequence[str] | None,
    hardening: bool,
    input_guards: Any,
    output_guards: Any,
    output_guard_action: str,
    buffer_output: bool,
    untrusted: Sequence[str] | None,
    approval_timeout: float | None,
) -> BotSetup:
    """Return the fixed parts of a bot.

    Raises:
        ConfigurationError: an argument does not fit; the message names it.
    """
    if not isinstance(instructions, str):
        raise ConfigurationError(f"instructions is {instructions!r}; give a text")
    if output_guard_action not in _ACTIONS:
        raise ConfigurationError(f"output_guard_action is {output_guard_action!r}; use one of {', '.join(_ACTIONS)}")
    if verification_on_error not in ("accept", "reject"):
        raise ConfigurationError(f"verification_on_error is {verification_on_error!r}; use 'accept' or 'reject'")
    _seconds("tool_timeout_s", tool_timeout)
    _seconds("approval_timeout_s", approval_timeout)
    _at_least(1, "compaction_threshold_tokens", compaction_threshold)
    _at_least(1, "compaction_keep_messages", compaction_keep)
    strong = as_model(as_language_model(strong_model))
    fast = as_model(as_language_model(fast_model)) if fast_model else strong
    vision = as_model(as_language_model(vision_model)) if vision_model else strong
    packs = _skills(skills, skills_dir)
    offered, by_skill = _tools(tools, packs, planning=planning, questions=questions, eager=skills_eager)
    everything = list(offered)
    for brought in by_skill.values():
        everything += [entry for entry in brought if entry.name not in offered]
    rules = [rule.strip() for rule in _texts("prohibited", prohibited) if rule.strip()]
    guards = list(as_guards(tool_guards, name="tool_guards"))
    if risk_threshold is not None:
        guards.insert(0, RiskThresholdGuard(max_risk=risk_threshold))
    if rules:
        guards.append(ProhibitedActionsGuard(fast, rules))
    return BotSetup(
        strong=strong,
        fast=fast,
        vision=vision,
        instructions=instructions,
        tools=offered,
        skill_tools=by_skill,
        risks={entry.name: risk_of(entry) for entry in everything},
        signals=_signals(planning=planning, questions=questions),
        skills=packs,
        skills_eager=skills_eager,
        memory=Memories(memory_path, scope=memory_scope),
        guards=guards,
        prohibited=rules,
        hardening=hardening,
        untrusted=frozenset(untrusted_names(untrusted, everything)),
        input_guards=as_guards(input_guards, name="input_guards"),
        output_guards=as_guards(output_guards, name="output_guards"),
        output_guard_action=output_guard_action,
        buffer_output=buffer_output,
        planning=planning,
        questions=questions,
        verification=verification,
        verification_on_error=verification_on_error,
        compaction=compaction,
        compaction_threshold=compaction_threshold,
        compaction_keep=max(2, compaction_keep),
        prompt_cache=prompt_cache and _is_anthropic(strong_model, strong),
        max_parallel_tools=max(1, int(max_parallel_tools)),
        tool_timeout=tool_timeout,
        approval_timeout=approval_timeout,
        **({"logger": logger} if logger is not None else {}),
    )


def _skills(skills: Sequence[Any] | None, skills_dir: Any) -> list[Skill]:
    packs = list(skills or ())
    for pack in packs:
        if not isinstance(pack, Skill):
            raise ConfigurationError(f"skills has {pack!r}; give Skill objects, or a folder as skills_dir")
    if skills_dir is not None:
        packs += load_skills(skills_dir)
    names = [pack.name for pack in packs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"two skills have the name {twice!r}; rename one")
    return packs


def _tools(
    tools: Iterable[Any] | None, packs: list[Skill], *, planning: bool, questions: bool, eager: bool
) -> tuple[ToolSet, dict[str, ToolSet]]:
    """Return what can be called from the start, and what each skill brings when it is loaded."""
    if isinstance(tools, (str, bytes)) or (tools is not None and not isinstance(tools, Iterable)):
        raise ConfigurationError(f"tools is {tools!r}; give a list")
    given = [entry for entry in tools or () if not (questions and isinstance(entry, AskUserQuestionTool))]
    reserved = {*(PLAN_TOOL_NAMES if planning else ()), *((ASK_USER_TOOL_NAME,) if questions else ())}
    lazy = bool(packs) and not eager
    if lazy:
        reserved.add(LOAD_SKILL_NAME)
    start = merge_tools(given, packs, None if eager else (), reserved=reserved, make=as_bot_tool)
    if not lazy:
        return start, {}
    by_skill = {
        pack.name: ToolSet(
            [
                entry
                for entry in merge_tools(given, packs, (pack.name,), reserved=reserved, make=as_bot_tool)
                if entry.name not in start
            ]
        )
        for pack in packs
    }
    return ToolSet([*start, LoadSkillTool(packs)]), by_skill


def _signals(*, planning: bool, questions: bool) -> tuple[ToolSpec, ...]:
    return (*((SET_PLAN, UPDATE_STEP) if planning else ()), *((AskUserQuestionTool.spec,) if questions else ()))


def _is_anthropic(given: Any, model: ChatModel) -> bool:
    """Return whether the provider takes marks for its prompt cache."""
    for candidate in (given, getattr(given, "model", None), model, getattr(model, "model", None)):
        kinds = type(candidate).__mro__ if candidate is not None else ()
        if any(kind.__name__ in ("ChatAnthropic", "AnthropicLanguageModel") for kind in kinds):
            return True
    return isinstance(given, str) and given.startswith("anthropic:")


def _texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(entry, str) for entry in value):
        raise ConfigurationError(f"{name} is {value!r}; give a list of texts")
    return list(value)


def _seconds(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise ConfigurationError(f"{name} is {value!r}; give seconds above 0, or None for no limit")


def _at_least(least: int, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} is {value!r}; give a whole number of at least {least}")
