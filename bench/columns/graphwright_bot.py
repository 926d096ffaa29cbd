"""The orchestrator bot, with its run log in memory; with a store, in an SQLite file."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from typing import Any

import common as c
import graphwright_native as native


def load() -> None:
    """Import what the column needs."""
    global OrchestratorBot, SQLiteRunLog
    native.load()
    from graphwright import OrchestratorBot
    from graphwright.runlog import SQLiteRunLog


class Column(native.Column):
    """The bot with nothing but its limits raised."""

    notes = ("recursion_limit raised", "mode auto")
    persistence = "SQLiteRunLog, two commits a round"

    async def abuild(self, tools: list[Callable[..., Any]], *, store: Any = None, stream: bool = False) -> Any:
        """Build the bot."""
        return OrchestratorBot(
            self.model(),
            None,
            c.INSTRUCTIONS,
            tools,
            memory_path=tempfile.gettempdir() + "/graphwright-bench-memory",
            max_parallel_tools=32,
            recursion_limit=1_000_000,
            checkpointer=store,
        )

    async def run(self, agent: Any, prompt: str, session: str | None = None) -> str:
        """Return the text of the answer."""
        return (await agent.arun(prompt, thread_id=session)).content

    async def stream(self, agent: Any, prompt: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer's text."""
        async for mode, payload in agent.astream_events(prompt, mode="auto"):
            if mode == "messages":
                yield payload[0].content

    async def open_store(self, folder: str) -> Any:
        """Open the run log."""
        return SQLiteRunLog(folder + "/log.db")

    async def close_store(self, store: Any) -> None:
        """Close the run log."""
        await store.aclose()
