"""Tools of real servers, as they are offered to models: what providers take, and what reaches the server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_anthropic.chat_models import convert_to_anthropic_tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphwright.exceptions import ToolArgumentError
from graphwright.mcp.client.adapter import MCPTool
from graphwright.mcp.client.names import offered_names, valid_name
from graphwright.mcp.client.schemas import bindable_schema
from graphwright.testing.examples import example_of
from graphwright.tools import ToolSet
from graphwright.types import ToolCall

types = pytest.importorskip("mcp_types", reason="install it with: pip install 'graphwright[mcp]'")

DATA = Path(__file__).parents[1] / "data"
LISTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["tools"]
    for folder in ("mcp_tools", "mcp_tools_more")
    for path in sorted((DATA / folder).glob("*.json"))
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Recorder:
    """Servers that do nothing but write down what reaches them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, Any], bool]] = []

    async def call_tool(self, server: str, tool: str, arguments: Any = None, *, repeatable: bool = False) -> Any:
        self.calls.append((server, tool, dict(arguments or {}), repeatable))
        return types.CallToolResult(content=[types.TextContent(text="ok")])


def tools_of(recorder: Recorder, lists: dict[str, Any]) -> list[MCPTool]:
    entries = {
        (server, entry["name"]): types.Tool.model_validate(entry) for server, tools in lists.items() for entry in tools
    }
    names = offered_names(entries)
    return [MCPTool(recorder, key[0], entry, name=names[key]) for key, entry in entries.items()]


