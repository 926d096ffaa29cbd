from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphwright.tools import Tool, ToolRun, answer_calls, as_tools
from graphwright.types import ToolCall, ToolResult

SERVERS = Path(__file__).parents[2] / "servers.py"


def _servers() -> Any:
    name = "graphwright_test_servers"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SERVERS)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    with _servers().postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[Any]:
    with _servers().redis_server() as server:
        yield server


@pytest.fixture(scope="session")
def mysql() -> Iterator[Any]:
    with _servers().mysql_server() as server:
        yield server


class Use:
    """Call a tool as an agent does."""

    async def __call__(self, tool: Tool, /, **args: Any) -> Any:
        result = await self.result(tool, **args)
        assert result.success, result.message.content
        return result.message.content

    async def data(self, tool: Tool, /, **args: Any) -> Any:
        return json.loads(await self(tool, **args))

    async def error(self, tool: Tool, /, **args: Any) -> str:
        result = await self.result(tool, **args)
        assert not result.success, result.message.content
        return str(result.message.content)

    async def result(self, tool: Tool, /, **args: Any) -> ToolResult:
        (result,) = await answer_calls([ToolCall(id="c1", name=tool.name, args=args)], as_tools([tool]), ToolRun())
        return result


@pytest.fixture
def use() -> Use:
    return Use()
