"""Check arguments against a JSON schema that is plain data, as tools from other processes bring it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from graphwright.tools.problems import MISSING, UNKNOWN, Problem

__all__ = ["argument_problems", "schema_problems"]

logger = logging.getLogger(__name__)

_RANGES = {
    "minimum": "should be at least {}",
    "maximum": "should be at most {}",
    "exclusiveMinimum": "should be greater than {}",
    "exclusiveMaximum": "should be less than {}",
    "multipleOf": "should be a multiple of {}",
    "minLength": "should have at least {} characters",
    "maxLength": "should have at most {} characters",
    "minItems": "should have at least {} entries",
    "maxItems": "should have at most {} entries",
    "minProperties": "should have at least {} keys",
    "maxProperties": "should have at most {} keys",
    "pattern": "should match the pattern {!r}",
    "const": "should be {!r}",
}


def argument_problems(schema: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
    """Return one line for each thing that is wrong with arguments."""
    return [problem.line() for problem in schema_problems(schema, "the call")(args)]


def schema_problems(schema: Mapping[str, Any], tool_name: str) -> Callable[[Mapping[str, Any]], list[Problem]]:
    """Return a function that lists what is wrong with arguments; the schema is read once.

    Where the schema itself is broken, or points to another one (which is never fetched), that is logged and the
    arguments are let through: a model could do nothing about it, and the tool decides.
    """
    jsonschema: Any = import_module("jsonschema")  # typed only where its stubs are installed
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        checker.check_schema(schema)
    except jsonschema.SchemaError as error:
        _log_unchecked(tool_name, f"its schema is broken: {error.message}")
        return lambda args: []
    validator = checker(schema, registry=Registry())

    def problems(args: Mapping[str, Any]) -> list[Problem]:
        try:
            return [problem for error in validator.iter_errors(args) for problem in _problems(error)]
        except Unresolvable as error:
            _log_unchecked(tool_name, f"its schema points to {error.ref}")
            return []

    return problems


def _log_unchecked(tool_name: str, reason: str) -> None:
    logger.warning("the arguments of tool %r are not checked: %s", tool_name, reason)


def _problems(error: Any, form: str = "") -> Iterable[Problem]:
    path = tuple(error.absolute_path)
    wanted: Any = error.validator_value
    found: Any = error.instance
    if error.validator == "required":
        # jsonschema reports each missing name by itself; which one is only in its message.
        yield from (
            Problem((*path, name), MISSING, has_value=False, form=form)
            for name in wanted
            if name not in found and error.message.startswith(repr(name))
        )
    elif error.validator in ("additionalProperties", "unevaluatedProperties") and wanted is False:
        schema: Any = error.schema
        known = tuple(schema.get("properties", ()))
        patterns = schema.get("patternProperties")
        unknown = [name for name in found if name not in known]
        if patterns or not unknown:
            yield Problem(path, error.message, found, form=form)
        yield from (Problem((*path, name), UNKNOWN, form=form, known=known) for name in unknown if not patterns)
    elif error.validator in ("anyOf", "oneOf") and error.context:
        yield from _of_best_form(error, path)
    else:
        yield Problem(path, _text(error, wanted), found, form=form)


def _of_best_form(error: Any, path: tuple[str | int, ...]) -> Iterable[Problem]:
    """Tell the problems of the one form that was meant; where that is not clear, of the value as a whole."""
    forms: dict[int, list[Any]] = {}
    for inner in error.context:
        forms.setdefault(int(inner.schema_path[0]), []).append(inner)
    meant = [errors for errors in forms.values() if all(_is_inside(inner, path) for inner in errors)]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from _problems(inner)
        return
    if not meant and all(len(errors) == 1 for errors in forms.values()):
        first, *others = dict.fromkeys(_text(errors[0], errors[0].validator_value) for errors in forms.values())
        text = " or ".join([first, *(other.removeprefix("should be ") for other in others)])
        yield Problem(path, text, error.instance)
    else:
        yield Problem(path, "fits none of the forms that its schema allows", error.instance)


def _is_inside(error: Any, path: tuple[str | int, ...]) -> bool:
    """Whether an error is about a part of the value at `path`, so that the value as such has the right kind."""
    return len(error.absolute_path) > len(path) or error.validator in ("required", "additionalProperties")


def _text(error: Any, wanted: Any) -> str:
    validator = error.validator
    if validator == "type":
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        return "should be " + " or ".join(_TYPES.get(name, str(name)) for name in names)
    if validator == "enum":
        shown = ", ".join(repr(choice) for choice in wanted[:20])
        return f"should be one of {shown}" + (", ..." if len(wanted) > 20 else "")
    if validator in _RANGES:
        return _RANGES[str(validator)].format(wanted)
    if validator == "uniqueItems":
        return "should not have the same entry twice"
    message = str(error.message)
    return message if len(message) <= 200 else message[:197] + "..."


_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
