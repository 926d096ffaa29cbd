"""The guards in the box that need no model: by risk, by name, by number of calls, by what the arguments say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from graphwright._internal.jsonio import dumps
from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.guards.base import GuardContext, GuardDecision

__all__ = ["ArgPatternGuard", "BudgetGuard", "RiskThresholdGuard", "ToolAllowlistGuard", "ToolDenylistGuard"]

_ALLOW = GuardDecision.allow()


class RiskThresholdGuard:
    """Lets no call pass whose tool is riskier than `max_risk`; or has a person decide, with the action `ask`."""

    def __init__(self, max_risk: int, action: str = "deny") -> None:
        self.max_risk = _whole("max_risk", max_risk)
        self.action = _action(action)

    def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if context.risk_level <= self.max_risk:
            return _ALLOW
        reason = (
            f"the tool {context.tool_name!r} has risk {context.risk_level}, and {self.max_risk} is the most allowed"
        )
        return GuardDecision(self.action, reason)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"RiskThresholdGuard(max_risk={self.max_risk}, action={self.action!r})"


class ToolAllowlistGuard:
    """Lets only the named tools be called."""

    def __init__(self, tools: Iterable[str]) -> None:
        self.tools = _names("tools", tools)

    def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if context.tool_name in self.tools:
            return _ALLOW
        return GuardDecision.deny(f"the tool {context.tool_name!r} is not on the list of allowed tools")

    def __repr__(self) -> str:
        return f"ToolAllowlistGuard({sorted(self.tools)})"


class ToolDenylistGuard:
    """Lets the named tools not be called."""

    def __init__(self, tools: Iterable[str]) -> None:
        self.tools = _names("tools", tools)

    def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if context.tool_name not in self.tools:
            return _ALLOW
        return GuardDecision.deny(f"the tool {context.tool_name!r} is on the list of denied tools")

    def __repr__(self) -> str:
        return f"ToolDenylistGuard({sorted(self.tools)})"


class BudgetGuard:
    """Lets a run make so many tool calls, and so many of each tool. Calls that were denied are not counted."""

    def __init__(self, max_tool_calls: int | None, per_tool: Mapping[str, int] | None = None) -> None:
        """`max_tool_calls` is for all tools together, None for no limit; `per_tool` has a limit by tool name."""
        self.max_tool_calls = None if max_tool_calls is None else _whole("max_tool_calls", max_tool_calls)
        if per_tool is not None and not isinstance(per_tool, Mapping):
            raise ConfigurationError(f"per_tool is {per_tool!r}; give a dict of tool name to number of calls")
        _names("per_tool", list(per_tool or {}))
        self.per_tool = {name: _whole(f"per_tool[{name!r}]", most) for name, most in (per_tool or {}).items()}

    def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if self.max_tool_calls is not None and context.tool_calls_so_far >= self.max_tool_calls:
            return GuardDecision.deny(f"this run may make {self.max_tool_calls} tool calls, and has made them")
        most = self.per_tool.get(context.tool_name)
        if most is not None and context.tool_counts.get(context.tool_name, 0) >= most:
            return GuardDecision.deny(f"this run may call {context.tool_name!r} {most} times, and has done so")
        return _ALLOW

    def __repr__(self) -> str:
        return f"BudgetGuard(max_tool_calls={self.max_tool_calls}, per_tool={self.per_tool})"


class ArgPatternGuard:
    """Lets no call pass whose arguments match a regular expression, wherever in them.

    Each pattern is searched, whatever the case of letters, in the arguments as JSON and in every key and text by
    itself, so that the escapes of JSON cannot hide a match. A pattern that is compiled already keeps its own flags.
    """

    def __init__(
        self, patterns: Iterable[str | re.Pattern[str]], tools: Iterable[str] | None = None, action: str = "deny"
    ) -> None:
        """With `tools`, calls of other tools are not looked at."""
        if isinstance(patterns, (str, bytes, Mapping)) or not isinstance(patterns, Iterable):
            raise ConfigurationError(f"patterns is {patterns!r}; give a list of regular expressions")
        self.patterns = tuple(_pattern(entry) for entry in patterns)
        if not self.patterns:
            raise ConfigurationError("patterns is empty; give at least one regular expression")
        self.tools = None if tools is None else _names("tools", tools)
        self.action = _action(action)

    def __call__(self, context: GuardContext) -> GuardDecision:
        """Judge a call."""
        if self.tools is not None and context.tool_name not in self.tools:
            return _ALLOW
        texts = [dumps(context.args), *_texts(context.args)]
        for pattern in self.patterns:
            if any(pattern.search(text) for text in texts):
                return GuardDecision(self.action, f"the arguments match {pattern.pattern!r}")  # type: ignore[arg-type]
        return _ALLOW

    def __repr__(self) -> str:
        return f"ArgPatternGuard({[entry.pattern for entry in self.patterns]}, action={self.action!r})"


def _texts(value: Any) -> Iterator[str]:
    """Yield every key and every text in a value, as it reaches the tool."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (bytes, bytearray)):
        yield bytes(value).decode("utf-8", "replace")
    elif isinstance(value, BaseModel):
        yield from _texts(value.model_dump())
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _texts(key)
            yield from _texts(entry)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for entry in value:
            yield from _texts(entry)
    elif value is not None:
        yield str(value)


def _pattern(entry: Any) -> re.Pattern[str]:
    if isinstance(entry, re.Pattern) and isinstance(entry.pattern, str):
        return entry
    if not isinstance(entry, str) or not entry:
        raise ConfigurationError(f"patterns has {entry!r}; give regular expressions as texts")
    try:
        return re.compile(entry, re.IGNORECASE)
    except re.error as error:
        raise ConfigurationError(f"patterns has {entry!r}, which is no regular expression: {error}; mend it") from error


def _action(action: Any) -> str:
    if action not in ("deny", "ask") or not isinstance(action, str):
        raise ConfigurationError(f"action is {action!r}; use 'deny' or 'ask'")
    return action


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"{name} is {value!r}; give a whole number from 0 up")
    return value


def _names(name: str, value: Any) -> frozenset[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} is {value!r}; give a list of tool names")
    entries = list(value)
    for entry in entries:
        if not isinstance(entry, str) or not entry:
            raise ConfigurationError(f"{name} has {entry!r}; give names of tools")
    return frozenset(entries)
