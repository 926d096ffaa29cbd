from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Annotated, Any, Optional

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    ToolException,
)
from langchain_core.tools import Tool as SingleInputTool
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphwright.exceptions import ConfigurationError
from graphwright.tools import ToolRun, answer_calls, as_tool, as_tools
from graphwright.types import ToolCall, ToolResult

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="unset")


async def answer(entry: Any, args: dict[str, Any], **run: Any) -> ToolResult:
    tools = as_tools([entry])
    return (await answer_calls([ToolCall("c1", tools.names[0], args)], tools, ToolRun(**run)))[0]


@langchain_tool
def search(query: str, limit: int = 5, tags: list[str] | None = None) -> dict[str, Any]:
    """Search the documents."""
    return {"query": query, "limit": limit, "tags": tags}


class Range(BaseModel):
    first: int = Field(alias="from")
    last: int = Field(ge=1, description="the last one")


class Search(BaseModel):
    """What to look for."""

    model_config = ConfigDict(populate_by_name=True)
    query: str
    ranges: list[Range] = []
    mode: str = "all"

    @field_validator("query")
    @classmethod
    def _is_not_empty(cls, value: str) -> str:
        if not value:
            raise ValueError("Say what to look for")
        return value


def find(**given: Any) -> str:
    return f"found {given}"


finder = StructuredTool.from_function(find, name="find", description="Find.", args_schema=Search)


def test_the_model_is_told_name_description_and_schema() -> None:
    spec = as_tool(search).spec

    assert (spec.name, spec.description) == ("search", "Search the documents.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 5},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
    }


