from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

from graphwright.exceptions import ConfigurationError, ModelError, OutputSchemaError
from graphwright.messages import text_of
from graphwright.models import constrained
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.models.constrained import ConstrainedToolModel, Written
from graphwright.models.grammar_schema import grammar_schema
from graphwright.models.plain_turns import Turn, field_lines, plain_turns
from graphwright.models.prompted import tools_in_words
from graphwright.testing.examples import example_of
from graphwright.types import ToolSpec
from graphwright.usage import Usage

MCP_TOOLS = Path(__file__).parent.parent / "data" / "mcp_tools"

ADD = ToolSpec(
    name="add",
    description="Add two whole numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "description": "The other"}},
        "required": ["a", "b"],
    },
)
CLOCK = ToolSpec(name="clock", description="Tell the time.")
ADD_CALL = '{"tool":"add","arguments":{"a":2,"b":3}}'


class Script:
    """A text model that writes the given texts in order and remembers what it was asked."""

    name = "script"

    def __init__(self, *texts: str | Written, forces_schema: bool = True) -> None:
        self.texts = [text if isinstance(text, Written) else Written(text=text, usage=_tokens(10, 1)) for text in texts]
        self.forces_schema = forces_schema
        self.asked: list[tuple[list[Turn], dict[str, Any] | None]] = []

    async def generate_json(self, turns: Sequence[Turn], schema: dict[str, Any], request: ModelRequest) -> Written:
        self.asked.append((list(turns), schema))
        return self.texts.pop(0)

    async def stream_text(self, turns: Sequence[Turn], request: ModelRequest) -> AsyncIterator[str | Written]:
        self.asked.append((list(turns), None))
        written = self.texts.pop(0)
        for word in written.text.split(" "):
            yield word + " "
        yield written


class WithoutTools:
    """A chat model that takes no tools and remembers what it was asked."""

    name = "plain"
    capabilities = ModelCapabilities(tools=False, streaming=False)

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> AIMessage:
        self.asked.append(request)
        usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        return AIMessage(self.texts.pop(0), usage_metadata=usage, response_metadata={"finish_reason": "stop"})


def _tokens(read: int, written: int) -> Usage:
    return Usage(read, written, read + written)


def _request(*messages: BaseMessage, tools: Sequence[ToolSpec] = (ADD, CLOCK), **given: Any) -> ModelRequest:
    return ModelRequest(messages=messages or [HumanMessage("Add 2 and 3")], tools=tools, **given)


def _calls(message: AIMessage | AIMessageChunk) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


