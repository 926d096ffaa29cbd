"""A world whose power can be cut: what an agent did in it stays, and what its log had not written yet is gone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphwright.engine.journal import digest_of
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of
from graphwright.models.base import ModelRequest, StreamingChatModel
from graphwright.run_scope import current_call
from graphwright.runlog.base import Row, RunInfo, RunLog, RunStatus, RunWriter

__all__ = ["CrashPoint", "Power", "PowerCut", "ShakyLog", "World", "numbers_of", "transcript_of"]


class PowerCut(BaseException):
    """The process is gone. Nothing of an agent may catch it."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A moment at which a run is killed."""

    step: int
    """Which operation on the log, from 1, over all legs of the run."""
    when: Literal["before", "after"]
    """Whether the operation itself still took place."""
    queued: Literal["kept", "lost", "half"] = "kept"
    """What became of rows that were queued and not flushed: a log may have written all, none or some of them."""


class Power:
    """Counts the operations on a log and kills the run at one of them."""

    def __init__(self, point: CrashPoint | None = None, *, kill: Literal["cut", "process"] = "cut") -> None:
        self.point = point
        self.steps = 0
        self.names: list[str] = []
        self.off = False
        self._kill = kill
        self.lose: Callable[[], None] = lambda: None

    def check(self) -> None:
        """Raise in what still runs after the power was cut."""
        if self.off:
            raise PowerCut

    def around(self, name: str, operation: Callable[[], Any] | None = None) -> None:
        """Count an operation, do it, and be killed before or after it."""
        self.check()
        self.steps += 1
        self.names.append(name)
        due = self.point is not None and self.point.step == self.steps
        if due and self.point is not None and self.point.when == "before":
            self._cut()
        if operation is not None:
            operation()
        if due:
            self._cut()

    def _cut(self) -> None:
        if self._kill == "process":
            os.kill(os.getpid(), signal.SIGKILL)
        self.off = True
        self.lose()
        raise PowerCut