def parts(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema inside a schema."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key in ("properties", "patternProperties"):
        for name, entry in (schema.get(key) or {}).items():
            yield from parts(entry, f"{path}.{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for place, entry in enumerate(schema.get(key) or ()):
            yield from parts(entry, f"{path}.{key}[{place}]")
    for key in ("items", "additionalProperties", "propertyNames"):
        yield from parts(schema.get(key), f"{path}.{key}")


def refused_by_a_provider(schema: dict[str, Any]) -> list[str]:
    """Return what at least one of OpenAI, Anthropic and Gemini answers with a 400."""
    problems = []
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        problems.append("the root is no object with properties")
    problems += [f"the root has {key}" for key in ("anyOf", "oneOf", "allOf", "not", "enum", "$ref") if key in schema]
    for path, part in parts(schema):
        problems += [f"{path} has {key}" for key in ("$ref", "$defs", "definitions", "$schema", "$id") if key in part]
        if part.get("type") == "array" and not isinstance(part.get("items"), dict):
            problems.append(f"{path} is an array without items")
        problems += [f"{path} has {key}, which is lost" for key in ("oneOf", "const") if key in part]
        if not all(isinstance(value, str) for value in part.get("enum", ())):
            problems.append(f"{path} has an enum of something else than texts")
        lost = [name for name in part.get("required", ()) if name not in part.get("properties", {})]
        if lost and (part.get("type") == "object" or "properties" in part):
            problems.append(f"{path} requires {lost}, which it does not have")
    return problems


def test_the_lists_are_those_of_24_servers_with_342_tools() -> None:
    assert (len(LISTS), sum(map(len, LISTS.values()))) == (24, 342)


def test_every_schema_is_one_that_every_provider_takes() -> None:
    tools = tools_of(Recorder(), LISTS)
    refused = {tool.name: found for tool in tools if (found := refused_by_a_provider(tool.spec.parameters))}

    assert refused == {}
    assert len(ToolSet(tools)) == 342


def test_every_tool_can_be_bound_by_the_clients_of_the_providers() -> None:
    for tool in tools_of(Recorder(), LISTS):
        function = {
            "name": tool.spec.name,
            "description": tool.spec.description,
            "parameters": tool.spec.parameters,
        }
        bound = convert_to_openai_tool({"type": "function", "function": function})
        assert bound["function"]["parameters"] == tool.spec.parameters
        assert convert_to_anthropic_tool(bound)["input_schema"] == tool.spec.parameters


def test_every_name_is_valid_for_every_provider_and_nobody_elses() -> None:
    tools = tools_of(Recorder(), LISTS)

    assert [tool.name for tool in tools if not NAME.fullmatch(tool.name)] == []
    assert len({tool.name for tool in tools}) == len(tools)


def test_a_schema_keeps_the_properties_and_what_is_required() -> None:
    for tools in LISTS.values():
        for entry in tools:
            made = bindable_schema(entry["inputSchema"])
            assert made["properties"].keys() >= entry["inputSchema"].get("properties", {}).keys()
            assert set(made.get("required", ())) >= set(entry["inputSchema"].get("required", ()))


async def test_valid_arguments_reach_the_server_as_they_are_and_bad_ones_do_not() -> None:
    recorder = Recorder()
    ran, refused = 0, 0
    for tool in tools_of(recorder, LISTS):
        schema = {**tool.entry.input_schema, "type": "object"}
        args = example_of(schema)
        call = ToolCall("1", tool.name, args)
        assert await tool.run(tool.validate(args), call, None) == "ok"
        assert recorder.calls[-1] == (tool.server, tool.remote_name, args, tool.idempotent)
        ran += 1
        for name in schema.get("required", ()):
            with pytest.raises(ToolArgumentError) as caught:
                tool.validate({key: value for key, value in args.items() if key != name})
            assert caught.value.problems[0].startswith(f"{name}: ")
            refused += 1
    assert (ran, refused > 300) == (342, True)


def test_a_parameter_called_schema_or_from_is_like_any_other() -> None:
    (tool,) = tools_of(
        Recorder(),
        {"s": [{"name": "t", "inputSchema": {"properties": {"from": {"type": "string"}, "schema": {}}}}]},
    )

    assert tool.validate({"from": "a", "schema": {"b": 1}}) == {"from": "a", "schema": {"b": 1}}
    with pytest.raises(ToolArgumentError, match="from: should be a string, not 5"):
        tool.validate({"from": 5})


@pytest.mark.parametrize("schema", [{}, {"$schema": "x"}, {"type": "string"}, {"type": "object"}, {"properties": None}])
def test_a_schema_without_anything_in_it_is_an_object_without_properties(schema: dict[str, Any]) -> None:
    (tool,) = tools_of(Recorder(), {"s": [{"name": "t", "inputSchema": schema}]})

    assert tool.spec.parameters == {"type": "object", "properties": {}}
    assert tool.validate({}) == {}


def test_a_schema_that_leads_into_itself_ends() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name"],
    }
    schema = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    begin = time.perf_counter()
    (tool,) = tools_of(Recorder(), {"s": [{"name": "t", "inputSchema": schema}]})
    took = time.perf_counter() - begin

    tree = tool.spec.parameters["properties"]["tree"]
    assert refused_by_a_provider(tool.spec.parameters) == []
    assert (sorted(tree["properties"]), tree["required"]) == (["children", "name"], ["name"])
    assert took < 0.5
    deep = {"tree": {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}}
    assert tool.validate(deep) == deep
    with pytest.raises(ToolArgumentError, match=r"tree\.children\[0\]\.children\[0\]\.name: is required"):
        tool.validate({"tree": {"name": "a", "children": [{"name": "b", "children": [{}]}]}})


def test_a_schema_that_would_grow_without_end_is_cut() -> None:
    defs = {
        f"d{level}": {"properties": {key: {"$ref": f"#/$defs/d{level + 1}"} for key in "abcdefgh"}}
        for level in range(12)
    }
    begin = time.perf_counter()
    made = bindable_schema({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})

    assert refused_by_a_provider(made) == []
    assert time.perf_counter() - begin < 1
    assert len(json.dumps(made)) < 2_000_000


def test_alternatives_at_the_root_become_one_object() -> None:
    by_id = {"properties": {"id": {"type": "integer"}}, "required": ["id", "kind"]}
    by_name = {"properties": {"name": {"type": "string"}}, "required": ["name", "kind"]}
    schema = {"properties": {"kind": {"type": "string"}}, "anyOf": [by_id, by_name], "allOf": [{"required": ["kind"]}]}
    (tool,) = tools_of(Recorder(), {"s": [{"name": "t", "inputSchema": schema}]})

    assert tool.spec.parameters == {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["kind"],
    }
    assert tool.validate({"kind": "x", "id": 1}) == {"kind": "x", "id": 1}
    with pytest.raises(ToolArgumentError):
        tool.validate({"kind": "x"})


def test_what_contradicts_itself_or_is_missing_is_repaired() -> None:
    schema = {
        "properties": {
            "list": {"type": "array"},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
            "kind": {"const": "saw"},
            "sure": {"const": True, "description": "Be sure."},
            "form": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "tone": {"type": ["string", "null"], "enum": ["low", None]},
            "any": True,
            "old": {"$ref": "#/definitions/size"},
            "away": {"$ref": "https://example.com/x.json", "description": "elsewhere"},
        },
        "required": ["list", "gone"],
        "definitions": {"size": {"enum": [1, 2]}},
    }

    assert bindable_schema(schema) == {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {}},
            "pair": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
            "kind": {"enum": ["saw"], "type": "string"},
            "sure": {"type": "boolean", "description": "Be sure. Always true."},
            "form": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tone": {"type": ["string", "null"], "enum": ["low"]},
            "any": {},
            "old": {"description": "One of 1, 2.", "type": "integer"},
            "away": {"description": "elsewhere"},
        },
        "required": ["list"],
    }