async def test_a_turn_with_a_call_asks_once_and_only_for_what_was_offered() -> None:
    script = Script(ADD_CALL)

    reply = await ConstrainedToolModel(script).complete(_request())

    assert _calls(reply) == [("add", {"a": 2, "b": 3})]
    assert reply.content == ""
    assert reply.tool_calls[0]["id"]
    assert reply.usage_metadata == {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    assert reply.response_metadata == {"model_name": "script", "finish_reason": "tool_calls"}
    [(_, schema)] = script.asked
    assert schema is not None
    admits = jsonschema.Draft202012Validator(schema).is_valid
    assert admits({"tool": "add", "arguments": {"a": 1, "b": 2}})
    assert admits({"tool": "clock", "arguments": {}})
    assert admits({"tool": "none"})
    assert not admits({"tool": "add", "arguments": {"a": "one", "b": 2}})
    assert not admits({"tool": "add", "arguments": {"a": 1, "b": 2, "c": 3}})
    assert not admits({"tool": "rm", "arguments": {}})
    assert not admits({"tool": "add"})


async def test_choosing_no_tool_leads_to_an_answer_in_words_and_both_phases_are_counted() -> None:
    script = Script('{"tool":"none"}', Written(text="It is five.", usage=_tokens(20, 4)))

    reply = await ConstrainedToolModel(script).complete(_request())

    assert (reply.content, reply.tool_calls) == ("It is five. ", [])
    assert reply.usage_metadata == {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
    assert reply.response_metadata["finish_reason"] == "stop"
    turns, schema = script.asked[1]
    assert schema is None
    assert turns[-1] == Turn("user", f"Add 2 and 3\n\n{constrained.ANSWER}")


async def test_the_prompts_are_exactly_these() -> None:
    script = Script('{"tool":"none"}', "Hello.")

    await ConstrainedToolModel(script).complete(_request(SystemMessage("Be kind."), HumanMessage("Hi")))

    add = "- add: Add two whole numbers.\n  arguments:\n    a (integer)\n    b (integer): The other"
    listed = f"{add}\n- clock: Tell the time."
    (choosing, _), (answering, _) = script.asked
    assert choosing == [
        Turn(
            "system",
            "Be kind.\n\nChoose the tool that fits the user's message. "
            'Reply with JSON: {"tool": name, "arguments": {...}}\n' + listed + "\n- none: No tool is needed.",
        ),
        Turn("user", "Hi"),
    ]
    assert answering == [
        Turn("system", "Be kind.\n\nYou can use these tools:\n" + listed),
        Turn("user", "Hi\n\nNow answer in plain words, without JSON."),
    ]


async def test_without_tools_there_is_one_phase_and_nothing_is_added_to_the_conversation() -> None:
    script = Script("Hello there.")

    reply = await ConstrainedToolModel(script).complete(_request(HumanMessage("Hi"), tools=()))

    assert reply.content == "Hello there. "
    assert script.asked == [([Turn("user", "Hi")], None)]


async def test_tool_choice_none_offers_no_tool() -> None:
    script = Script("Five.")

    reply = await ConstrainedToolModel(script).complete(_request(tool_choice="none"))

    assert (reply.content, reply.tool_calls) == ("Five. ", [])
    assert script.asked == [([Turn("user", "Add 2 and 3")], None)]


@pytest.mark.parametrize(("choice", "offered"), [("required", ["add", "clock"]), ("clock", ["clock"])])
async def test_a_required_call_leaves_no_way_to_answer(choice: str, offered: list[str]) -> None:
    script = Script('{"tool":"clock","arguments":{}}')

    reply = await ConstrainedToolModel(script).complete(_request(tool_choice=choice))

    assert _calls(reply) == [("clock", {})]
    [(turns, schema)] = script.asked
    assert schema is not None
    options = schema.get("anyOf", [schema])
    assert [option["properties"]["tool"]["enum"] for option in options] == [[name] for name in offered]
    assert "none" not in turns[0].content


async def test_a_tool_choice_that_names_no_tool_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"tool_choice is 'rm' and no tool has that name.*add, clock"):
        await ConstrainedToolModel(Script()).complete(_request(tool_choice="rm"))


async def test_a_tool_that_is_called_none_can_be_called() -> None:
    tool = ToolSpec(name="none", description="Do nothing.")
    script = Script('{"tool":"none","arguments":{}}', '{"tool":"no_none"}', "Done.")
    model = ConstrainedToolModel(script)

    called = await model.complete(_request(tools=[tool]))
    answered = await model.complete(_request(tools=[tool]))

    assert _calls(called) == [("none", {})]
    assert (answered.content, answered.tool_calls) == ("Done. ", [])


async def test_a_stream_shows_the_answer_in_pieces_and_ends_with_one_chunk() -> None:
    script = Script('{"tool":"none"}', Written(text="It is five.", usage=_tokens(20, 4), cut_off=True))

    pieces = [piece async for piece in ConstrainedToolModel(script).stream(_request())]

    assert pieces[:-1] == ["It ", "is ", "five. "]
    last = pieces[-1]
    assert isinstance(last, AIMessageChunk)
    assert last.usage_metadata == {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
    assert last.response_metadata == {"model_name": "script", "finish_reason": "length"}


async def test_a_streamed_call_comes_whole() -> None:
    [chunk] = [piece async for piece in ConstrainedToolModel(Script(ADD_CALL)).stream(_request())]

    assert isinstance(chunk, AIMessageChunk)
    assert _calls(chunk) == [("add", {"a": 2, "b": 3})]
    [part] = chunk.tool_call_chunks
    assert json.loads(part["args"] or "") == {"a": 2, "b": 3}
    assert part["id"]


async def test_leaving_a_stream_closes_the_stream_of_the_model_inside() -> None:
    closed: list[bool] = []

    class Endless(Script):
        async def stream_text(self, turns: Sequence[Turn], request: ModelRequest) -> AsyncIterator[str | Written]:
            try:
                while True:
                    yield "again "
            finally:
                closed.append(True)

    stream: Any = ConstrainedToolModel(Endless()).stream(_request(tools=()))
    assert await anext(stream) == "again "
    await stream.aclose()

    assert closed == [True]


async def test_a_call_that_was_cut_off_is_asked_for_again_with_the_problem_and_a_looser_schema() -> None:
    script = Script(Written(text='{"tool":"add","arguments":{"a":2,', usage=_tokens(10, 9), cut_off=True), ADD_CALL)

    reply = await ConstrainedToolModel(script).complete(_request())

    assert _calls(reply) == [("add", {"a": 2, "b": 3})]
    assert reply.usage_metadata == {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
    (first, _), (second, loose) = script.asked
    assert second[: len(first)] == first
    assert second[len(first) :] == [
        Turn("assistant", '{"tool":"add","arguments":{"a":2,'),
        Turn("user", "That cannot be used: it was too long and cut off. Write the JSON again, and nothing else."),
    ]
    assert loose is not None
    assert loose["anyOf"][0]["properties"] == {"tool": {"enum": ["add"]}, "arguments": {"type": "object"}}


async def test_two_unusable_choices_are_an_error_that_shows_what_was_written() -> None:
    cut = Written(text='{"tool":"add","argum', cut_off=True)

    with pytest.raises(ModelError, match=r"'script' wrote no usable tool call in two tries.*cut off.*argum") as raised:
        await ConstrainedToolModel(Script(cut, cut)).complete(_request())

    assert raised.value.retryable is False


async def test_a_tiny_model_sees_samples_and_its_repeated_call_counts_as_an_answer() -> None:
    script = Script(ADD_CALL, "Five.")
    history = [
        HumanMessage("Add 2 and 3"),
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 2, "b": 3}, "id": "1"}]),
        ToolMessage("5", tool_call_id="1"),
    ]

    reply = await ConstrainedToolModel(script, tiny=True).complete(_request(*history))

    assert (reply.content, reply.tool_calls) == ("Five. ", [])
    (choosing, _), (answering, _) = script.asked
    assert [(turn.role, turn.content) for turn in choosing[1:]] == [
        ("user", "Hello, how are you?"),
        ("assistant", '{"tool":"none"}'),
        ("user", "Add two whole numbers."),
        ("assistant", '{"tool":"add","arguments":{"a":7,"b":7}}'),
        ("user", "Tell the time."),
        ("assistant", '{"tool":"clock","arguments":{}}'),
        ("user", "Tell me a story."),
        ("assistant", '{"tool":"none"}'),
        ("user", "Add 2 and 3\n\nResult of add(a=2, b=3): 5"),
    ]
    assert answering == [Turn("user", "Add 2 and 3\n\nResult of add(a=2, b=3): 5\n\nAnswer with this result.")]


