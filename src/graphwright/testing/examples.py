"""Example values for a JSON schema: the smallest arguments that a tool accepts, always the same."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.testing._patterns import text_matching

__all__ = ["NoExampleError", "example_of"]

_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "idn-email": "someone@example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "iri": "https://example.com/",
    "json": "{}",
    "json-pointer": "/a",
    "regex": "a",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uri-reference": "/a",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000001",
}
_UNKNOWN = ("not", "if", "contains", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class NoExampleError(ConfigurationError):
    """No example could be made for a schema; the message names the place in it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the schema an example is made, and which one of several different ones is wanted."""

    root: Mapping[str, Any]
    path: str = ""
    variant: int = 0
    open_refs: frozenset[str] = frozenset()

    def at(self, step: str, variant: int | None = None) -> _Place:
        return _Place(self.root, f"{self.path}/{step}", self.variant if variant is None else variant, self.open_refs)

    def inside(self, ref: str) -> _Place:
        return _Place(self.root, self.path, self.variant, self.open_refs | {ref})

    def fail(self, reason: str) -> NoExampleError:
        return NoExampleError(
            f"no example for the schema at {self.path or '/'!r}: {reason}; give the arguments yourself"
        )


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits `schema`: what is required, and no more.

    Handles types, `enum`, `const`, `anyOf`, `oneOf`, `allOf`, local `$ref`, nested objects and arrays, ranges, lengths,
    formats and patterns.

    Raises:
        NoExampleError: the schema uses something else, or nothing can fit it.
    """
    return _example(schema, _Place(schema))


def _example(schema: Any, place: _Place) -> Any:
    if schema is True:
        return "text"
    if not isinstance(schema, Mapping):
        raise place.fail(f"{schema!r} accepts nothing")
    if "$ref" in schema:
        return _from_ref(schema, place)
    if "const" in schema:
        return schema["const"]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return _from_choice(schema, keyword, place)
    if "allOf" in schema:
        return _example(_merged(_without(schema, "allOf"), *schema["allOf"], place=place), place)
    for keyword in _UNKNOWN:
        if keyword in schema:
            raise place.fail(f"the keyword {keyword!r} is not supported")
    if "enum" in schema:
        return _from_enum(schema["enum"], place)
    return _typed(schema, _type_of(schema), place)


def _typed(schema: Mapping[str, Any], kind: str, place: _Place) -> Any:
    if kind == "object":
        return _object(schema, place)
    if kind == "array":
        return _array(schema, place)
    if kind == "string":
        return _string(schema, place)
    if kind in ("integer", "number"):
        return _number(schema, kind, place)
    if kind == "boolean":
        return place.variant % 2 == 0
    if kind == "null":
        return None
    raise place.fail(f"the type {kind!r} is unknown")


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, Sequence) and kind:
        return next((str(one) for one in kind if one != "null"), "null")
    return next((name for name, words in _HINTS.items() if any(word in schema for word in words)), "string")


