"""Find out what a function says of its parameters: types, wherever their names are defined, and words."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from graphwright.exceptions import ConfigurationError

__all__ = ["first_sentence", "injected_as", "read_docstring", "resolve", "text_in"]


def resolve(function: Callable[..., Any], parameter: inspect.Parameter, name: str) -> Any:
    """Return a parameter's type; text (postponed annotations) is looked up where the function was written."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return Any
    source = _source(function)
    try:
        try:
            return _evaluate(annotation, source, _closure_of(source))
        except NameError:
            return _evaluate(annotation, source, _locals_around(source) | _closure_of(source))
    except NameError as error:
        raise ConfigurationError(
            f"parameter {parameter.name!r} of tool {name!r} has the type {annotation!r}, and {error.name!r} cannot be "
            "found from here; define or import it at the top of the module (not under TYPE_CHECKING), or make the "
            "tool where it is defined"
        ) from error
    except Exception as error:  # an annotation is code, and fails as code does
        raise ConfigurationError(
            f"parameter {parameter.name!r} of tool {name!r} has the annotation {annotation!r}, which is no type: "
            f"{first_sentence(error)}"
        ) from error


def _evaluate(annotation: Any, source: Any, names: dict[str, Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    return typing.get_type_hints(holder, getattr(source, "__globals__", {}), names, include_extras=True)["it"]


def _source(function: Callable[..., Any]) -> Any:
    """Return the plain function whose annotations the signature shows."""
    found: Any = function
    while True:
        if isinstance(found, partial):
            found = found.func
        elif inspect.ismethod(found):
            found = found.__func__
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            return found


def _closure_of(source: Any) -> dict[str, Any]:
    found = {}
    code = getattr(source, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(source, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _locals_around(source: Any) -> dict[str, Any]:
    """Return the local names of the functions and class bodies around `source` that are still at work."""
    steps = getattr(source, "__qualname__", "").split(".")[:-1]
    outer = [".".join(steps[: end + 1]) for end in range(len(steps)) if steps[end] != "<locals>"]
    frames: dict[str, FrameType] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and outer:
        if frame.f_code.co_qualname in outer and frame.f_globals is source.__globals__:
            frames.setdefault(frame.f_code.co_qualname, frame)
        frame = frame.f_back
    names: dict[str, Any] = {}
    for qualname in outer:
        if qualname in frames:
            names.update(frames[qualname].f_locals)
    return names


def injected_as(hint: Any) -> str | None:
    """Return `"call_id"` or `"value"` for a type that carries LangChain's mark for "no model fills this"."""
    for entry in getattr(hint, "__metadata__", ()):
        # By name, so that a function without the mark does not cost the import of LangChain's tools.
        names = {base.__name__ for base in (entry if isinstance(entry, type) else type(entry)).__mro__}
        if "InjectedToolArg" in names:
            return "call_id" if "InjectedToolCallId" in names else "value"
    return None


def text_in(hint: Any) -> str:
    """Return the words in `Annotated[int, "words"]` or `Annotated[int, Doc("words")]`."""
    for entry in getattr(hint, "__metadata__", ()):
        found = entry if isinstance(entry, str) else getattr(entry, "documentation", None)
        if isinstance(found, str):
            return found
    return ""


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a function's description, and the text of each parameter."""
    text = inspect.getdoc(_source(function)) or ""
    if not text:
        return "", {}
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text)
    except Exception:  # a docstring is free text: what cannot be parsed is shown as it is
        return text, {}
    words = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    texts = {
        param.arg_name.lstrip("*"): " ".join(param.description.split()) for param in parsed.params if param.description
    }
    return "\n\n".join(words), texts


def first_sentence(error: Exception) -> str:
    """Return the beginning of an error's message, which is what fits into another one."""
    line = (str(error) or type(error).__name__).splitlines()[0]
    return line.split(". ")[0].rstrip(".")
