"""Shorter tool definitions: what a model is told shrinks, and what is valid stays valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from graphwright.tools import ToolOptimizationConfig
from graphwright.tools.optimize import trimmed, trimmed_schema
from graphwright.tools.optimize.trimming import shortened
from graphwright.types import ToolSpec

DATA = Path(__file__).parents[1] / "data"
LEVELS = ("minimal", "standard", "semantic")
NAMES = ("title", "description", "examples", "default", "$ref", "items", "a", "b")
"""Names of parameters, most of which are also keywords."""

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def schemas() -> st.SearchStrategy[Any]:
    leaf = st.sampled_from(
        [
            True,
            {},
            {"type": "string", "minLength": 2},
            {"type": "integer", "minimum": 0, "title": "N", "examples": [1]},
            {"enum": [{"title": "kept", "description": "kept"}, "a", None], "$comment": "no"},
            {"const": {"examples": 1}, "title": "the only thing that says what it is"},
            {"default": {"title": "kept"}, "description": "A long text. " * 30},
            {"$ref": "#/$defs/used"},
            {"$ref": "#/$defs/chained"},
        ]
    )
    return st.recursive(leaf, _larger, max_leaves=8)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={
            "title": st.just("An object"),
            "description": st.just("What it is. " * 20),
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "additionalProperties": inner | st.booleans(),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "title"]), inner, max_size=1),
            "not": inner,
            "examples": st.just([{"a": 1}]),
        },
    )
    lists = st.fixed_dictionaries(
        {"type": st.just("array")}, optional={"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}
    )
    choices = st.fixed_dictionaries({}, optional={"anyOf": st.lists(inner, min_size=1, max_size=2), "if": inner})
    return objects | lists | choices


def whole(properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "title": "Arguments",
        "description": "What the tool takes.",
        "properties": {"value": properties},
        "$defs": {
            "used": {"type": "string", "title": "Used", "maxLength": 2},
            "chained": {"anyOf": [{"$ref": "#/$defs/used"}, {"type": "null"}]},
            "unused": {"type": "object"},
        },
    }


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=60, deadline=None)
@given(schema=schemas(), value=values)
def test_exactly_the_same_arguments_are_valid(level: str, schema: Any, value: Any) -> None:
    full = whole(schema)
    short = trimmed_schema(full, ToolOptimizationConfig(level=level))
    arguments = {"value": value}

    assert Draft202012Validator(short).is_valid(arguments) == Draft202012Validator(full).is_valid(arguments)
    assert len(json.dumps(short)) < len(json.dumps(full))


@settings(max_examples=60, deadline=None)
@given(schema=schemas(), value=values)
def test_a_cut_at_some_depth_refuses_nothing_that_the_tool_takes(schema: Any, value: Any) -> None:
    full = whole({"type": "object", "properties": {"value": schema}} if schema is not True else True)
    short = trimmed_schema(full, ToolOptimizationConfig(level="standard", max_schema_depth=1))

    if Draft202012Validator(full).is_valid({"value": {"value": value}}):
        assert Draft202012Validator(short).is_valid({"value": {"value": value}})


def test_parameters_keep_their_names_even_those_that_are_keywords_elsewhere() -> None:
    parameters = {"type": "object", "properties": {name: {"type": "string", "title": "T"} for name in NAMES}}

    short = trimmed_schema(parameters, ToolOptimizationConfig(level="semantic"))

    assert short == {"type": "object", "properties": {name: {"type": "string"} for name in NAMES}}


def test_only_definitions_that_something_refers_to_are_kept() -> None:
    short = trimmed_schema(whole({"$ref": "#/$defs/chained"}), ToolOptimizationConfig())

    assert sorted(short["$defs"]) == ["chained", "used"]
    assert "$defs" not in trimmed_schema(whole({"type": "string"}), ToolOptimizationConfig())


@pytest.mark.parametrize("strange", [{"$ref": "#used"}, {"$dynamicRef": "#used"}, {"$ref": "other.json#/a"}])
def test_no_definition_is_dropped_beside_a_reference_that_is_not_understood(strange: dict[str, Any]) -> None:
    short = trimmed_schema(whole(strange), ToolOptimizationConfig())

    assert sorted(short["$defs"]) == ["chained", "unused", "used"]


def test_nested_descriptions_go_and_those_of_parameters_stay() -> None:
    inner = {"type": "object", "description": "Outer.", "properties": {"x": {"type": "integer", "description": "In."}}}
    parameters = {"type": "object", "properties": {"p": inner}}

    short = trimmed_schema(parameters, ToolOptimizationConfig(level="standard"))

    assert short["properties"]["p"] == {
        "type": "object",
        "description": "Outer.",
        "properties": {"x": {"type": "integer"}},
    }
    assert trimmed_schema(parameters, ToolOptimizationConfig(level="minimal")) == parameters


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("Short.", 20, "Short."),
        ("Send a mail. It is sent at once, whatever happens.", 30, "Send a mail."),
        ("Send a mail to all people who are in the list", 30, "Send a mail to all people..."),
        ("See e.g. the list of all people that there are", 30, "See e.g. the list of all..."),
        ("x" * 50, 30, "x" * 27 + "..."),
        ("Two  spaces stay\n\nhere.", None, "Two  spaces stay\n\nhere."),
    ],
)
def test_a_long_text_ends_with_a_sentence_or_else_a_word(text: str, most: int | None, cut: str) -> None:
    assert shortened(text, most) == cut


def test_what_needs_no_cut_is_the_same_object_again() -> None:
    spec = ToolSpec(name="ping", description="Answer.")

    assert trimmed(spec, ToolOptimizationConfig()) is spec


@pytest.mark.parametrize("path", sorted(DATA.glob("mcp_tools*/*.json")), ids=lambda path: path.stem)
def test_the_tools_of_real_servers_get_shorter_and_stay_schemas(path: Path) -> None:
    config = ToolOptimizationConfig(level="semantic")
    for entry in json.loads(path.read_text(encoding="utf-8"))["tools"]:
        spec = ToolSpec(name=entry["name"], description=entry.get("description", ""), parameters=entry["inputSchema"])
        before = json.dumps(spec.parameters)

        short = trimmed(spec, config)

        Draft202012Validator.check_schema(short.parameters)
        assert json.dumps(spec.parameters) == before, "the tool's own schema was changed"
        assert len(short.description) <= 100
        assert short.parameters.get("required") == spec.parameters.get("required")
        assert list(short.parameters.get("properties", {})) == list(spec.parameters.get("properties", {}))
