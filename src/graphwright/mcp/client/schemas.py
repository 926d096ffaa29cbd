"""Make a server's JSON schema one that every provider takes: whole in itself, an object, with nothing missing.

It is only what the model is told. Arguments are checked against the schema as the server gave it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from graphwright.tools.schema import object_schema

__all__ = ["bindable_schema"]

_MOST_PARTS = 20_000
_DROPPED = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "$dynamicAnchor"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONES = frozenset(
    {"items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else"}
    | {"additionalItems", "unevaluatedProperties", "unevaluatedItems"}
)


def bindable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with every reference put in its place; one that leads into itself ends as a plain object."""
    whole = _Whole(schema).part(schema, ())
    return _complete_object(object_schema(_flattened(whole if isinstance(whole, dict) else {})))


class _Whole:
    """A schema whose references are replaced by what they mean."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def part(self, schema: Any, inside: tuple[str, ...]) -> Any:
        """Return a part without references; `inside` are those that lead to it."""
        self._left -= 1
        if not isinstance(schema, Mapping):
            # A schema may be just true or false; providers want an object.
            return {} if schema is True else {"not": {}} if schema is False else schema
        if self._left < 0:
            return {}
        reference = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(reference, str):
            beside = {key: value for key, value in schema.items() if key not in ("$ref", "$dynamicRef")}
            return {**self._target(reference, inside), **self.part(beside, inside)}
        made = {key: self._value(key, value, inside) for key, value in schema.items() if key not in _DROPPED}
        if "oneOf" in made and "anyOf" not in made:
            # Gemini knows only the one of the two, and a model reads both alike.
            made["anyOf"] = made.pop("oneOf")
        return _repaired(made)

    def _value(self, key: str, value: Any, inside: tuple[str, ...]) -> Any:
        if key in _MAPS and isinstance(value, Mapping):
            return {name: self.part(entry, inside) for name, entry in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self.part(entry, inside) for entry in value]
        if key == "additionalProperties" and isinstance(value, bool):
            return value
        if key == "items" and isinstance(value, list):
            return {"anyOf": [self.part(entry, inside) for entry in value]} if value else {}
        return self.part(value, inside) if key in _ONES else value

    def _target(self, reference: str, inside: tuple[str, ...]) -> dict[str, Any]:
        if reference in inside:
            kind = (self._found(reference) or {}).get("type", "object")
            return {"type": kind, "description": "The same again, one level further down."}
        found = self._found(reference)
        made = self.part(found, (*inside, reference)) if found is not None else {}
        return made if isinstance(made, dict) else {}

    def _found(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        if reference != "#" and not reference.startswith("#/"):
            return _anchored(self._root, reference[1:])
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found if isinstance(found, Mapping) else None


def _anchored(schema: Mapping[str, Any], name: str) -> Any:
    for group in ("$defs", "definitions"):
        for entry in (schema.get(group) or {}).values():
            if isinstance(entry, Mapping) and entry.get("$anchor") == name:
                return entry
    return None


def _repaired(schema: dict[str, Any]) -> dict[str, Any]:
    """Add what some provider refuses to do without, and take out what contradicts itself."""
    kind = schema.get("type")
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if kind is None and not schema.keys() & {"anyOf", "allOf"}:
        kind = _kind_of(schema)
        if kind is not None:
            schema["type"] = kind
    if isinstance(schema.get("enum"), list):
        _restrict_to_texts(schema)
    if kind == "array" and "items" not in schema:
        several = schema.get("prefixItems")
        schema["items"] = {"anyOf": several} if several else {}
    return _complete_object(schema) if kind == "object" or "properties" in schema else schema


def _kind_of(schema: Mapping[str, Any]) -> str | None:
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        kinds = {type(value) for value in values}
        if len(kinds) == 1:
            return {str: "string", bool: "boolean", int: "integer", float: "number"}.get(kinds.pop())
    return None


def _restrict_to_texts(schema: dict[str, Any]) -> None:
    """Keep only texts in an `enum`, as Gemini wants it; which other values there are is said in words."""
    values = schema["enum"]
    texts = [value for value in values if isinstance(value, str)]
    if texts and all(value is None or isinstance(value, str) for value in values):
        schema["enum"] = texts
        return
    del schema["enum"]
    shown = [json.dumps(value) for value in values]
    words = f"Always {shown[0]}." if len(shown) == 1 else f"One of {', '.join(shown)}."
    schema["description"] = f"{schema.get('description', '')} {words}".strip()


def _complete_object(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    required = schema.get("required")
    if isinstance(required, list):
        known = [name for name in required if isinstance(properties, Mapping) and name in properties]
        if known:
            schema["required"] = known
        else:
            del schema["required"]
    elif required is not None:
        del schema["required"]
    return schema


def _flattened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the root without alternatives: providers want one plain object there."""
    flat = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf", "not", "if")}
    for key in ("then", "else", "enum", "const"):
        flat.pop(key, None)
    properties = dict(flat["properties"]) if isinstance(flat.get("properties"), Mapping) else {}
    required = list(flat["required"]) if isinstance(flat.get("required"), list) else []
    for key in ("allOf", "anyOf", "oneOf"):
        forms = [_flattened(form) for form in schema.get(key) or () if isinstance(form, dict)]
        for form in forms:
            for name, entry in (form.get("properties") or {}).items():
                properties.setdefault(name, entry)
        needed = [set(form.get("required") or ()) for form in forms]
        if needed:
            common = set.union(*needed) if key == "allOf" else set.intersection(*needed)
            required += sorted(common - set(required))
    if properties:
        flat["properties"] = properties
    if required:
        flat["required"] = required
    return flat
