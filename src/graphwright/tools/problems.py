"""Say what is wrong with the arguments of a call, one line a problem, and forgive the null that means "not given"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from graphwright.exceptions import ToolArgumentError
from graphwright.tools.content import safe_str, short_repr

__all__ = ["MISSING", "UNKNOWN", "Problem", "check", "closest", "path_text", "pydantic_problems"]

Path = tuple[str | int, ...]

MISSING = "is required"
UNKNOWN = "there is no such argument"

_MOST_LINES = 20
_INPUT = "Input should be "
_MISSING_TYPES = frozenset({"missing", "missing_argument", "missing_keyword_only_argument", "value_error.missing"})
_UNKNOWN_TYPES = frozenset({"extra_forbidden", "unexpected_keyword_argument", "value_error.extra"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the arguments."""

    path: Path
    """Keys and places that lead to the value."""

    text: str
    """What is wrong, without the value."""

    value: Any = None

    has_value: bool = True

    form: str = ""
    """Which of several allowed forms the problem is about, when it is about one."""

    known: tuple[str, ...] = ()
    """The names that exist, where an unknown one was used."""

    def line(self) -> str:
        """Return the problem as one line."""
        line = f"{path_text(self.path)}: {self.text}"
        if self.text == UNKNOWN:
            line += _hint(str(self.path[-1]), self.known)
        elif self.has_value:
            shown = "null" if self.value is None else short_repr(self.value)
            line += f", not {shown}" if self.text.startswith("should ") else f" (it is {shown})"
        return f"{line} (as {self.form})" if self.form else line


def path_text(path: Iterable[str | int]) -> str:
    """Return a path as `name.inner[0].leaf`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "(arguments)"


def closest(name: str, known: Iterable[str], *, count: int = 3) -> list[str]:
    """Return the known names that are most like `name`, best first."""
    by_lower = {entry.lower(): entry for entry in known}
    return [by_lower[match] for match in get_close_matches(name[:100].lower(), by_lower, n=count, cutoff=0.6)]


def _hint(name: str, known: Sequence[str]) -> str:
    if not known:
        return "; it takes none"
    like = closest(name, known, count=1)
    if like:
        return f"; did you mean {like[0]!r}?"
    return f"; there are {', '.join(known[:20])}"


def check(
    tool_name: str,
    args: dict[str, Any],
    attempt: Callable[[dict[str, Any]], dict[str, Any] | list[Problem]],
) -> dict[str, Any]:
    """Return what `attempt` makes of the arguments, leaving out each null that is in the way.

    Models write null for "not given". So where a null does not fit, the key is taken out and the arguments are tried
    once more; a null where a value is needed is still a problem.

    Raises:
        ToolArgumentError: the arguments do not fit.
    """
    found = attempt(args)
    if isinstance(found, dict):
        return found
    nulls = {problem.path: problem for problem in found if problem.value is None and problem.has_value and problem.path}
    nulls = {path: problem for path, problem in nulls.items() if _is_null_in_object(args, path)}
    if nulls:
        again = attempt(_without(args, set(nulls)))
        if isinstance(again, dict):
            return again
        found = [nulls.get(problem.path, problem) if problem.text == MISSING else problem for problem in again]
    raise ToolArgumentError(tool_name, _lines(found))


def _lines(problems: Sequence[Problem]) -> list[str]:
    lines = list(dict.fromkeys(problem.line() for problem in problems))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} more"]
    return lines


def _is_null_in_object(args: Any, path: Path) -> bool:
    for step in path[:-1]:
        args = args[step]
    return isinstance(args, Mapping) and path[-1] in args and args[path[-1]] is None


def _without(value: Any, paths: set[Path], here: Path = ()) -> Any:
    """Return a copy that lacks the keys at `paths`; what holds none of them is shared."""
    if not any(path[: len(here)] == here for path in paths):
        return value
    if isinstance(value, Mapping):
        return {key: _without(entry, paths, (*here, key)) for key, entry in value.items() if (*here, key) not in paths}
    if isinstance(value, list):
        return [_without(entry, paths, (*here, place)) for place, entry in enumerate(value)]
    return value


def pydantic_problems(error: Any, args: Mapping[str, Any], known: Sequence[str]) -> list[Problem]:
    """Return what a pydantic `ValidationError` (of version 1 or 2) says about the arguments."""
    try:
        entries = error.errors(include_url=False, include_context=False)
    except TypeError:
        entries = error.errors()
    return [_pydantic_problem(entry, args, known) for entry in entries]


def _pydantic_problem(entry: Mapping[str, Any], args: Mapping[str, Any], known: Sequence[str]) -> Problem:
    kind = str(entry["type"])
    missing = kind in _MISSING_TYPES
    path, value, form = _locate(entry["loc"], args, missing=missing)
    if missing:
        return Problem(path, MISSING, has_value=False, form=form)
    if kind in _UNKNOWN_TYPES:
        return Problem(path, UNKNOWN, form=form, known=tuple(known) if len(path) == 1 else ())
    text = str(entry["msg"])
    if text.startswith(_INPUT):
        text = "should be " + text[len(_INPUT) :]
    else:
        for prefix in ("Value error, ", "Assertion failed, "):
            text = text.removeprefix(prefix)
        text = safe_str(text[:1].lower() + text[1:] if text[:2].istitle() else text)
    return Problem(path, text, entry.get("input", value), form=form)


def _locate(loc: Sequence[Any], args: Any, *, missing: bool) -> tuple[Path, Any, str]:
    """Split a pydantic location into the path in the arguments, the value there, and the form it was tried as."""
    path: list[str | int] = []
    value: Any = args
    form = ""
    for place, step in enumerate(loc):
        in_list = isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value)
        if in_list or (isinstance(value, Mapping) and step in value):
            value = value[step]
        elif not (missing and place == len(loc) - 1):
            # A member of a union, or a validator: no part of the path.
            form = str(step) if isinstance(step, str) and "[" not in step and step != "[key]" else form
            continue
        path.append(step)
    return tuple(path), value, form