async def test_the_same_call_in_a_new_user_turn_is_no_repetition() -> None:
    history = [
        HumanMessage("Add 2 and 3"),
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 2, "b": 3}, "id": "1"}]),
        ToolMessage("5", tool_call_id="1"),
        AIMessage("Five."),
        HumanMessage("Again, please"),
    ]

    reply = await ConstrainedToolModel(Script(ADD_CALL), tiny=True).complete(_request(*history))

    assert _calls(reply) == [("add", {"a": 2, "b": 3})]


class Person(BaseModel):
    name: str = Field(description="The full name")
    age: int = Field(ge=0)


async def test_an_output_schema_is_filled_and_checked() -> None:
    script = Script('{"name":"Anna","age":31}')

    reply = await ConstrainedToolModel(script).complete(_request(tools=(), output_schema=Person))

    assert json.loads(str(reply.content)) == {"name": "Anna", "age": 31}
    [(turns, schema)] = script.asked
    assert turns[-1].content.endswith("Its fields are:\nname (string): The full name\nage (integer)")
    assert schema == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong() -> None:
    script = Script('{"name":"Anna","age":-1}', '{"name":"Anna","age":31}')

    reply = await ConstrainedToolModel(script).complete(_request(tools=(), output_schema=Person))

    assert json.loads(str(reply.content))["age"] == 31
    assert "age: Input should be greater than or equal to 0" in script.asked[1][0][-1].content


async def test_two_answers_that_do_not_fit_are_an_error_with_the_last_of_them() -> None:
    script = Script('{"name":"Anna"}', '{"age":1}')

    with pytest.raises(OutputSchemaError, match=r"fits Person: name: Field required") as raised:
        await ConstrainedToolModel(script).complete(_request(tools=(), output_schema=Person))

    assert raised.value.raw == '{"age":1}'


async def test_with_tools_and_an_output_schema_the_answer_is_filled_after_the_choice() -> None:
    script = Script('{"tool":"none"}', '{"name":"Anna","age":31}')

    reply = await ConstrainedToolModel(script).complete(_request(output_schema=Person))

    assert (json.loads(str(reply.content)), reply.tool_calls) == ({"name": "Anna", "age": 31}, [])
    assert len(script.asked) == 2


