"""Reduce a JSON schema to what a grammar for constrained decoding takes, loosening it where it must.

The result is looser than the schema, except that objects with named properties take no others unless the schema
says so: a model that may invent names does. The tool layer validates the arguments against the real schema afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

__all__ = ["ANY_OBJECT", "grammar_schema", "resolved"]

ANY_OBJECT: dict[str, Any] = {"type": "object"}
"""Takes any JSON object."""

_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_SIZES = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MOST_NESTED = 24
"""Levels of nesting that are kept; anything below is left open."""

_MOST_NODES = 4000
"""Parts of one schema that are kept; a schema whose references multiply beyond that is left open below."""


def grammar_schema(schema: Any) -> dict[str, Any]:
    """Return `schema` with its local references inlined and without what a grammar cannot hold.

    A reference that leads into itself, out of the document or nowhere admits anything, as does a part too deep or
    too large.
    """
    return _Simplifier(schema).simplified(schema)


def resolved(schema: Any, document: Any) -> Mapping[str, Any]:
    """Return what `schema` stands for, following references within `document`; an empty schema for nothing."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        schema = _at_pointer(document, reference)
    return schema if isinstance(schema, Mapping) else {}


class _Simplifier:
    def __init__(self, document: Any) -> None:
        self._document = document
        self._nodes = 0

    def simplified(self, schema: Any, *, inside: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        self._nodes += 1
        if not isinstance(schema, Mapping) or depth > _MOST_NESTED or self._nodes > _MOST_NODES:
            return {}
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            return self._referred(reference, inside, depth)
        parts = schema.get("allOf")
        if isinstance(parts, list) and parts:
            return self._merged(schema, parts, inside, depth)
        fixed = _fixed_values(schema)
        if fixed is not None:
            return {"enum": fixed}
        for word in ("anyOf", "oneOf"):
            choices = schema.get(word)
            if isinstance(choices, list) and choices:
                return self._any_of(schema, word, choices, inside, depth)
        return self._plain(schema, inside, depth)

    def _referred(self, reference: str, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        target = _at_pointer(self._document, reference)
        if target is None:
            return {}
        if reference in inside:
            kind = target.get("type") if isinstance(target, Mapping) else None
            return {"type": kind} if kind in _TYPES else {}
        return self.simplified(target, inside=(*inside, reference), depth=depth + 1)

    def _merged(
        self, schema: Mapping[str, Any], parts: list[Any], inside: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        own = {key: value for key, value in schema.items() if key != "allOf"}
        sides = [self.simplified(part, inside=inside, depth=depth + 1) for part in (*parts, own)]
        fixed = [side for side in sides if "enum" in side]
        if fixed:
            return fixed[0]
        choosing = [side for side in sides if "anyOf" in side]
        rest = [side for side in sides if "anyOf" not in side]
        if len(choosing) != 1:
            return _joined(rest)
        options = [option if "enum" in option else _joined([*rest, option]) for option in choosing[0]["anyOf"]]
        return {"anyOf": options}

    def _any_of(
        self, schema: Mapping[str, Any], word: str, choices: list[Any], inside: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        shared = {
            key: schema[key] for key in ("type", "properties", "required", "additionalProperties") if key in schema
        }
        options: list[dict[str, Any]] = []
        for choice in choices:
            if choice is False:
                continue
            if isinstance(choice, Mapping) and "properties" in shared:
                choice = _with_shared(choice, shared)
            elif isinstance(choice, Mapping) and "type" in shared and not _says_what(choice):
                choice = {**choice, **shared}
            option = self.simplified(choice, inside=inside, depth=depth + 1)
            if not option:
                # One choice admits anything, so the whole does.
                return {}
            options.extend(inner for inner in option.get("anyOf", [option]) if inner not in options)
        if schema.get("nullable") is True and {"type": "null"} not in options:
            options.append({"type": "null"})
        if not options:
            return {}
        return options[0] if len(options) == 1 else {"anyOf": options}

    def _plain(self, schema: Mapping[str, Any], inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        kinds = _kinds(schema)
        if not kinds:
            return {}
        plain: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
        if "object" in kinds:
            plain.update(self._object(schema, inside, depth))
        if "array" in kinds:
            items = schema.get("items")
            if isinstance(items, Mapping) and "prefixItems" not in schema:
                simple = self.simplified(items, inside=inside, depth=depth + 1)
                if simple:
                    plain["items"] = simple
        plain.update(_limits(schema, kinds))
        return plain

    def _object(self, schema: Mapping[str, Any], inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        given = schema.get("properties")
        given = given if isinstance(given, Mapping) else {}
        properties = {
            str(name): self.simplified(value, inside=inside, depth=depth + 1)
            for name, value in given.items()
            if value is not False
        }
        required = schema.get("required")
        required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        for name in required:
            properties.setdefault(name, {})
        more = schema.get("additionalProperties")
        open_ended = more is True or isinstance(more, Mapping) or bool(schema.get("patternProperties"))
        result: dict[str, Any] = {}
        if properties:
            result["properties"] = properties
        if required:
            result["required"] = list(dict.fromkeys(required))
        if isinstance(more, Mapping) and not schema.get("patternProperties"):
            result["additionalProperties"] = self.simplified(more, inside=inside, depth=depth + 1) or True
        elif more is False or (properties and not open_ended):
            result["additionalProperties"] = bool(schema.get("patternProperties"))
        return result


def _joined(sides: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema with the words of all sides; where two say something else, the later one counts."""
    joined: dict[str, Any] = {}
    for side in sides:
        for key, value in side.items():
            if key == "properties":
                known = joined.get("properties", {})
                joined["properties"] = {
                    **known,
                    **{name: part for name, part in value.items() if part or name not in known},
                }
            elif key == "required":
                joined["required"] = list(dict.fromkeys([*joined.get("required", ()), *value]))
            else:
                joined[key] = value
    return joined


def _fixed_values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if not isinstance(values, list) or not values:
        return None
    if schema.get("nullable") is True and None not in values:
        return [*values, None]
    return list(values)


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("type")
    listed = given if isinstance(given, list) else [given]
    kinds = [kind for kind in listed if kind in _TYPES]
    if not kinds and given is None:
        if "properties" in schema or "required" in schema or "additionalProperties" in schema:
            kinds = ["object"]
        elif "items" in schema or "prefixItems" in schema:
            kinds = ["array"]
    if kinds and schema.get("nullable") is True and "null" not in kinds:
        kinds.append("null")
    return kinds


def _limits(schema: Mapping[str, Any], kinds: list[str]) -> dict[str, Any]:
    """Return the limits that a grammar can count, leaving out pairs that admit nothing."""
    limits: dict[str, Any] = {}
    for name in _SIZES:
        value = schema.get(name)
        belongs = "string" if name.endswith("Length") else "array"
        if belongs in kinds and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            limits[name] = value
    if "integer" in kinds or "number" in kinds:
        for name in _BOUNDS:
            value = schema.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                limits[name] = value
    for low, high in (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum")):
        if low in limits and high in limits and limits[low] > limits[high]:
            del limits[low], limits[high]
    return limits


def _with_shared(choice: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice of an `anyOf` with the properties that stand beside the `anyOf`."""
    whole = {**shared, **choice}
    own = choice.get("properties")
    whole["properties"] = {**shared["properties"], **(own if isinstance(own, Mapping) else {})}
    required = [*(shared.get("required") or ()), *(choice.get("required") or ())]
    if required:
        whole["required"] = list(dict.fromkeys(required))
    return whole


def _says_what(choice: Mapping[str, Any]) -> bool:
    return any(word in choice for word in ("type", "$ref", "const", "enum", "anyOf", "oneOf", "allOf"))


def _at_pointer(document: Any, reference: str) -> Any:
    """Return what a reference within the document points to, or `None`."""
    if not reference.startswith("#"):
        return None
    place = document
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, Mapping) and key in place:
            place = place[key]
        elif isinstance(place, list) and key.isdigit() and int(key) < len(place):
            place = place[int(key)]
        else:
            return None
    return place
