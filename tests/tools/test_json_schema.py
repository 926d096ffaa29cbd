from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from graphwright.testing.examples import example_of
from graphwright.tools import ToolArgumentError, ToolRun, answer_calls, as_tool, as_tools
from graphwright.types import ToolCall

_LISTS = {
    path.stem: json.loads(path.read_text())["tools"]
    for path in sorted((Path(__file__).parents[1] / "data" / "mcp_tools").glob("*.json"))
}


def remote(schema: dict[str, Any], name: str = "remote") -> StructuredTool:
    async def call(**given: Any) -> dict[str, Any]:
        return given

    return StructuredTool(name=name, description="From elsewhere.", args_schema=schema, coroutine=call)


def problems(schema: dict[str, Any], **args: Any) -> list[str]:
    with pytest.raises(ToolArgumentError) as caught:
        as_tool(remote(schema)).validate(args)
    return caught.value.problems


SCHEMA = {
    "title": "Order",
    "description": "An order.",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 2, "pattern": "^/"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"enum": ["fast", "slow"]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "maxItems": 3},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "maybe": {"type": ["string", "null"]},
        "version": {"const": 2},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {
        "item": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["id"],
        }
    },
}


def test_the_schema_is_shown_as_it_is_without_title_and_description_of_its_own() -> None:
    spec = as_tool(remote(SCHEMA)).spec

    assert spec.description == "From elsewhere."
    assert spec.parameters == {key: value for key, value in SCHEMA.items() if key not in ("title", "description")}


def test_each_problem_is_one_line_with_its_path() -> None:
    found = problems(
        SCHEMA,
        count=0,
        mode="fats",
        items=[{"id": 1}, {"id": "x"}, {}, {"id": 4}],
        either=[],
        maybe=3,
        version=1,
        pth="/x",
    )

    assert sorted(found) == [
        "count: should be at least 1, not 0",
        "either: should be a string or an integer, not []",
        "items: should have at most 3 entries, not [{'id': 1}, {'id': 'x'}, {}, {'id': 4}]",
        "items[1].id: should be an integer, not 'x'",
        "items[2].id: is required",
        "maybe: should be a string or null, not 3",
        "mode: should be one of 'fast', 'slow', not 'fats'",
        "path: is required",
        "pth: there is no such argument; did you mean 'path'?",
        "version: should be 2, not 1",
    ]
    assert problems(SCHEMA, path="x") == [
        "path: should have at least 2 characters, not 'x'",
        "path: should match the pattern '^/', not 'x'",
    ]


def test_a_null_for_an_optional_argument_that_cannot_be_null_counts_as_not_given() -> None:
    made = as_tool(remote(SCHEMA))

    assert made.validate({"path": "/a", "count": None, "maybe": None, "items": [{"id": 1, "note": None}]}) == {
        "path": "/a",
        "maybe": None,
        "items": [{"id": 1}],
    }
    assert problems(SCHEMA, path=None, count=None) == [
        "path: should be a string, not null",
    ]


def test_of_several_forms_the_one_that_was_meant_is_told() -> None:
    schema = {
        "type": "object",
        "properties": {
            "target": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
                ]
            }
        },
    }

    assert problems(schema, target={"id": "x"}) == ["target.id: should be an integer, not 'x'"]
    assert problems(schema, target={}) == ["target.id: is required"]
    assert problems(schema, target=3) == ["target: should be a string or an object, not 3"]


def test_a_schema_without_type_and_properties_becomes_an_object_that_takes_anything() -> None:
    made = as_tool(remote({"$schema": "http://json-schema.org/draft-07/schema#"}))

    assert made.spec.parameters["type"] == "object"
    assert made.spec.parameters["properties"] == {}
    assert made.validate({"a": 1}) == {"a": 1}


def test_a_reference_out_of_the_schema_is_never_fetched(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema.json"}}}

    assert as_tool(remote(schema)).validate({"a": 1}) == {"a": 1}
    assert "the arguments of tool 'remote' are not checked: its schema points to" in caplog.text


def test_a_broken_schema_is_logged_once_and_the_tool_decides(caplog: pytest.LogCaptureFixture) -> None:
    made = as_tool(remote({"type": "object", "properties": {"a": {"type": "text"}}}))

    assert [made.validate({"a": 1}), made.validate({"a": 2})] == [{"a": 1}, {"a": 2}]
    assert [record.message for record in caplog.records] == [
        "the arguments of tool 'remote' are not checked: its schema is broken: "
        "'text' is not valid under any of the given schemas"
    ]


@pytest.mark.parametrize("server", _LISTS)
async def test_tools_of_real_servers_take_what_fits_and_name_what_does_not(server: str) -> None:
    entries = _LISTS[server]
    tools = as_tools([remote(entry["inputSchema"], entry["name"]) for entry in entries])
    assert tools.names == tuple(entry["name"] for entry in entries)

    for spec in tools.specs:
        args = example_of(spec.parameters)
        result = (await answer_calls([ToolCall("c1", spec.name, args)], tools, ToolRun()))[0]
        assert (result.success, json.loads(str(result.message.content))) == (True, args)
        for name in spec.parameters.get("required", ()):
            lacking = {key: value for key, value in args.items() if key != name}
            refused = (await answer_calls([ToolCall("c1", spec.name, lacking)], tools, ToolRun()))[0]
            assert not refused.success
            assert f"- {name}: is required" in str(refused.message.content)
