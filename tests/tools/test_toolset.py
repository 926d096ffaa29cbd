from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool

from graphwright.exceptions import ConfigurationError
from graphwright.tools import FunctionTool, Tool, ToolSet, as_tool, as_tools, tool
from graphwright.types import ToolCall, ToolSpec


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def wait(seconds: float) -> str:
    """Wait a while."""
    return f"waited {seconds}"


@langchain_tool
def shout(text: str) -> str:
    """Shout a text."""
    return text.upper()


class Own(Tool):
    spec = ToolSpec(name="own")

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        return args


def test_functions_langchain_tools_and_tools_make_one_set() -> None:
    own = Own()
    tools = as_tools([add, wait, shout, own])

    assert tools.names == ("add", "wait", "shout", "own")
    assert [spec.name for spec in tools.specs] == ["add", "wait", "shout", "own"]
    assert tools.specs is tools.specs
    assert len(tools) == 4
    assert tools.get("own") is own
    assert tools.get("nope") is None
    assert "add" in tools
    assert own in tools
    assert "nope" not in tools
    assert as_tool(wait) in tools
    assert list(tools) == [tools.get(name) for name in tools.names]
    assert [entry.blocking for entry in tools] == [True, False, True, False]
    assert as_tools(tools) is tools
    assert as_tool(own) is own
    assert len(as_tools(None)) == 0


def test_the_same_tool_twice_counts_once() -> None:
    class Shop:
        def buy(self) -> None: ...

    shop, other = Shop(), Shop()

    assert as_tools([add, shout, add, as_tool(add), shout, shop.buy, shop.buy]).names == ("add", "shout", "buy")
    with pytest.raises(ConfigurationError, match="two tools have the name 'buy'"):
        as_tools([shop.buy, other.buy])


def test_two_different_tools_of_one_name_are_refused_and_both_are_named() -> None:
    def shout(text: str) -> str:
        return text

    with pytest.raises(ConfigurationError) as caught:
        as_tools([globals()["shout"], shout])

    text = str(caught.value)
    assert "two tools have the name 'shout'" in text
    assert "LangChainTool('shout', langchain_core.tools.structured.StructuredTool)" in text
    assert "<locals>.shout)" in text
    assert "tool(function, name=...)" in text


def test_sets_are_merged_without_changing_either() -> None:
    left, right = as_tools([add, wait]), as_tools([wait, shout])

    assert left.merged(right).names == ("add", "wait", "shout")
    assert (left.names, right.names) == (("add", "wait"), ("wait", "shout"))
    assert left.merged(ToolSet()) is left
    assert ToolSet().merged(left) is left
    with pytest.raises(ConfigurationError, match="two tools have the name 'add'"):
        left.merged(as_tools([tool(wait, name="add")]))


@pytest.mark.parametrize("thing", [3, "add", None, {"name": "add"}, ToolCall, Own])
def test_what_is_no_tool_is_named_in_the_error(thing: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        as_tool(thing)

    assert (thing.__name__ if isinstance(thing, type) else repr(thing)) in str(caught.value)


@pytest.mark.parametrize("things", ["add", {"add": add}, 7, add])
def test_tools_are_given_as_a_list(things: Any) -> None:
    with pytest.raises(ConfigurationError, match="tools are given as a list, not as"):
        as_tools(things)


def test_the_decorator_changes_name_description_and_timeout_and_the_function_can_still_be_called() -> None:
    @tool
    def plain(a: int) -> int:
        """Plain."""
        return a + 1

    @tool(name="renamed", description="Other words.", timeout=2.5)
    def original(a: int) -> int:
        return a + 2

    assert isinstance(plain, FunctionTool)
    assert (plain.name, plain.spec.description, plain.timeout, plain(1)) == ("plain", "Plain.", None, 2)
    assert (original.name, original.spec.description, original.timeout) == ("renamed", "Other words.", 2.5)
    assert original(1) == 3
    assert original.__name__ == "original"
    assert plain.__doc__ == "Plain."


async def test_an_async_function_that_became_a_tool_is_still_awaited_like_the_function() -> None:
    assert await tool(wait)(0.5) == "waited 0.5"


def test_a_tool_can_be_renamed_and_keeps_the_rest() -> None:
    slow = tool(tool(add, timeout=3, description="Sum."), name="sum")
    loud = tool(shout, name="loud", timeout=1)

    assert (slow.name, slow.spec.description, slow.timeout) == ("sum", "Sum.", 3)
    assert (loud.name, loud.spec.description, loud.timeout) == ("loud", "Shout a text.", 1)
    assert as_tools([add, slow, shout, loud]).names == ("add", "sum", "shout", "loud")
    with pytest.raises(ConfigurationError, match="is a tool of a class of its own"):
        tool(Own(), name="mine")


def test_a_method_can_be_decorated_in_its_class() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool(timeout=4)
        def buy(self, item: str) -> str:
            """Buy an item."""
            return f"{self.name} {item}"

    bound = Shop("corner").buy

    assert list(bound.spec.parameters["properties"]) == ["item"]
    assert (bound.timeout, bound.spec.description, bound("milk")) == (4, "Buy an item.", "corner milk")


@pytest.mark.parametrize("timeout", [0, -1, True, "3", float("nan")])
def test_a_timeout_that_no_call_could_meet_is_refused(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="give seconds above 0, or None"):
        tool(add, timeout=timeout)


@pytest.mark.parametrize("name", ["", "two words", "dotted.name", "x" * 65, "größe"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a tool"):
        tool(add, name=name)


def test_a_deep_copy_of_something_that_holds_tools_shares_the_tools() -> None:
    tools = [as_tool(add), as_tool(shout)]

    assert [copied is entry for copied, entry in zip(copy.deepcopy(tools), tools, strict=True)] == [True, True]


def test_tools_of_plain_functions_load_no_langchain_tools_and_no_json_schema_library() -> None:
    code = """
import sys
from graphwright.tools import as_tools

def add(a: int, b: int) -> int:
    return a + b

as_tools([add]).specs
names = ("langchain_core.tools", "jsonschema", "langchain_core.callbacks.manager")
print([name for name in names if name in sys.modules])
"""
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": src}, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")
