"""Models and tools that only look like ones, as the tests of the bot's users have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import BaseTool
from pydantic import BaseModel
from tests.orchestrator._bots import read, shown_text, updates_of

from graphwright import OrchestratorBot
from graphwright.exceptions import ConfigurationError

CALL = {"name": "deploy", "args": {"target": "prod"}, "id": "c1", "type": "tool_call"}
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


class Args(BaseModel):
    target: str


def mock_model(*replies: AIMessage) -> MagicMock:
    """Return a chat model made of mocks: `astream` gives one chunk a reply, `ainvoke` the reply."""
    left = list(replies)
    seen: list[Any] = []

    async def astream(messages: Any, *_: Any, **__: Any) -> Any:
        seen.append(list(messages))
        reply = left.pop(0)
        yield AIMessageChunk(
            content=reply.content,
            tool_calls=reply.tool_calls,
            usage_metadata=reply.usage_metadata,
        )

    async def ainvoke(messages: Any, *_: Any, **__: Any) -> AIMessage:
        seen.append(list(messages))
        return left.pop(0)

    chat = MagicMock()
    chat.bind_tools.return_value = chat
    chat.astream = astream
    chat.ainvoke = AsyncMock(side_effect=ainvoke)
    chat.seen, chat.left = seen, left
    return chat


def mock_tool(name: str, **attributes: Any) -> MagicMock:
    tool = MagicMock()
    tool.name = name
    tool.description = f"does {name}"
    tool.ainvoke = AsyncMock(return_value=f"{name}: done")
    for key, value in attributes.items():
        setattr(tool, key, value)
    return tool


def wrapped(chat: Any) -> MagicMock:
    """Return a language model as users make it up: an object whose `model` is the chat model."""
    return MagicMock(model=chat)


def usual() -> MagicMock:
    return mock_model(
        AIMessage(content="", tool_calls=[CALL], usage_metadata=USAGE),
        AIMessage(content="It is out.", usage_metadata=USAGE),
    )


@pytest.mark.parametrize("how", ["arun", "stream"])
@pytest.mark.parametrize("holder", [wrapped, lambda chat: SimpleNamespace(model=chat)])
async def test_a_bot_of_mocks_runs_a_tool_and_answers(how: str, holder: Any) -> None:
    chat, tool = usual(), mock_tool("deploy")
    bot = OrchestratorBot(holder(chat), holder(chat), "Be brief.", [tool])

    if how == "arun":
        result = await bot.arun("ship it")
        content, records, usage = result.content, result.tools_executed, result.token_usage["total_tokens"]
    else:
        items = await read(bot.astream_events("ship it", mode="auto"))
        content, records = shown_text(items), updates_of(items, "tools")[0]["tools_executed"]
        usage = sum(update["token_usage"]["total_tokens"] for update in updates_of(items, "agent"))

    assert content == "It is out."
    assert records == [
        {"tool_name": "deploy", "args": {"target": "prod"}, "status": "success", "output": "deploy: done"}
    ]
    assert usage == 20
    tool.ainvoke.assert_awaited_once_with({"target": "prod"})
    assert [message.type for message in chat.seen[1]] == ["system", "human", "ai", "tool"]
    assert chat.bind_tools.call_args.args[0][0]["function"]["name"] == "deploy"


async def test_the_bound_model_may_be_another_mock_than_the_one_that_was_given() -> None:
    bound = usual()
    chat = MagicMock()
    chat.bind_tools.return_value = bound
    bot = OrchestratorBot(wrapped(chat), None, "", [mock_tool("deploy")])

    result = await bot.arun("ship it")

    assert result.content == "It is out."
    assert len(bound.seen) == 2


async def test_a_model_that_only_has_ainvoke_is_asked_by_it_in_a_stream_too() -> None:
    chat = SimpleNamespace(ainvoke=AsyncMock(return_value=AIMessage(content="hello")))
    bot = OrchestratorBot(SimpleNamespace(model=chat), None, "")

    assert shown_text(await read(bot.astream_events("hi", mode="auto"))) == "hello"
    assert (await bot.arun("hi")).content == "hello"


@pytest.mark.parametrize("spec", [None, BaseChatModel])
@pytest.mark.parametrize("holder", [wrapped, lambda chat: chat])
async def test_a_mock_of_a_chat_model_may_leave_its_stream_to_chance(spec: Any, holder: Any) -> None:
    chat = MagicMock(spec=spec)
    chat.bind_tools = MagicMock(return_value=chat)
    chat.ainvoke = AsyncMock(return_value=AIMessage(content="hello"))
    bot = OrchestratorBot(holder(chat), None, "", [mock_tool("deploy")])

    assert shown_text(await read(bot.astream_events("hi", mode="auto"))) == "hello"
    assert (await bot.arun("hi")).content == "hello"


async def test_a_mock_of_a_langchain_tool_is_called_as_a_tool() -> None:
    tool = MagicMock(spec=BaseTool)
    tool.name, tool.description, tool.args_schema = "deploy", "", None
    tool.ainvoke = AsyncMock(return_value={"done": True})
    bot = OrchestratorBot(wrapped(usual()), None, "", [tool])

    result = await bot.arun("ship it")

    assert [record["output"] for record in result.tools_executed] == ['{"done": true}']
    tool.ainvoke.assert_awaited_once_with({"target": "prod"})


async def test_an_answer_that_is_itself_a_mock_is_read_by_what_has_the_right_type() -> None:
    chat = SimpleNamespace(ainvoke=AsyncMock(return_value=MagicMock(content="hello", tool_calls=[])))

    result = await OrchestratorBot(SimpleNamespace(model=chat), None, "").arun("hi")

    assert (result.content, result.token_usage["total_tokens"], result.status) == ("hello", 0, "completed")


@pytest.mark.parametrize(
    ("attributes", "asks"),
    [({}, True), ({"risk_level": 0}, False), ({"risk_hint": 0}, False), ({"risk_hint": 0, "risk_level": 2}, True)],
)
async def test_the_risk_of_a_mock_is_what_was_set_and_not_what_it_makes_up(attributes: Any, asks: bool) -> None:
    tool = mock_tool("deploy", **attributes)
    bot = OrchestratorBot(wrapped(usual()), None, "", [tool])

    result = await bot.arun("ship it", mode="ask", thread_id="t")

    assert (result.status == "paused") is asks
    assert tool.ainvoke.await_count == (0 if asks else 1)
    if asks:
        assert result.pending_approval is not None
        assert result.pending_approval["params"] == {"target": "prod"}
        resumed = await bot.aresume("t", True)
        assert resumed.content == "It is out."
        tool.ainvoke.assert_awaited_once_with({"target": "prod"})


async def test_a_plain_object_with_a_schema_has_its_arguments_checked_before_it_runs() -> None:
    class Deploy:
        name = "deploy"
        description = "Deploy somewhere."
        args_schema = Args

        def __init__(self) -> None:
            self.seen: list[Any] = []

        async def ainvoke(self, args: Any) -> str:
            self.seen.append(args)
            return "done"

    tool = Deploy()
    wrong = {**CALL, "args": {"target": 5}}
    chat = mock_model(
        AIMessage(content="", tool_calls=[wrong]),
        AIMessage(content="", tool_calls=[{**CALL, "id": "c2"}]),
        AIMessage(content="ok"),
    )

    result = await OrchestratorBot(wrapped(chat), None, "", [tool]).arun("ship it")

    assert [record["status"] for record in result.tools_executed] == ["error", "success"]
    assert tool.seen == [{"target": "prod"}]
    assert chat.bind_tools.call_args.args[0][0]["function"]["parameters"]["required"] == ["target"]


async def test_an_object_with_only_a_sync_side_runs_and_its_error_reaches_the_model() -> None:
    def invoke(args: Any) -> str:
        raise RuntimeError("no such host")

    tool = SimpleNamespace(name="deploy", description="", invoke=invoke)
    chat = usual()

    result = await OrchestratorBot(wrapped(chat), None, "", [tool]).arun("ship it")

    assert [(record["status"], "no such host" in record["output"]) for record in result.tools_executed] == [
        ("error", True)
    ]
    assert result.content == "It is out."


@pytest.mark.parametrize("tool", [SimpleNamespace(name="x"), SimpleNamespace(ainvoke=AsyncMock()), 5])
def test_what_is_no_tool_is_refused_when_the_bot_is_built(tool: Any) -> None:
    with pytest.raises(ConfigurationError):
        OrchestratorBot(wrapped(usual()), None, "", [tool])


@pytest.mark.parametrize("model", [SimpleNamespace(model=None), object(), 5])
def test_what_is_no_model_is_refused_when_the_bot_is_built(model: Any) -> None:
    with pytest.raises(ConfigurationError, match="no language model"):
        OrchestratorBot(model, None, "")
