"""Graphwright with a model behind its own port and plain functions as tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import common as c

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def load() -> None:
    """Import what the column needs."""
    global AIMessage, ModelCapabilities, build_agent
    from langchain_core.messages import AIMessage

    from graphwright import build_agent
    from graphwright.models import ModelCapabilities


class Model:
    """The model of the harness, behind the port."""

    name = "fake"

    def __init__(self) -> None:
        self.capabilities = ModelCapabilities()

    async def complete(self, request: Any) -> Any:
        """Answer the last message."""
        kind, what = await c.amodel(*_last(request))
        if kind == "text":
            return AIMessage(content=what, usage_metadata=USAGE)
        calls = [{"id": c.call_id(), "name": name, "args": args, "type": "tool_call"} for name, args in what]
        return AIMessage(content="", usage_metadata=USAGE, tool_calls=calls)

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Yield the answer to the last message in pieces."""
        role, text = _last(request)
        if role == "tool" or not text.startswith("stream"):
            raise RuntimeError(f"nothing but a streamed text is asked of this column's stream, not {text!r}")
        async for piece in c.achunks():
            yield piece


def _last(request: Any) -> tuple[str, str]:
    message = request.messages[-1]
    return ("tool" if message.type == "tool" else "user"), message.content


class Column(c.BaseColumn):
    """The agent that `build_agent` makes, with nothing but its limits raised."""

    notes = ("max_agent_iterations raised",)

    async def abuild(self, tools: list[Callable[..., Any]], *, store: Any = None, stream: bool = False) -> Any:
        """Build the agent."""
        return await build_agent(
            model=self.model(),
            extra_tools=tools,
            instructions=c.INSTRUCTIONS,
            max_agent_iterations=100_000,
            max_parallel_tools=32,
        )

    def model(self) -> Any:
        """Return the model that the agent is built with."""
        return Model()

    async def run(self, agent: Any, prompt: str, session: str | None = None) -> str:
        """Return the text of the answer."""
        result = await agent.ainvoke({"messages": [{"role": "user", "content": prompt}]})
        return result.text

    async def stream(self, agent: Any, prompt: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer's text."""
        async for event in agent.astream_with_tools({"messages": [{"role": "user", "content": prompt}]}):
            if event.type == "token":
                yield event.text