@pytest.mark.parametrize(
    "text",
    [
        ADD_CALL,
        f"I will add them.\n```json\n{ADD_CALL}\n```\nDone.",
        '{"name": "add", "parameters": {"a": 2, "b": 3}}',
        '{"type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 2, \\"b\\": 3}"}}',
        '[{"tool": "add", "args": {"a": 2, "b": 3}}]',
    ],
)
async def test_a_model_that_nothing_holds_may_write_its_call_in_many_forms(text: str) -> None:
    reply = await tools_in_words(WithoutTools(text)).complete(_request())

    assert _calls(reply) == [("add", {"a": 2, "b": 3})]


async def test_a_model_that_nothing_holds_may_ask_for_several_calls() -> None:
    text = ADD_CALL + "\n" + '{"tool":"clock","arguments":{}}'

    reply = await tools_in_words(WithoutTools(text)).complete(_request())

    assert _calls(reply) == [("add", {"a": 2, "b": 3}), ("clock", {})]
    assert len({call["id"] for call in reply.tool_calls}) == 2


async def test_an_answer_in_words_in_place_of_a_choice_is_the_answer() -> None:
    model = WithoutTools("It is five.")

    reply = await tools_in_words(model).complete(_request())

    assert (reply.content, reply.tool_calls, len(model.asked)) == ("It is five.", [], 1)
    assert model.asked[0].tools == ()
    assert "JSON object and nothing else" in str(model.asked[0].messages[-1].content)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"tool":"rm","arguments":{}}', "there is no tool named 'rm'; the tools are: add, clock"),
        ('{"tool":"add","arguments":[2,3]}', 'its "arguments" are no JSON object'),
        ('{"tool":"add","arguments":"2 and 3"}', 'its "arguments" are no JSON object'),
        ('{"tool":"add","arguments":', "there is no JSON object in it"),
        ('{"sum":5}', 'it is no tool call: "tool" is missing'),
    ],
)
async def test_an_unusable_choice_is_told_and_made_again(text: str, problem: str) -> None:
    model = WithoutTools(text, ADD_CALL)

    reply = await tools_in_words(model).complete(_request())

    assert _calls(reply) == [("add", {"a": 2, "b": 3})]
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["total_tokens"] == 14
    assert [message.content for message in model.asked[1].messages[-2:]] == [
        text,
        f"That cannot be used: {problem}. Write the JSON again, and nothing else.",
    ]


async def test_json_that_was_meant_as_the_answer_leads_to_an_answer() -> None:
    model = WithoutTools('{"sum":5}', '{"sum":5}', "The sum is 5.")

    reply = await tools_in_words(model).complete(_request())

    assert (reply.content, reply.tool_calls) == ("The sum is 5.", [])


async def test_words_where_a_call_is_required_are_an_error() -> None:
    with pytest.raises(ModelError, match="no usable tool call in two tries"):
        await tools_in_words(WithoutTools("Five.", "Five!")).complete(_request(tool_choice="required"))


async def test_a_langchain_model_without_bind_tools_can_call_tools() -> None:
    from graphwright.models import as_model

    fake = GenericFakeChatModel(messages=iter([AIMessage(ADD_CALL), AIMessage("The sum is 5.")]))
    model: Any = as_model(fake)

    called = await model.complete(_request())
    pieces = [piece async for piece in model.stream(_request(tools=()))]

    assert _calls(called) == [("add", {"a": 2, "b": 3})]
    assert "".join(text_of(piece) for piece in pieces) == "The sum is 5."


def test_a_conversation_becomes_alternating_turns_that_begin_and_end_with_the_user() -> None:
    turns = plain_turns(
        [
            AIMessage("Welcome."),
            SystemMessage("One."),
            HumanMessage("First"),
            HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]),
            AIMessage(
                "I look.",
                tool_calls=[{"name": "f", "args": {"q": "é"}, "id": "1"}, {"name": "g", "args": {}, "id": "2"}],
            ),
            ToolMessage("found", tool_call_id="1"),
            ToolMessage("broken", tool_call_id="2", status="error"),
            SystemMessage("Two."),
            AIMessage("Done."),
        ],
        guide="Guide.",
    )

    assert turns == [
        Turn("system", "One.\n\nTwo.\n\nGuide."),
        Turn("user", "(The conversation began earlier.)"),
        Turn("assistant", "Welcome."),
        Turn("user", "First\n\n(something that is not text)"),
        Turn("assistant", "I look."),
        Turn("user", 'Result of f(q="é"): found\n\nError of g(): broken'),
        Turn("assistant", "Done."),
        Turn("user", "Continue."),
    ]


