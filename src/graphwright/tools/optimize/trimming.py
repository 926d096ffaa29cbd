"""Say the same of a tool in fewer words: what a model is told gets shorter, what a tool takes stays the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphwright.tools.optimize.config import ToolOptimizationConfig
from graphwright.types import ToolSpec

__all__ = ["shortened", "trimmed", "trimmed_schema"]

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONES = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
    | {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}
)
_UNCHECKED = frozenset({"$comment", "example", "examples", "title"})
_INSIDE = frozenset({"items", "additionalItems", "contains", "prefixItems", "additionalProperties"})
"""Keywords that lead into a value; `properties` and `patternProperties` do, too."""
_PLAIN_REFERENCE = re.compile(r"#(/(?P<group>\$defs|definitions)/(?P<name>[^/]+)(/.*)?|/properties(/.*)?)?")


def trimmed(spec: ToolSpec, config: ToolOptimizationConfig) -> ToolSpec:
    """Return what a model is told of a tool; it has the same name, and takes the same arguments."""
    description = shortened(spec.description, config.max_description_length)
    parameters = trimmed_schema(spec.parameters, config)
    if description == spec.description and parameters == spec.parameters:
        return spec
    return ToolSpec(name=spec.name, description=description, parameters=parameters)


def trimmed_schema(schema: Mapping[str, Any], config: ToolOptimizationConfig) -> dict[str, Any]:
    """Return a schema that finds the same arguments valid, without what no check looks at.

    With `max_schema_depth` it also takes what the whole schema refuses, but refuses nothing that the whole one takes.
    """
    made: dict[str, Any] = _Trimming(config).part(schema, depth=0)
    # The root is described by the tool itself.
    if config.minify_schema:
        made.pop("description", None)
        _drop_unused(made)
    return made


def shortened(text: str, most: int | None) -> str:
    """Return a text of at most `most` characters that ends where a sentence does, or else a word."""
    text = " ".join(text.split()) if most is not None and len(text) > most else text
    if most is None or len(text) <= most:
        return text
    head = text[: most + 1]
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)", head) if match.end() <= most]
    # A full stop near the beginning is more often that of "e.g." than the end of what is worth reading.
    if ends and ends[-1] >= most // 3:
        return text[: ends[-1]]
    cut = text[: most - 3]
    space = cut.rfind(" ")
    return f"{cut[:space] if space > most // 2 else cut}...".replace("....", "...")


class _Trimming:
    def __init__(self, config: ToolOptimizationConfig) -> None:
        self._config = config

    def part(self, schema: Any, *, depth: int) -> Any:
        """Return a part of a schema; `depth` is how many values it lies inside of."""
        if not isinstance(schema, Mapping):
            return schema
        config = self._config
        deepest = config.max_schema_depth
        if deepest is not None and depth > deepest and _has_parts(schema):
            kept = {key: schema[key] for key in ("type", "description", "nullable") if key in schema}
            return self._texts(kept, depth)
        made = {key: self._value(key, value, depth) for key, value in schema.items()}
        return self._texts(made, depth)

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key in _MAPS and isinstance(value, Mapping):
            # A definition is used at any depth; it is trimmed as if it were a parameter.
            inner = 1 if key in ("$defs", "definitions") else depth + (key in ("properties", "patternProperties"))
            return {name: self.part(entry, depth=inner) for name, entry in value.items()}
        if isinstance(value, list) and (key in _LISTS or key == "items"):
            return [self.part(entry, depth=depth + (key in _INSIDE)) for entry in value]
        return self.part(value, depth=depth + (key in _INSIDE)) if key in _ONES else value

    def _texts(self, made: dict[str, Any], depth: int) -> dict[str, Any]:
        config = self._config
        if config.minify_schema:
            for key in _UNCHECKED & made.keys():
                # The title of a constant is often the only thing that says what it means.
                if not (key == "title" and "const" in made and "description" not in made):
                    del made[key]
        text = made.get("description")
        if isinstance(text, str):
            if config.strip_nested_descriptions and depth > 1:
                del made["description"]
            elif config.minify_schema:
                made["description"] = shortened(text, config.max_description_length)
        return made


def _has_parts(schema: Mapping[str, Any]) -> bool:
    return not schema.keys().isdisjoint({"$ref", "not", "if", "patternProperties", "properties"} | _LISTS | _INSIDE)


def _drop_unused(schema: dict[str, Any]) -> None:
    """Drop the definitions that nothing refers to, when all references are of a kind that is understood."""
    groups = {key: schema[key] for key in ("$defs", "definitions") if isinstance(schema.get(key), Mapping)}
    if not groups:
        return
    used: set[tuple[str, str]] = set()
    waiting: list[Any] = [{key: value for key, value in schema.items() if key not in groups}]
    while waiting:
        for reference in _references(waiting.pop()):
            match = _PLAIN_REFERENCE.fullmatch(reference)
            if match is None or "%" in reference or "~" in reference:
                return
            target = (match["group"], match["name"])
            if target[0] is not None and target not in used:
                used.add(target)
                waiting.append(groups.get(target[0], {}).get(target[1]))
    for key, entries in groups.items():
        kept = {name: entry for name, entry in entries.items() if (key, name) in used}
        if kept:
            schema[key] = kept
        else:
            del schema[key]


def _references(value: Any) -> Iterator[str]:
    """Yield every reference in a schema. One that cannot be followed comes as it is written."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(entry, str):
                yield entry if key == "$ref" else f"{key} {entry}"
            elif key in ("$id", "id", "$anchor", "$dynamicAnchor") and isinstance(entry, str):
                yield f"{key} {entry}"
            else:
                yield from _references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _references(entry)