def _from_ref(schema: Mapping[str, Any], place: _Place) -> Any:
    ref = schema["$ref"]
    if ref in place.open_refs:
        raise place.fail(f"{ref!r} requires itself")
    if not isinstance(ref, str) or not ref.startswith("#"):
        raise place.fail(f"the reference {ref!r} leads out of the schema")
    target: Any = place.root
    for step in ref[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and key in target:
            target = target[key]
        elif isinstance(target, list) and key.isdigit() and int(key) < len(target):
            target = target[int(key)]
        else:
            raise place.fail(f"the reference {ref!r} leads nowhere")
    return _example(_merged(_without(schema, "$ref"), target, place=place), place.inside(ref))


def _from_choice(schema: Mapping[str, Any], keyword: str, place: _Place) -> Any:
    base = _without(schema, keyword)
    problems = []
    # A branch of its own type comes before null: it says more.
    branches = sorted(schema[keyword], key=lambda branch: isinstance(branch, Mapping) and branch.get("type") == "null")
    for branch in branches:
        try:
            return _example(_merged(base, branch, place=place), place)
        except NoExampleError as error:
            problems.append(str(error))
    raise place.fail(f"no branch of {keyword} works: {problems}")


def _from_enum(values: Sequence[Any], place: _Place) -> Any:
    if not values:
        raise place.fail("its enum is empty")
    useful = [value for value in values if value is not None] or list(values)
    return useful[place.variant % len(useful)]


def _object(schema: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    names = list(schema.get("required") or ())
    names += [name for name in properties if name not in names][: max(0, schema.get("minProperties", 0) - len(names))]
    made = {name: _example(_property(schema, name, place), place.at(name)) for name in names}
    for number in range(1, schema.get("minProperties", 0) - len(made) + 1):
        name = _extra_name(schema, number, place)
        made[name] = _example(_property(schema, name, place), place.at(name))
    return made


def _property(schema: Mapping[str, Any], name: str, place: _Place) -> Any:
    properties = schema.get("properties") or {}
    if name in properties:
        return properties[name]
    for pattern, found in (schema.get("patternProperties") or {}).items():
        if re.search(pattern, name):
            return found
    extra = schema.get("additionalProperties", True)
    if extra is False:
        raise place.fail(f"{name!r} is required and not allowed")
    return extra


def _extra_name(schema: Mapping[str, Any], number: int, place: _Place) -> str:
    names = schema.get("propertyNames")
    if names is None:
        return f"key{number}"
    name = _example({"type": "string", **names}, place.at("propertyNames", number - 1))
    return str(name)


def _array(schema: Mapping[str, Any], place: _Place) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    count = least if most is not None and most < 1 else max(least, 1)
    prefix = schema.get("prefixItems") or []
    made: list[Any] = []
    for index in range(count):
        items = prefix[index] if index < len(prefix) else schema.get("items", True)
        variant = index if schema.get("uniqueItems") else place.variant
        try:
            made.append(_example(items, place.at(str(index), variant)))
        except NoExampleError:
            if index < least:
                raise
    if schema.get("uniqueItems") and any(value in made[:index] for index, value in enumerate(made)):
        raise place.fail(f"no {count} different items were found")
    return made


def _string(schema: Mapping[str, Any], place: _Place) -> str:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
    pattern, wanted = schema.get("pattern"), schema.get("format")
    if wanted in _FORMATS:
        text = _FORMATS[wanted]
        if pattern is None or re.search(pattern, text):
            return _of_length(text, shortest, longest, place)
    if pattern is not None:
        found = text_matching(pattern, shortest=shortest, longest=longest)
        if found is None:
            raise place.fail(f"no text was found for the pattern {pattern!r}")
        return found
    text = f"text{place.variant}" if place.variant else "text"
    return _of_length(text.ljust(shortest, "t")[: longest if longest is not None else None], shortest, longest, place)


def _of_length(text: str, shortest: int, longest: int | None, place: _Place) -> str:
    if len(text) < shortest or (longest is not None and len(text) > longest):
        raise place.fail(f"no text of {shortest} to {longest} characters was found")
    return text


def _number(schema: Mapping[str, Any], kind: str, place: _Place) -> int | float:
    step: float | None = schema.get("multipleOf")
    if kind == "integer" and (step is None or not float(step).is_integer()):
        step = 1
    low, low_open = _bound(schema, "minimum", "exclusiveMinimum", max)
    high, high_open = _bound(schema, "maximum", "exclusiveMaximum", min)

    def fits(value: float) -> bool:
        above = low is None or value > low or (value == low and not low_open)
        return above and (high is None or value < high or (value == high and not high_open))

    for candidate in _candidates(low, high, step, place.variant):
        if fits(candidate):
            return int(candidate) if float(candidate).is_integer() else candidate
    raise place.fail(f"no {kind} lies between {low} and {high}")


def _candidates(low: float | None, high: float | None, step: float | None, variant: int) -> list[float]:
    if step is None:
        found = [1.0 + variant, *(edge for edge in (low, high) if edge is not None)]
        found += [low + 1 + variant] if low is not None else []
        return found + ([(low + high) / 2] if low is not None and high is not None else [])
    start = math.ceil(low / step) if low is not None else (math.floor(high / step) if high is not None else 1)
    first = 1 if step == 1 and (low is None or low <= 1) and (high is None or high >= 1 + variant) else start
    direction = -1 if low is None and high is not None and first == start else 1
    return [(first + direction * (variant + number)) * step for number in range(3)]


def _bound(schema: Mapping[str, Any], closed: str, opened: str, tighter: Any) -> tuple[float | None, bool]:
    plain, exclusive = schema.get(closed), schema.get(opened)
    if isinstance(exclusive, bool):
        return plain, exclusive
    if plain is None or exclusive is None:
        return (plain, False) if exclusive is None else (exclusive, True)
    value = tighter(plain, exclusive)
    return value, value == exclusive


def _without(schema: Mapping[str, Any], keyword: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != keyword}


def _merged(base: Mapping[str, Any], *others: Any, place: _Place) -> dict[str, Any]:
    """Return one schema that asks for what all of them ask."""
    merged = dict(base)
    for other in others:
        if other is True:
            continue
        if not isinstance(other, Mapping):
            raise place.fail(f"{other!r} accepts nothing")
        for key, value in other.items():
            if key == "properties" and key in merged:
                merged[key] = {**merged[key], **value}
            elif key == "required" and key in merged:
                merged[key] = [*merged[key], *(name for name in value if name not in merged[key])]
            elif key == "allOf" and key in merged:
                merged[key] = [*merged[key], *value]
            elif key in ("anyOf", "oneOf", "$ref") and key in merged:
                merged["allOf"] = [*merged.get("allOf", []), {key: value}]
            else:
                merged[key] = value
    return merged
