"""How risky a tool is, as its author declared it."""

from __future__ import annotations

import inspect
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.tools import Tool

__all__ = ["UNDECLARED_RISK", "risk_of"]

UNDECLARED_RISK = 1
"""The risk of a tool whose author said nothing: it counts as having an effect."""

_NAMES = ("risk_level", "risk_hint")
_INSIDE = ("tool", "function")
_NOT_THERE = object()


def risk_of(tool: Any) -> int:
    """Return a tool's risk: 0 reads only, 1 has an effect, 2 is destructive or runs code; more is riskier still.

    `risk_level` wins over `risk_hint`. They may be attributes of the tool, of the function or LangChain tool that it
    is made of, or keys of a LangChain tool's `metadata`. What nobody declared is `UNDECLARED_RISK`.

    Raises:
        ConfigurationError: something is declared that is no whole number from 0 up.
    """
    for source in _sources(tool):
        for name in _NAMES:
            declared = _declared(source, name)
            if declared is not None:
                return _checked(declared, name, tool)
    return UNDECLARED_RISK


def _sources(tool: Any) -> list[Any]:
    """Return the tool, and what it wraps when it is one of ours."""
    found = [tool]
    if isinstance(tool, Tool):
        inside = (getattr(tool, name, None) for name in _INSIDE)
        found += [entry for entry in inside if entry is not None]
    metadata = [getattr(entry, "metadata", None) for entry in found]
    return found + [entry for entry in metadata if isinstance(entry, dict)]


def _declared(source: Any, name: str) -> Any:
    if isinstance(source, dict):
        return source.get(name)
    try:
        value = getattr(source, name, None)
    except Exception as error:  # a property is foreign code, and what it would have said is not known
        raise ConfigurationError(f"{name} of {_name_of(source)} cannot be read: {error!r}; make it a number") from error
    if value is None or _is_number(value):
        return value
    # A stand-in makes up whatever attribute it is asked for; only what is really there was declared.
    return value if inspect.getattr_static(source, name, _NOT_THERE) is not _NOT_THERE else None


def _checked(value: Any, name: str, tool: Any) -> int:
    if not _is_number(value) or value < 0:
        raise ConfigurationError(
            f"{name} of {_name_of(tool)} is {value!r}; give a whole number: 0 for reading only, 1 for an effect, "
            "2 for a destructive one"
        )
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name_of(tool: Any) -> str:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return f"tool {name!r}" if isinstance(name, str) else f"a tool of type {type(tool).__name__}"