async def test_a_blocking_tool_runs_in_our_threads_with_the_callers_context(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("the default pool was used")

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", refuse)
    token = word.set("caller")

    class Own(BaseTool):
        name: str = "own"
        description: str = "Own."

        def _run(self, query: str, limit: int = 3) -> str:
            return f"{threading.current_thread().name} {word.get()} {query} {limit}"

    single = SingleInputTool(name="single", description="One.", func=lambda text: f"one {text}")
    try:
        assert (await answer(Own(), {"query": "x"})).message.content == "graphwright-worker caller x 3"
        assert (await answer(single, {"tool_input": "y"})).message.content == "one y"
    finally:
        word.reset(token)
    assert (await answer(search, {"query": "q"})).message.content == '{"query": "q", "limit": 5, "tags": null}'


async def test_an_async_tool_runs_on_the_loop() -> None:
    class Both(BaseTool):
        name: str = "both"
        description: str = "Both."

        def _run(self, query: str) -> str:
            return "blocking"

        async def _arun(self, query: str) -> str:
            return f"async {threading.current_thread() is threading.main_thread()}"

    async def look(query: str) -> str:
        """Look."""
        return f"looked {query}"

    assert (await answer(Both(), {"query": "x"})).message.content == "async True"
    assert (await answer(StructuredTool.from_function(coroutine=look), {"query": "x"})).message.content == "looked x"


async def test_arguments_that_do_not_fit_are_told_like_those_of_a_function() -> None:
    result = await answer(finder, {"query": "", "ranges": [{"from": 1, "last": 0}, {"from": "x"}], "mood": "any"})

    assert result.message.content == (
        "the arguments of 'find' do not fit; correct them and call again:\n"
        "- mood: there is no such argument; did you mean 'mode'?\n"
        "- query: say what to look for (it is '')\n"
        "- ranges[0].last: should be greater than or equal to 1, not 0\n"
        "- ranges[1].from: should be a valid integer, unable to parse string as an integer, not 'x'\n"
        "- ranges[1].last: is required"
    )
    assert (result.message.status, result.raised) == ("error", False)


async def test_a_null_for_an_optional_argument_that_cannot_be_null_counts_as_not_given() -> None:
    result = await answer(search, {"query": "q", "limit": None, "tags": None})
    refused = await answer(search, {"query": None})

    assert result.message.content == '{"query": "q", "limit": 5, "tags": null}'
    assert result.args == {"query": "q", "tags": None}
    assert "- query: should be a valid string, not null" in str(refused.message.content)


async def test_a_validator_that_changes_the_value_is_applied_once() -> None:
    class Names(BaseModel):
        names: Annotated[list[str], Field()]

        @field_validator("names", mode="before")
        @classmethod
        def _split(cls, value: Any) -> list[str]:
            if not isinstance(value, str):
                raise ValueError("give names with commas")
            return value.split(",")

    def greet(names: list[str]) -> str:
        return " ".join(names)

    made = StructuredTool.from_function(greet, description="Greet.", args_schema=Names)

    assert (await answer(made, {"names": "ann,bob"})).message.content == "ann bob"


async def test_aliases_and_models_that_allow_more_are_respected() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        first: int = Field(alias="from")

    def take(**given: Any) -> str:
        return "taken"

    made = StructuredTool.from_function(take, name="take", description="Take.", args_schema=Open)

    result = await answer(made, {"from": "1", "more": 2})

    assert (result.message.content, result.args) == ("taken", {"from": "1", "more": 2})
    assert "- from: should be a valid integer" in str((await answer(made, {"from": "x"})).message.content)


async def test_the_id_of_the_call_is_injected_and_cannot_be_forged() -> None:
    @langchain_tool
    def book(seat: int, call_id: Annotated[str, InjectedToolCallId], note: Optional[str] = None) -> str:  # noqa: UP045
        """Book a seat."""
        return f"{seat} {call_id} {note}"

    assert list(as_tool(book).spec.parameters["properties"]) == ["seat", "note"]
    assert (await answer(book, {"seat": 3})).message.content == "3 c1 None"
    forged = await answer(book, {"seat": 3, "call_id": "other"})
    assert "- call_id: there is no such argument" in str(forged.message.content)


async def test_an_argument_that_the_program_owes_is_not_blamed_on_the_model() -> None:
    @langchain_tool
    def book(seat: int, state: Annotated[dict[str, Any], InjectedToolArg]) -> str:
        """Book a seat."""
        return f"{seat} {state}"

    result = await answer(book, {"seat": 3})

    assert list(as_tool(book).spec.parameters["properties"]) == ["seat"]
    assert result.message.content == "'book' cannot run: the program has to give it state, and did not"
    assert result.raised


@pytest.mark.parametrize("is_async", [False, True])
async def test_content_and_artifact_are_kept(is_async: bool) -> None:
    def plot(n: int) -> tuple[str, dict[str, int]]:
        """Plot."""
        return f"plotted {n}", {"points": n}

    async def plot_later(n: int) -> tuple[str, dict[str, int]]:
        """Plot."""
        return plot(n)

    made = StructuredTool.from_function(
        **({"coroutine": plot_later} if is_async else {"func": plot}), response_format="content_and_artifact"
    )
    message = (await answer(made, {"n": 3})).message

    assert (message.content, message.artifact, message.tool_call_id, message.name) == (
        "plotted 3",
        {"points": 3},
        "c1",
        made.name,
    )


@pytest.mark.parametrize(
    ("handle", "content"),
    [
        (False, "no seat left"),
        (True, "no seat left"),
        ("try tomorrow", "try tomorrow"),
        (lambda error: f"handled {error}", "handled no seat left"),
    ],
)
async def test_a_tool_exception_is_its_text_as_the_tool_wants_it_told(handle: Any, content: str) -> None:
    @langchain_tool
    async def book(seat: int) -> str:
        """Book a seat."""
        raise ToolException("no seat left")

    book.handle_tool_error = handle
    result = await answer(book, {"seat": 3})

    assert (result.message.content, result.message.status, result.success) == (content, "error", False)


async def test_any_other_exception_is_told_by_type_and_message() -> None:
    @langchain_tool
    def book(seat: int) -> str:
        """Book a seat."""
        raise LookupError(f"no seat {seat}")

    result = await answer(book, {"seat": 3})

    assert (result.message.content, result.raised) == ("LookupError: no seat 3", True)


async def test_a_tool_with_words_of_its_own_for_bad_arguments_uses_them() -> None:
    @langchain_tool
    def book(seat: int) -> str:
        """Book a seat."""
        return f"booked {seat}"

    book.handle_validation_error = "seats are numbers"

    assert (await answer(book, {"seat": "x"})).message.content == "seats are numbers"
    assert (await answer(book, {"seat": "3"})).message.content == "booked 3"


async def test_content_blocks_and_messages_of_the_tools_own_are_kept() -> None:
    blocks = [{"type": "text", "text": "hi"}]

    @langchain_tool
    def show() -> Any:
        """Show."""
        return blocks

    @langchain_tool
    def own(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Make a message."""
        return ToolMessage("mine", tool_call_id=call_id, artifact=7, status="error")

    assert (await answer(show, {})).message.content == blocks
    message = (await answer(own, {})).message
    assert (message.content, message.artifact, message.status) == ("mine", 7, "error")


async def test_a_name_given_here_is_what_the_model_reads() -> None:
    from graphwright.tools import tool

    made = tool(search, name="find_docs", timeout=2)
    message = (await answer(made, {"query": "q"})).message

    assert (made.spec.name, made.timeout, message.name) == ("find_docs", 2, "find_docs")


async def test_a_tool_whose_signature_says_nothing_takes_what_it_is_given() -> None:
    class Anything(BaseTool):
        name: str = "anything"
        description: str = "Anything."

        def _run(self, *args: Any, **kwargs: Any) -> str:
            return str(sorted(key for key in kwargs if key not in ("config", "run_manager")))

    assert as_tool(Anything()).spec.parameters == {"type": "object", "properties": {}}
    assert (await answer(Anything(), {"a": 1, "b": 2})).success


@pytest.mark.filterwarnings("ignore")
async def test_a_schema_of_pydantic_1_is_understood() -> None:
    from pydantic.v1 import BaseModel as BaseModelV1

    class Old(BaseModelV1):
        seat: int
        note: str = "none"

    def book(seat: int, note: str = "none") -> str:
        return f"{seat} {note}"

    made = StructuredTool.from_function(book, description="Book.", args_schema=Old)

    assert as_tool(made).spec.parameters["required"] == ["seat"]
    assert (await answer(made, {"seat": "3", "note": None})).message.content == "3 none"
    refused = str((await answer(made, {"seat": "x"})).message.content)
    assert refused.startswith("the arguments of 'book' do not fit; correct them and call again:\n- seat: ")


def test_a_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no name"):
        as_tool(SingleInputTool(name="", description="x", func=str))
