"""The model that tries every tool: driven here by a small loop, as an engine would drive it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphwright.messages import text_of
from graphwright.models.base import ModelRequest
from graphwright.testing import EchoToolsModel, NoExampleError, ScriptError, assert_valid_conversation
from graphwright.types import ToolSpec

LISTS = Path(__file__).parents[1] / "data" / "mcp_tools"


def spec(name: str, *required: str) -> ToolSpec:
    properties = {one: {"type": "string"} for one in required}
    return ToolSpec(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


def tools_of(path: Path) -> list[ToolSpec]:
    listed = json.loads(path.read_text(encoding="utf-8"))["tools"]
    return [ToolSpec(name=one["name"], parameters=one["inputSchema"]) for one in listed]


async def drive(model: EchoToolsModel, tools: list[ToolSpec], messages: list[BaseMessage]) -> list[list[str]]:
    """Answer each call until the model says something, and return the names that it called, turn by turn."""
    turns: list[list[str]] = []
    for _ in range(len(tools) + 1):
        reply = await model.complete(ModelRequest(messages=messages, tools=tools))
        messages.append(reply)
        if not reply.tool_calls:
            return turns
        turns.append([call["name"] for call in reply.tool_calls])
        for call in reply.tool_calls:
            messages.append(ToolMessage(f"{call['name']} is done", tool_call_id=str(call["id"])))
    raise AssertionError("the model never answered")


async def test_it_calls_each_tool_once_one_a_turn_and_lists_the_results() -> None:
    messages: list[BaseMessage] = [HumanMessage("go")]

    turns = await drive(EchoToolsModel(), [spec("a", "x"), spec("b")], messages)

    assert turns == [["a"], ["b"]]
    assert text_of(messages[-1]) == 'I called every tool:\n- a({"x": "text"}): a is done\n- b({}): b is done'
    assert_valid_conversation(messages)


async def test_in_parallel_it_calls_all_tools_in_one_turn() -> None:
    messages: list[BaseMessage] = [HumanMessage("go")]

    assert await drive(EchoToolsModel(parallel=True), [spec("a"), spec("b"), spec("c")], messages) == [["a", "b", "c"]]


async def test_a_new_user_turn_starts_again() -> None:
    model, messages = EchoToolsModel(), [HumanMessage("go")]
    first = await drive(model, [spec("a")], messages)  # type: ignore[arg-type]
    messages.append(HumanMessage("again"))

    assert (first, await drive(model, [spec("a")], messages)) == ([["a"]], [["a"]])  # type: ignore[arg-type]
    assert_valid_conversation(messages)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("path", sorted(LISTS.glob("*.json")), ids=lambda path: path.stem)
async def test_it_tries_every_tool_of_real_servers(path: Path, parallel: bool) -> None:
    tools = tools_of(path)

    turns = await drive(EchoToolsModel(parallel=parallel), tools, [HumanMessage("go")])

    assert [name for turn in turns for name in turn] == [tool.name for tool in tools]
    assert len(turns) == (1 if parallel else len(tools))


async def test_without_tools_or_when_forbidden_to_call_it_answers_at_once() -> None:
    model = EchoToolsModel()
    request = ModelRequest(messages=[HumanMessage("go")], tools=[spec("a")], tool_choice="none")

    for asked in (request, ModelRequest(messages=[HumanMessage("go")])):
        reply = await model.complete(asked)
        assert (reply.tool_calls, text_of(reply)) == ([], "There is no tool that I could call.")


async def test_a_forced_tool_is_the_one_that_is_called() -> None:
    request = ModelRequest(messages=[HumanMessage("go")], tools=[spec("a"), spec("b")], tool_choice="b")

    reply = await EchoToolsModel(parallel=True).complete(request)

    assert [call["name"] for call in reply.tool_calls] == ["b"]


async def test_given_arguments_are_used_and_an_impossible_schema_names_the_tool() -> None:
    odd = ToolSpec(name="odd", parameters={"type": "object", "required": ["n"], "properties": {"n": {"not": {}}}})
    request = ModelRequest(messages=[HumanMessage("go")], tools=[odd])

    with pytest.raises(NoExampleError, match=r"tool 'odd': .*'/n'.*'not' is not supported"):
        await EchoToolsModel().complete(request)
    reply = await EchoToolsModel(arguments={"odd": {"n": 7}}).complete(request)

    assert reply.tool_calls[0]["args"] == {"n": 7}


async def test_one_model_serves_runs_side_by_side() -> None:
    model, tools = EchoToolsModel(), [spec("a"), spec("b", "x")]

    ended = await asyncio.gather(*(drive(model, tools, [HumanMessage(f"go {number}")]) for number in range(10)))

    assert ended == [[["a"], ["b"]]] * 10
    ids = {
        call["id"]
        for seen in model.inputs
        for message in seen
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    assert len(ids) == 20


async def test_it_is_as_strict_as_a_scripted_model_and_streams_like_one() -> None:
    with pytest.raises(ScriptError, match="no user turn"):
        await EchoToolsModel().complete(ModelRequest(messages=[]))

    request = ModelRequest(messages=[HumanMessage("go")], tools=[spec("a", "x")])
    pieces = [piece async for piece in EchoToolsModel().stream(request)]

    assert [part["name"] for piece in pieces if not isinstance(piece, str) for part in piece.tool_call_chunks][:1] == [
        "a"
    ]
