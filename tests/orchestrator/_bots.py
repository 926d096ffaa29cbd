"""What the tests of the bot share: making one, reading its stream, checking what a model was shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from graphwright import OrchestratorBot
from graphwright.messages import problem_in, text_of
from graphwright.testing import ScriptedModel


def bot_of(steps: Any, tools: Any = (), **options: Any) -> OrchestratorBot:
    """Return a bot whose model answers from a script, or with a function of the messages."""
    model = ScriptedModel(steps) if isinstance(steps, (list, tuple)) else steps
    return OrchestratorBot(model, model, options.pop("instructions", "Be brief."), list(tools), **options)


async def read(stream: Any) -> list[tuple[str, Any]]:
    """Return everything that a stream yields."""
    return [item async for item in stream]


def events_of(items: list[tuple[str, Any]], kind: str) -> list[Any]:
    """Return the payloads of the `graph` mode that have a type."""
    return [payload for mode, payload in items if mode == "graph" and payload["type"] == kind]


def updates_of(items: list[tuple[str, Any]], node: str) -> list[Any]:
    """Return what a stream says that a node changed."""
    return [payload[node] for mode, payload in items if mode == "updates" and node in payload]


def pending_in(items: list[tuple[str, Any]]) -> list[Any]:
    """Return what a stream says that the run waits for."""
    return [item for group in updates_of(items, "__interrupt__") for item in group]


def shown_text(items: list[tuple[str, Any]]) -> str:
    """Return the text that somebody sees who shows every message of a stream as it comes."""
    return "".join(text_of(payload[0]) for mode, payload in items if mode == "messages")


def results_in(messages: list[Any]) -> list[tuple[str, str, str]]:
    """Return id, text and status of every tool result."""
    return [(each.tool_call_id, text_of(each), each.status) for each in messages if each.type == "tool"]


def state_of(bot: OrchestratorBot, thread_id: str) -> dict[str, Any]:
    """Return what a thread's state holds."""
    values = bot.graph.get_state({"configurable": {"thread_id": thread_id}}).values
    assert not values or problem_in([*values["messages"]]) is None
    return values


def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every wait between two attempts be over at once, and return the list that the waits go to."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("graphwright._internal.clock.asyncio", SimpleNamespace(sleep=sleep))
    return waits


def rate_limited(retry_after: str | None = None) -> Exception:
    """Return the error of a provider that says 429."""
    error: Any = RuntimeError("Too many requests")
    error.status_code = 429
    if retry_after is not None:
        error.response = SimpleNamespace(status_code=429, headers={"retry-after": retry_after})
    return error