class World:
    """What outlives a crash: the effects that tools had, and how often models were asked.

    A tool of a scenario calls `effect`, and a scenario wraps its model by `model`. With a path the world is a file,
    so that it outlives the process too.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, power: Power | None = None) -> None:
        self._path = Path(path) if path is not None else None
        self._records: list[dict[str, Any]] = []
        self.power = power if power is not None else Power()

    def effect(self, name: str, *, key: str | None = None, idempotent: bool = False) -> bool:
        """Have an effect and return whether it is new: an idempotent one that was there already has none.

        `key` names it; inside a tool call, the call's own idempotency key is the default.
        """
        self.power.check()
        if key is None:
            key = _key_of_call()
        again = any(record["key"] == key for record in self.records("effect"))
        if not (again and idempotent):
            self._add({"what": "effect", "name": name, "key": key})
        return not again

    def model(self, model: Any) -> StreamingChatModel:
        """Return a model that answers as `model` does, and counts."""
        return _Counted(model, self)

    def asked(self, name: str, shown: Sequence[Any]) -> None:
        """Note that a model was asked, and what it was shown."""
        self.power.check()
        self._add({"what": "asked", "name": name, "key": digest_of(transcript_of(shown))})

    def records(self, what: str) -> list[dict[str, Any]]:
        """Return what happened, in order: of `"effect"` or of `"asked"`."""
        records = self._records
        if self._path is not None:
            text = self._path.read_text("utf-8") if self._path.exists() else ""
            records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if record["what"] == what]

    def _add(self, record: dict[str, Any]) -> None:
        if self._path is None:
            self._records.append(record)
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _key_of_call() -> str:
    from graphwright.tools import get_tool_context

    if current_call.get() is None:
        raise ConfigurationError("world.effect() was called outside of a tool call; give it a key there")
    return get_tool_context().idempotency_key


class _Counted:
    def __init__(self, model: Any, world: World) -> None:
        self._model = model
        self._world = world
        self.name: str = model.name
        self.capabilities = model.capabilities

    async def complete(self, request: ModelRequest) -> Any:
        self._world.asked(self.name, request.messages)
        return await self._model.complete(request)

    async def stream(self, request: ModelRequest) -> Any:
        self._world.asked(self.name, request.messages)
        async for piece in self._model.stream(request):
            yield piece


class ShakyLog(RunLog):
    """A run log in front of another one that loses its power at a given operation."""

    def __init__(self, log: RunLog, power: Power) -> None:
        self._log = log
        self._power = power
        self._writers: list[_ShakyWriter] = []
        self.durable = log.durable
        power.lose = self._lose

    def _lose(self) -> None:
        for writer in self._writers:
            writer.lose()

    async def let_go(self) -> None:
        """Give back the leases of writers that the crash left behind, as their expiry would."""
        for writer in self._writers:
            await writer.real.close("running")

    async def begin(self, info: RunInfo, **options: Any) -> RunWriter:
        """Begin a run on the log behind."""
        self._power.around("begin: before")
        writer = self._kept(await self._log.begin(info, **options))
        self._power.around("begin: after")
        return writer

    async def reopen(self, run_id: str, **options: Any) -> RunWriter:
        """Reopen a run of the log behind."""
        self._power.around("reopen: before")
        writer = self._kept(await self._log.reopen(run_id, **options))
        self._power.around("reopen: after")
        return writer

    def _kept(self, real: RunWriter) -> RunWriter:
        writer = _ShakyWriter(real, self._power)
        self._writers.append(writer)
        return writer

    async def info(self, run_id: str) -> RunInfo | None:
        """Return what the log behind knows."""
        return await self._log.info(run_id)

    async def latest(self, thread_id: str) -> RunInfo | None:
        """Return what the log behind knows."""
        return await self._log.latest(thread_id)

    async def rows(self, run_id: str) -> list[Row]:
        """Return what the log behind has."""
        return await self._log.rows(run_id)

    async def thread_rows(self, thread_id: str) -> list[tuple[RunInfo, list[Row]]]:
        """Return what the log behind has."""
        return await self._log.thread_rows(thread_id)

    async def runs(self, **options: Any) -> list[RunInfo]:
        """Return what the log behind has."""
        return await self._log.runs(**options)

    async def threads(self, **options: Any) -> Any:
        """Return what the log behind has."""
        return await self._log.threads(**options)

    async def delete_thread(self, thread_id: str) -> bool:
        """Delete a thread of the log behind."""
        return await self._log.delete_thread(thread_id)

    async def prune(self, **options: Any) -> int:
        """Prune the log behind."""
        return await self._log.prune(**options)

    async def aclose(self) -> None:
        """Leave the log behind open: whoever made it closes it."""


class _ShakyWriter(RunWriter):
    def __init__(self, real: RunWriter, power: Power) -> None:
        self.real = real
        self.run_id, self.thread_id = real.run_id, real.thread_id
        self._power = power
        self._queue: list[Row] = []

    def put(self, *rows: Row, soon: bool = False) -> None:
        self._power.around("put " + ", ".join(f"{row.kind} {row.frame}" for row in rows), lambda: self._put(rows, soon))

    def _put(self, rows: tuple[Row, ...], soon: bool) -> None:
        point = self._power.point
        if point is None or point.queued == "kept":
            self.real.put(*rows, soon=soon)
        else:
            self._queue.extend(rows)

    def lose(self) -> None:
        """Lose what is queued, or the second half of it."""
        point = self._power.point
        if point is not None and point.queued == "half" and self._queue:
            self.real.put(*self._queue[: len(self._queue) // 2])
        self._queue.clear()

    def _write(self) -> None:
        rows, self._queue = self._queue, []
        if rows:
            self.real.put(*rows)

    async def flush(self) -> None:
        self._power.around("flush: before")
        self._write()
        await self.real.flush()
        self._power.around("flush: after")

    async def close(self, status: RunStatus) -> None:
        self._power.around(f"close {status}: before")
        self._write()
        await self.real.close(status)
        self._power.around(f"close {status}: after")


def numbers_of(messages: Sequence[Any]) -> dict[str, int]:
    """Return the place of each call among the calls of a conversation, by its id."""
    numbers: dict[str, int] = {}
    for message in messages:
        for call in getattr(message, "tool_calls", ()):
            numbers.setdefault(call["id"], len(numbers))
    return numbers


def transcript_of(messages: Sequence[Any]) -> list[Any]:
    """Return a conversation as plain data that is equal for equal conversations, whatever the ids."""
    numbers = numbers_of(messages)
    lines: list[Any] = []
    for message in messages:
        calls = [(call["name"], call["args"], numbers[call["id"]]) for call in getattr(message, "tool_calls", ())]
        answers = numbers.get(message.tool_call_id) if message.type == "tool" else None
        lines.append((message.type, text_of(message), calls, answers))
    return lines
