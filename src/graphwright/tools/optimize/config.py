"""How much of the tools a model is told: the `optimize_tools=` of `build_agent`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.models.base import Embedder
from graphwright.tools.content import short_repr

__all__ = ["OptimizationLevel", "ToolOptimizationConfig"]


class OptimizationLevel(str, Enum):
    """A preset: shorter texts, much shorter texts, or those and a selection by search."""

    MINIMAL = "minimal"
    STANDARD = "standard"
    SEMANTIC = "semantic"


_PRESETS: dict[str, dict[str, Any]] = {
    "minimal": {
        "minify_schema": True,
        "max_description_length": 200,
        "strip_nested_descriptions": False,
        "semantic_selection": False,
    },
    "standard": {
        "minify_schema": True,
        "max_description_length": 150,
        "strip_nested_descriptions": True,
        "semantic_selection": False,
    },
    "semantic": {
        "minify_schema": True,
        "max_description_length": 100,
        "strip_nested_descriptions": True,
        "semantic_selection": True,
    },
}
_HINT = "give True, 'minimal', 'standard', 'semantic', a ToolOptimizationConfig or a dict of its fields"
_FLAGS = ("minify_schema", "strip_nested_descriptions", "semantic_selection", "always_include_fallback")
_COUNTS = {"max_description_length": 20, "max_schema_depth": 1, "semantic_top_k": 1, "semantic_context_turns": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOptimizationConfig:
    """What is cut from the definitions of tools, and whether only those are offered that a request is about.

    A field that is `None` is as the level has it. However little a model is told, a tool checks its arguments against
    its own, whole schema.
    """

    level: OptimizationLevel | str | None = None
    """The preset; `None` is `"minimal"`."""

    minify_schema: bool | None = None
    """Leave out what no check looks at (titles, examples, unused definitions) and cut parameter descriptions."""

    max_description_length: int | None = None
    """Characters of the longest description; a longer one ends at a sentence, or else at a word."""

    strip_nested_descriptions: bool | None = None
    """Leave out the descriptions inside of parameters that are objects or lists."""

    max_schema_depth: int | None = None
    """Levels of nested objects that the model is shown; below, it is told only that there is an object or a list.
    No preset sets it, since the model then has to guess what the tool takes there."""

    semantic_selection: bool | None = None
    """Offer only the tools that the request is about."""

    semantic_top_k: int | None = None
    """How many tools a search gives, 8 by default; those of `preserve_tools` come on top."""

    semantic_context_turns: int | None = None
    """How many of the latest user turns say what the request is about, 3 by default. The last one counts most."""

    always_include_fallback: bool | None = None
    """Whether the model can ask for more tools with `request_more_tools`; yes by default."""

    embedding_model: Embedder | None = None
    """Compares by meaning as well; `None` searches by words alone, which needs nothing."""

    preserve_tools: Collection[str] | None = None
    """Names of tools that are always offered, and never cut."""

    def __post_init__(self) -> None:
        preset = _PRESETS[_level(self.level)]
        for name in _FLAGS:
            if getattr(self, name) not in (None, True, False):
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}; give True, False or None")
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ConfigurationError(f"{name} is {value!r}; give a whole number of at least {least}, or None")
        embedder = self.embedding_model
        if embedder is not None and not callable(getattr(embedder, "embed", None)):
            raise ConfigurationError(
                f"embedding_model is {short_repr(embedder)}; give an object with 'async embed(texts)', or None to "
                "search by words"
            )
        kept = self.preserve_tools
        if isinstance(kept, str) or any(not isinstance(name, str) for name in kept or ()):
            raise ConfigurationError(f"preserve_tools is {kept!r}; give a set of tool names")
        filled = {"semantic_top_k": 8, "semantic_context_turns": 3, "always_include_fallback": True, **preset}
        for name, default in filled.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        object.__setattr__(self, "level", OptimizationLevel(_level(self.level)))
        object.__setattr__(self, "preserve_tools", frozenset(kept or ()))

    @classmethod
    def coerce(cls, value: Any) -> ToolOptimizationConfig | None:
        """Return the settings that a value of `optimize_tools=` means; `None` when it means none.

        Raises:
            ConfigurationError: it means nothing, or a field of it does not fit.
        """
        if value is None or value is False:
            return None
        if value is True:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(level=value)
        if isinstance(value, Mapping):
            known = [each.name for each in fields(cls)]
            unknown = sorted(str(key) for key in value if key not in known)
            if unknown:
                raise ConfigurationError(
                    f"optimize_tools has no field {', '.join(map(repr, unknown))}; its fields are {', '.join(known)}"
                )
            return cls(**value)
        raise ConfigurationError(f"optimize_tools is {short_repr(value)}; {_HINT}")

    def but(self, **changes: Any) -> ToolOptimizationConfig:
        """Return the same settings with some changed."""
        return replace(self, **changes)


def _level(level: Any) -> str:
    if level is None:
        return "minimal"
    if isinstance(level, OptimizationLevel):
        return level.value
    if isinstance(level, str) and level in _PRESETS:
        return level
    raise ConfigurationError(f"optimize_tools has no level {level!r}; {_HINT}")
