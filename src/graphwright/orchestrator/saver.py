"""Where the threads of a bot are kept, made of what is given as `checkpointer`."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from graphwright._internal.ids import new_run_id
from graphwright._internal.threads import run_in_thread
from graphwright.runlog import MemoryRunLog, as_run_log
from graphwright.runlog.base import BusyPolicy, Row, RunInfo, RunLog, RunWriter
from graphwright.runtime.history import thread_conversation

__all__ = ["SaverRunLog", "as_thread_log"]

_OWNER = "graphwright_owner"


def as_thread_log(checkpointer: Any) -> RunLog:
    """Return the run log behind `checkpointer`: itself, a file, memory, or a LangGraph saver through an adapter.

    Raises:
        ConfigurationError: it is none of these.
    """
    if checkpointer is None:
        return MemoryRunLog()
    if _is_saver(checkpointer):
        return SaverRunLog(checkpointer)
    log = as_run_log(checkpointer)
    assert log is not None
    return log


def _is_saver(value: Any) -> bool:
    return not isinstance(value, RunLog) and all(
        callable(getattr(value, name, None)) for name in ("aget_tuple", "aput", "get_tuple", "put")
    )


class SaverRunLog(MemoryRunLog):
    """Keeps runs in memory, and the conversation of each thread in a LangGraph saver.

    Limits: a thread's messages and whom it belongs to outlive the process; a run that is paused or cut off does not,
    and neither do its questions. A run log of our own keeps all of it.
    """

    def __init__(self, saver: Any, **options: Any) -> None:
        super().__init__(**options)
        self._saver = saver
        self._loading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def begin(self, info: RunInfo, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the thread's lease, with what the saver has of it."""
        await self._load(info.thread_id)
        writer = await super().begin(info, on_busy=on_busy, wait_seconds=wait_seconds)
        return _SavingWriter(self, writer)

    async def reopen(self, run_id: str, *, on_busy: BusyPolicy = "refuse", wait_seconds: float = 60.0) -> RunWriter:
        """Take the lease again to go on with a run."""
        return _SavingWriter(self, await super().reopen(run_id, on_busy=on_busy, wait_seconds=wait_seconds))

    async def thread_rows(self, thread_id: str) -> list[tuple[RunInfo, list[Row]]]:
        """Return the runs of a thread with their rows; what only the saver has is one run that has ended."""
        await self._load(thread_id)
        return await super().thread_rows(thread_id)

    async def save(self, thread_id: str) -> None:
        """Write the conversation of a thread to the saver."""
        runs = await super().thread_rows(thread_id)
        checkpoint = _empty_checkpoint()
        version = checkpoint["id"]
        checkpoint["channel_values"] = {"messages": thread_conversation(runs)}
        checkpoint["channel_versions"] = {"messages": version}
        metadata = {"source": "update", "step": len(runs), "parents": {}}
        if runs and runs[0][0].owner is not None:
            metadata[_OWNER] = runs[0][0].owner
        await _called(self._saver, "aput", "put", _config(thread_id), checkpoint, metadata, {"messages": version})

    async def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread here and in the saver; return whether there was one here."""
        there = await super().delete_thread(thread_id)
        if callable(getattr(self._saver, "adelete_thread", None)):
            await _called(self._saver, "adelete_thread", "delete_thread", thread_id)
        return there

    async def _load(self, thread_id: str) -> None:
        if await super().latest(thread_id) is not None:
            return
        lock = self._loading.get(thread_id)
        if lock is None:
            lock = self._loading[thread_id] = asyncio.Lock()
        async with lock:
            if await super().latest(thread_id) is not None:
                return
            found = await _called(self._saver, "aget_tuple", "get_tuple", _config(thread_id))
            messages = found.checkpoint.get("channel_values", {}).get("messages") if found is not None else None
            if not messages:
                return
            # What nobody is named for belongs to nobody, so no caller comes by the thread of another.
            owner = (found.metadata or {}).get(_OWNER)
            info = RunInfo(
                run_id=f"{thread_id}-{uuid4().hex}", thread_id=thread_id, owner=owner, title="loaded from the saver"
            )
            writer = await super().begin(info)
            writer.put(Row("input", "", "", {"m": list(messages)}), Row("end", "", "", {"status": "completed"}))
            await writer.close("completed")


class _SavingWriter(RunWriter):
    """Writes to the log in memory, and to the saver when the run ends or pauses."""

    def __init__(self, log: SaverRunLog, inner: RunWriter) -> None:
        self._log = log
        self._inner = inner
        self.run_id, self.thread_id = inner.run_id, inner.thread_id

    def put(self, *rows: Row, soon: bool = False) -> None:
        """Queue rows."""
        self._inner.put(*rows, soon=soon)

    async def flush(self) -> None:
        """Return when everything that was queued is kept."""
        await self._inner.flush()

    async def close(self, status: Any) -> None:
        """Give the lease back, and write the conversation to the saver."""
        await self._inner.close(status)
        if status != "rejected":
            await self._log.save(self.thread_id)


def _config(thread_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def _empty_checkpoint() -> dict[str, Any]:
    try:
        from langgraph.checkpoint.base import empty_checkpoint
    except ImportError:  # an object that only looks like a saver
        return {"v": 4, "id": new_run_id(), "ts": datetime.now(UTC).isoformat(), "versions_seen": {}}
    checkpoint: dict[str, Any] = dict(empty_checkpoint())
    return checkpoint


async def _called(saver: Any, name: str, blocking: str, *args: Any) -> Any:
    """Call the async method of a saver, or the other where it has only that."""
    try:
        value = getattr(saver, name)(*args)
        return await value if inspect.isawaitable(value) else value
    except NotImplementedError:
        return await run_in_thread(getattr(saver, blocking), *args)
