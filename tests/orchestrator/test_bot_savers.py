"""A LangGraph saver as the place where threads are kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.orchestrator._bots import bot_of, read, state_of

from graphwright import CallerContext
from graphwright.exceptions import ConfigurationError, SessionAccessDenied
from graphwright.messages import text_of
from graphwright.testing import ScriptedModel, calls, says

needs_langgraph = pytest.mark.skipif(
    importlib.util.find_spec("langgraph") is None or importlib.util.find_spec("langgraph.checkpoint.sqlite") is None,
    reason="install langgraph-checkpoint-sqlite to run this test",
)


class DuckSaver:
    """Keeps checkpoints as a LangGraph saver does."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    def get_tuple(self, config: Any) -> Any:
        found = self.kept.get(config["configurable"]["thread_id"])
        return found[-1] if found else None

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        return self.put(config, checkpoint, metadata, versions)

    def put(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        entry = SimpleNamespace(config=config, checkpoint=checkpoint, metadata=metadata)
        self.kept.setdefault(config["configurable"]["thread_id"], []).append(entry)
        return config


class SyncOnlySaver(DuckSaver):
    """Has only the sync side, as the SQLite saver of LangGraph does."""

    async def aget_tuple(self, config: Any) -> Any:
        raise NotImplementedError("use the async saver")

    async def aput(self, *args: Any) -> Any:
        raise NotImplementedError("use the async saver")


async def act() -> str:
    """Act."""
    return "acted"


@pytest.mark.parametrize("kind", [DuckSaver, SyncOnlySaver])
async def test_a_thread_goes_on_in_another_process_by_what_the_saver_has(kind: Any) -> None:
    saver = kind()
    await bot_of([calls("act"), says("one")], [act], checkpointer=saver).arun("first", thread_id="t")

    model = ScriptedModel([says("two")])
    second = bot_of(model, [act], checkpointer=saver)
    await second.arun("second", thread_id="t")

    assert [message.type for message in model.inputs[0]] == ["system", "human", "ai", "tool", "ai", "human"]
    assert [text_of(message) for message in state_of(second, "t")["messages"]][-1] == "two"
    assert len(saver.kept["t"][-1].checkpoint["channel_values"]["messages"]) == 6


async def test_the_thread_of_a_caller_stays_that_caller_s_in_another_process() -> None:
    saver = DuckSaver()
    ana = CallerContext(user_id="ana")
    await bot_of([says("secret")], checkpointer=saver).arun("mine", thread_id="t", caller=ana)

    model = ScriptedModel([says("hello")])
    bot = bot_of(model, checkpointer=saver)
    for other in (None, CallerContext(user_id="bob")):
        with pytest.raises(SessionAccessDenied):
            await bot.arun("show me", thread_id="t", caller=other)

    assert model.inputs == []
    assert (await bot.arun("mine again", thread_id="t", caller=ana)).content == "hello"


async def test_a_thread_that_memory_has_dropped_is_read_from_the_saver_again() -> None:
    from graphwright.orchestrator.saver import SaverRunLog

    model = ScriptedModel.answering(lambda _: says("x"))
    bot = bot_of(model, checkpointer=SaverRunLog(DuckSaver(), max_threads=2))
    for name in ("t", "u", "v", "w"):
        await bot.arun("hi", thread_id=name)

    await bot.arun("again", thread_id="t")

    assert len(model.inputs[-1]) == 4


async def test_a_run_that_waits_does_so_within_the_process_that_began_it() -> None:
    saver = DuckSaver()
    bot = bot_of([calls("act"), says("ok")], [act], checkpointer=saver)
    await read(bot.astream_events("go", mode="ask", thread_id="t"))

    assert (await bot.aresume("t", True)).content == "ok"


@needs_langgraph
@pytest.mark.may_skip("langgraph-checkpoint-sqlite is not among the tools of this project")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "async_sqlite"])
async def test_the_savers_of_langgraph_keep_a_thread(kind: str, tmp_path: Path) -> None:
    from contextlib import AsyncExitStack

    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncExitStack() as stack:
        saver: Any
        if kind == "memory":
            saver = InMemorySaver()
        elif kind == "sqlite":
            saver = stack.enter_context(SqliteSaver.from_conn_string(str(tmp_path / "x.db")))
        else:
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(tmp_path / "x.db")))
        ana = CallerContext(user_id="ana")
        bot = bot_of([calls("act"), says("one")], [act], checkpointer=saver)
        await bot.arun("first", thread_id="t", caller=ana)
        model = ScriptedModel([says("two"), says("three")])
        second = bot_of(model, [act], checkpointer=saver)
        with pytest.raises(SessionAccessDenied):
            await second.arun("other", thread_id="t")
        await second.arun("second", thread_id="t", caller=ana)
        await second.arun("third", thread_id="t", caller=ana)
        assert [message.type for message in model.inputs[1]][1:] == [
            "human",
            "ai",
            "tool",
            "ai",
            "human",
            "ai",
            "human",
        ]
        assert await second.checkpointer.delete_thread("t")
        assert saver.get_tuple({"configurable": {"thread_id": "t"}}) is None if kind != "async_sqlite" else True


def test_what_is_no_place_to_keep_threads_in_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        bot_of([], checkpointer=object())
