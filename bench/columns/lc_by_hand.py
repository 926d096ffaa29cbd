"""The same LangChain model and tools in a loop written by hand: what LangChain's own objects cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import common as c
from lctools import langchain_tools


def load() -> None:
    """Import what the column needs."""
    global FakeChat, HumanMessage, SystemMessage
    import langchain_core.tools  # noqa: F401
    from langchain_core.messages import HumanMessage, SystemMessage
    from lcfake import FakeChat


class Agent:
    """Ask, run the tools that are called, ask again."""

    def __init__(self, tools: list[Any]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.model = FakeChat().bind_tools(tools)

    async def run(self, prompt: str) -> str:
        """Return the text of the answer."""
        messages = [SystemMessage(content=c.INSTRUCTIONS), HumanMessage(content=prompt)]
        while True:
            reply = await self.model.ainvoke(messages)
            messages.append(reply)
            calls = reply.tool_calls
            if not calls:
                return reply.content
            if len(calls) == 1:
                messages.append(await self.tools[calls[0]["name"]].ainvoke(calls[0]))
            else:
                messages.extend(await asyncio.gather(*(self.tools[call["name"]].ainvoke(call) for call in calls)))

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer's text."""
        async for chunk in self.model.astream([SystemMessage(content=c.INSTRUCTIONS), HumanMessage(content=prompt)]):
            yield chunk.content


class Column(c.BaseColumn):
    """The loop."""

    def tools(self, functions: list[Callable[..., Any]]) -> list[Any]:
        """Return the LangChain tools."""
        return langchain_tools(functions)

    def build(self, tools: list[Any], *, store: Any = None, stream: bool = False) -> Agent:
        """Return the agent."""
        return Agent(tools)

    async def run(self, agent: Agent, prompt: str, session: str | None = None) -> str:
        """Return the text of the answer."""
        return await agent.run(prompt)

    def stream(self, agent: Agent, prompt: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer's text."""
        return agent.stream(prompt)