def test_names_that_no_provider_takes_are_made_valid_and_stay_apart() -> None:
    names = ["coding.start", "a/b", "get file", "größe", "coding_start", "2fa", "-x", ""]
    offered = offered_names([("s", name) for name in names])

    assert list(offered.values()) == [
        valid_name("coding_start", unique="s\0coding.start"),
        "a_b",
        "get_file",
        "gr_e",
        "coding_start",
        "_2fa",
        "_-x",
        "tool",
    ]
    assert all(NAME.fullmatch(name) for name in offered.values())


def test_long_names_are_cut_apart_and_the_same_in_every_process() -> None:
    pairs = [(server, "x" * 70 + end) for server in ("one", "two") for end in ("_read", "_write")]
    offered = offered_names(pairs)

    assert len(set(offered.values())) == 4
    assert all(len(name) <= 64 for name in offered.values())
    assert offered == offered_names(reversed(pairs))
    assert offered["one", "x" * 70 + "_read"] == "one_" + "x" * 51 + "_5347b67f"


def test_a_name_on_two_servers_or_that_is_taken_gets_its_servers_name_in_front() -> None:
    pairs = [("github", "create_issue"), ("gitlab", "create_issue"), ("github", "fork"), ("gitlab", "search")]
    offered = offered_names(pairs, taken={"fork"})

    assert offered == {
        ("github", "create_issue"): "github_create_issue",
        ("gitlab", "create_issue"): "gitlab_create_issue",
        ("github", "fork"): "github_fork",
        ("gitlab", "search"): "search",
    }


def test_a_made_name_never_takes_one_that_somebody_has() -> None:
    pairs = [("a", "x"), ("b", "x"), ("c", "a_x")]
    offered = offered_names(pairs, taken={"b_x"})

    assert offered["c", "a_x"] == "a_x"
    assert len({*offered.values(), "b_x"}) == 4


@pytest.mark.parametrize(
    ("hints", "risk", "idempotent"),
    [
        (None, 1, False),
        ({"readOnlyHint": True}, 0, True),
        ({"destructiveHint": True}, 2, False),
        ({"readOnlyHint": True, "destructiveHint": True}, 0, True),
        ({"destructiveHint": False, "idempotentHint": True}, 1, True),
    ],
)
def test_what_a_server_says_of_a_tool_tells_its_risk(
    hints: dict[str, bool] | None, risk: int, idempotent: bool
) -> None:
    entry = {"name": "a.b", "inputSchema": {}, "annotations": hints, "title": "A and B"}
    (tool,) = tools_of(Recorder(), {"s": [entry]})

    assert (tool.risk_level, tool.idempotent, tool.untrusted) == (risk, idempotent, True)
    assert (tool.name, tool.remote_name, tool.title, tool.spec.description) == ("a_b", "a.b", "A and B", "A and B")
    assert tool.other_names == ("a.b", "s.a.b", "s_a.b")


def test_every_tool_can_be_bound_by_the_client_of_gemini() -> None:
    pytest.importorskip("langchain_google_genai", reason="install it with: pip install 'graphwright[google]'")
    from langchain_google_genai._function_utils import convert_to_genai_function_declarations

    for tool in tools_of(Recorder(), LISTS):
        spec = tool.spec
        function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        (bound,) = convert_to_genai_function_declarations([{"type": "function", "function": function}])
        shown = bound.model_dump(exclude_none=True, mode="json")["function_declarations"][0]
        assert shown["name"] == spec.name
        assert set(shown.get("parameters", {}).get("properties", {})) == set(spec.parameters["properties"])