def test_fields_are_described_with_references_choices_and_nesting() -> None:
    schema = {
        "type": "object",
        "$defs": {"Unit": {"enum": ["c", "f"], "description": "A unit"}},
        "properties": {
            "unit": {"$ref": "#/$defs/Unit", "description": "Which unit"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "places": {
                "type": "array",
                "items": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
        },
        "required": ["unit"],
    }

    assert field_lines(schema) == [
        'unit ("c" or "f"): Which unit',
        "tags (list of strings, optional)",
        "when (string or null, optional)",
        "places (list of objects, optional)",
        "  city (string)",
    ]


def test_every_schema_of_the_servers_becomes_one_that_a_grammar_holds() -> None:
    specs = [tool for file in sorted(MCP_TOOLS.glob("*.json")) for tool in json.loads(file.read_text())["tools"]]
    assert len(specs) > 50
    for tool in specs:
        simple = grammar_schema(tool["inputSchema"])
        _only_simple_words(simple)
        example = example_of(tool["inputSchema"]) if tool["inputSchema"].get("properties") else {}
        jsonschema.Draft202012Validator(simple).validate(example)


def _only_simple_words(schema: Any) -> None:
    if isinstance(schema, bool):
        return
    words = {
        "additionalProperties", "anyOf", "enum", "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems",
        "maxLength", "maximum", "minItems", "minLength", "minimum", "properties", "required", "type",
    }  # fmt: skip
    assert set(schema) <= words, schema
    for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items", True)]:
        _only_simple_words(part)
    _only_simple_words(schema.get("additionalProperties", True))


@pytest.mark.parametrize(
    ("schema", "simple"),
    [
        ({"type": "string", "format": "date", "pattern": "^(?=x)", "title": "T", "default": ""}, {"type": "string"}),
        ({"const": 5, "type": "integer"}, {"enum": [5]}),
        ({"type": "integer", "minimum": 5, "maximum": 1}, {"type": "integer"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}),
        ({"anyOf": [{"type": "string"}, {}]}, {}),
        ({"oneOf": [{"type": "string"}, {"const": None}]}, {"anyOf": [{"type": "string"}, {"enum": [None]}]}),
        ({"$ref": "https://example.com/other.json"}, {}),
        ({"$ref": "#/$defs/missing"}, {}),
        ({"not": {"type": "string"}}, {}),
        (True, {}),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, {"type": "array"}),
        ({"type": "object", "patternProperties": {"^x": {}}}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        (
            {"type": "object", "properties": {"a": {}, "b": False}, "additionalProperties": True},
            {"type": "object", "properties": {"a": {}}},
        ),
        (
            {"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_schema_is_reduced_to_what_a_grammar_takes(schema: Any, simple: dict[str, Any]) -> None:
    assert grammar_schema(schema) == simple


def test_properties_beside_a_choice_go_into_each_option() -> None:
    simple = grammar_schema(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
    )

    admits = jsonschema.Draft202012Validator(simple).is_valid
    assert admits({"a": "x"})
    assert admits({"b": "x"})
    assert not admits({})
    assert not admits({"c": "x"})


def test_a_choice_within_a_conjunction_keeps_the_other_parts() -> None:
    simple = grammar_schema(
        {
            "allOf": [
                {"properties": {"kind": {"type": "string"}}, "required": ["kind"]},
                {"oneOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]},
            ]
        }
    )

    admits = jsonschema.Draft202012Validator(simple).is_valid
    assert admits({"kind": "k", "a": 1})
    assert admits({"kind": "k", "b": 1})
    assert not admits({"a": 1})


def test_references_are_inlined_and_a_loop_is_opened() -> None:
    simple = grammar_schema(
        {
            "$defs": {
                "node/1": {
                    "type": "object",
                    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node~11"}},
                    "required": ["value"],
                }
            },
            "$ref": "#/$defs/node~11",
        }
    )

    assert simple == {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"type": "object"}},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_references_that_multiply_end() -> None:
    levels: dict[str, Any] = {
        f"d{level}": {
            "type": "object",
            "properties": {f"p{part}": {"$ref": f"#/$defs/d{level + 1}"} for part in range(8)},
        }
        for level in range(20)
    }

    simple = grammar_schema({"$defs": {**levels, "d20": {"type": "string"}}, "$ref": "#/$defs/d0"})

    assert simple["properties"]["p0"]["type"] == "object"
    assert len(json.dumps(simple)) < 2_000_000
