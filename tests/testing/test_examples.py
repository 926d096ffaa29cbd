"""Example values: they fit their schema, they are always the same, and what cannot be made is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.testing import NoExampleError, example_of

LISTS = Path(__file__).parents[1] / "data" / "mcp_tools"
TOOLS = [
    pytest.param(tool["inputSchema"], id=f"{path.stem}-{tool['name']}")
    for path in sorted(LISTS.glob("*.json"))
    for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]
]


def check(value: Any, schema: dict[str, Any]) -> None:
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator(schema, format_checker=validator.FORMAT_CHECKER).validate(value)


def with_everything_required(schema: Any) -> Any:
    if isinstance(schema, list):
        return [with_everything_required(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: value if key in ("enum", "const", "default", "required") else with_everything_required(value)
        for key, value in schema.items()
    }
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {name: with_everything_required(one) for name, one in schema["properties"].items()}
        made["required"] = list(made["properties"])
    return made


@pytest.mark.parametrize("schema", TOOLS)
def test_every_tool_of_real_servers_gets_arguments_that_fit(schema: dict[str, Any]) -> None:
    whole = {"type": "object", **schema}
    value = example_of(whole)

    assert isinstance(value, dict)
    assert set(value) == set(schema.get("required", ()))
    check(value, whole)
    full = with_everything_required(whole)
    check(example_of(full), full)


OBJECT_CASES: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, "text"),
    ({"type": "integer"}, 1),
    ({"type": "number"}, 1),
    ({"type": "boolean"}, True),
    ({"type": "null"}, None),
    ({}, "text"),
    ({"type": ["null", "integer"]}, 1),
    ({"type": ["object", "null"]}, {}),
    ({"enum": [None, "b", "a"]}, "b"),
    ({"const": {"x": 1}}, {"x": 1}),
    ({"type": "string", "minLength": 7, "maxLength": 7}, "textttt"),
    ({"type": "string", "maxLength": 2}, "te"),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "integer", "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 6),
    ({"type": "integer", "minimum": 2, "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "maximum": -3}, -3),
    ({"type": "integer", "exclusiveMaximum": 0}, -1),
    ({"type": "integer", "minimum": 11, "multipleOf": 10}, 20),
    ({"type": "integer", "minimum": 1.5}, 2),
    ({"type": "number", "minimum": 0, "exclusiveMaximum": 0.5}, 0),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "number", "multipleOf": 0.25, "minimum": 3}, 3),
    ({"type": "array", "items": {"type": "integer"}}, [1]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}, ["a", "b"]),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}, ["text", "text1"]),
    ({"type": "array", "maxItems": 0}, []),
    ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2}, [1, 2]),
    ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}, {"b": "text"}),
    ({"type": "object", "required": ["x"]}, {"x": "text"}),
    ({"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}}, {"x": 1}),
    ({"type": "object", "required": ["x_1"], "patternProperties": {"^x_": {"type": "boolean"}}}, {"x_1": True}),
    ({"type": "object", "minProperties": 1, "properties": {"a": {"const": 1}, "b": {}}}, {"a": 1}),
    ({"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^k-[0-9]$"}}, {"k-0": "text"}),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
    (
        {"oneOf": [{"type": "object", "required": ["n"], "properties": {"n": {"const": 2}}}, {"type": "string"}]},
        {"n": 2},
    ),
    ({"anyOf": [{"type": "integer", "minimum": 3, "maximum": 2}, {"const": "ok"}]}, "ok"),
    ({"type": "object", "properties": {"a": {"const": 1}}, "anyOf": [{"required": ["a"]}]}, {"a": 1}),
    (
        {
            "allOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {}}, "required": ["b"]},
            ]
        },
        {"a": 1, "b": "text"},
    ),
    ({"allOf": [{"anyOf": [{"minimum": 5}]}, {"anyOf": [{"maximum": 9}]}], "type": "integer"}, 5),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}}, 1),
    (
        {
            "properties": {"a": {"anyOf": [{"const": "one"}, {"const": 2}]}, "b": {"$ref": "#/properties/a/anyOf/1"}},
            "required": ["b"],
        },
        {"b": 2},
    ),
    (
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {
                    "type": "object",
                    "required": ["name", "children", "parent"],
                    "properties": {
                        "name": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                        "parent": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                    },
                }
            },
        },
        {"name": "text", "children": [], "parent": None},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), OBJECT_CASES)
def test_the_example_is_small_valid_and_always_the_same(schema: dict[str, Any], expected: Any) -> None:
    value = example_of(schema)

    assert value == expected
    assert type(value) is type(expected)
    assert example_of(schema) == value
    draft4_style = isinstance(schema.get("exclusiveMinimum"), bool)
    if draft4_style:
        jsonschema.Draft4Validator(schema).validate(value)
    else:
        check(value, schema)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9][a-z0-9_-]*$",
        r"^[a-zA-Z0-9_.-]+\.(png|svg|gif)$",
        r"^(Time)?SlicerStyle(Light|Dark|Other)\d$",
        r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$",
        r"^I?\d+[:|-]\d+(?:;\d+[:|-]\d+)*$",
        r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8})$",
        r"^=",
        r"\$\{\w+\}",
        r"^[^a-z]+$",
        r"^[^aA0_]\S\s\W\D.$",
        r"^(?!text)[a-z]{3,5}$",
        r"^[Ѐ-ӿ]{2}$",
    ],
)
@pytest.mark.parametrize("lengths", [{}, {"minLength": 3}])
def test_a_text_is_made_for_a_pattern(pattern: str, lengths: dict[str, int]) -> None:
    schema = {"type": "string", "pattern": pattern, **lengths}
    if "minLength" in lengths and pattern == r"^[Ѐ-ӿ]{2}$":
        with pytest.raises(NoExampleError, match="no text was found for the pattern"):
            example_of(schema)
        return

    check(example_of(schema), schema)


def test_a_pattern_and_a_length_hold_together() -> None:
    schema = {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$", "minLength": 40, "maxLength": 41}

    check(example_of(schema), schema)


@pytest.mark.parametrize(
    "name", ["date", "date-time", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "time", "regex", "json", "int32"]
)
def test_a_format_is_kept(name: str) -> None:
    schema = {"type": "string", "format": name}
    value = example_of(schema)

    check(value, schema)
    if name == "json":
        json.loads(value)
    if name == "uri":
        assert value.startswith("https://")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 2}, "at '/': no integer lies between 3 and 2"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "no text of 3 to 2 characters"),
        ({"type": "string", "format": "uuid", "maxLength": 4}, "no text of 0 to 4 characters"),
        ({"type": "string", "pattern": "("}, "no text was found for the pattern"),
        ({"type": "string", "pattern": r"(a)\1"}, "no text was found for the pattern"),
        ({"enum": []}, "its enum is empty"),
        ({"not": {}}, "the keyword 'not' is not supported"),
        ({"type": "object", "if": {}, "then": {}}, "the keyword 'if' is not supported"),
        ({"type": "money"}, "the type 'money' is unknown"),
        ({"$ref": "https://example.com/x.json"}, "leads out of the schema"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "requires itself"),
        ({"anyOf": [{"enum": []}, False]}, "no branch of anyOf works"),
        ({"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True}, "no 2 different items"),
        ({"type": "array", "items": {"enum": []}, "minItems": 1}, "at '/0': its enum is empty"),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "'a' is required and not allowed",
        ),
        (
            {"properties": {"a": {"properties": {"b": False}, "required": ["b"]}}, "required": ["a"]},
            "at '/a/b': False accepts nothing",
        ),
    ],
)
def test_what_cannot_be_made_is_said_with_its_place(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(NoExampleError, match="no example for the schema") as failure:
        example_of(schema)

    assert reason in str(failure.value)
    assert isinstance(failure.value, ConfigurationError)
