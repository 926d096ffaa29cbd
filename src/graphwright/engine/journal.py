"""What a run writes to its log while it goes on, and what it reads there when it goes on later.

A visit of a node has a frame, `node#visit`; what runs inside it has a longer one. The code of a visit that has no
`delta` row runs again from its top, and every effect in it (a model call, a tool call, a question to a person) is
looked up in the rows of its frame first. So each frame counts what is asked of it, in the order of the code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import GraphwrightError, InterruptError, SessionError
from graphwright.interrupts import Interrupt, Interrupted
from graphwright.runlog.base import Row

if TYPE_CHECKING:
    from graphwright.runlog.base import RunWriter
    from graphwright.tools.base import ToolGate
    from graphwright.usage import Usage

__all__ = ["EXPIRED", "AnswerRefused", "Ask", "Frame", "Given", "Inside", "Journal", "LeavesRun", "digest_of"]

EXPIRED: Any = object()
"""Stands for the answer to a question that nobody answered in time."""


class LeavesRun(BaseException):
    """Carries an error that is no failure of a node, past every node and out of the run."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class AnswerRefused(LeavesRun):
    """An answer does not fit, so the run stays paused."""

    error: InterruptError


@dataclass(slots=True)
class Ask:
    """One question to a person."""

    kind: str
    key: str
    value: dict[str, Any]
    expires_at: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """What the log keeps beside the question, for whoever checks the answer."""


@dataclass(slots=True)
class Given:
    """An answer that this run was resumed with."""

    value: Any
    by: str | None = None
    at: float = field(default_factory=time.time)

    def row(self, **more: Any) -> dict[str, Any]:
        """Return what the log keeps of it."""
        return {"value": self.value, "by": self.by, "at": self.at, **more}


@dataclass(slots=True)
class Inside:
    """The place of a run that is a part of another one: that of an agent which a tool of the other asks."""

    path: str
    """Where its events belong, as names joined by `/`."""
    usage: Usage
    """What it uses is added here."""
    journal: Journal | None = None
    """The log of the outer run."""
    frame: str = ""
    """What its frames begin with; ends with `/`."""
    gate: ToolGate | None = None
    """What judges its tool calls beside its own gate."""


class Journal:
    """The log of one run, as its engine uses it."""

    __slots__ = (
        "_found",
        "_given",
        "_last",
        "_on_taken",
        "_writer",
        "approved",
        "logged",
        "resumed",
        "run_id",
        "thread_id",
    )

    def __init__(
        self,
        writer: RunWriter,
        rows: Iterable[Row] = (),
        given: Mapping[str, Given] | None = None,
        *,
        on_taken: Callable[[], None] | None = None,
    ) -> None:
        self._writer = writer
        self.run_id = writer.run_id
        self.thread_id = writer.thread_id
        self._found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        for row in rows:
            self._found.setdefault((row.kind, row.frame), {})[row.key] = row.data
        self._given = dict(given or {})
        self._on_taken = on_taken
        self.logged = 0
        self._last: Any = None
        self.resumed = bool(self._found)
        """Whether the run began in an earlier leg."""
        answers = self._found.get(("answer", ""), {}).values()
        self.approved: set[str] = {data["tool"] for data in answers if data.get("always")}
        """Tools that a person approved for the rest of the run."""

    def find(self, kind: str, frame: str, key: str = "") -> dict[str, Any] | None:
        """Return what an earlier leg of the run wrote."""
        rows = self._found.get((kind, frame)) if self._found else None
        return rows.get(key) if rows is not None else None

    def found_in(self, kind: str, frame: str) -> dict[str, dict[str, Any]]:
        """Return all of one kind that an earlier leg wrote for a frame, by key."""
        return self._found.get((kind, frame), {})

    def put(self, kind: str, frame: str, key: str, data: dict[str, Any], *, soon: bool = False) -> None:
        """Queue a row.

        Raises:
            UnstorableError: the log cannot keep it.
        """
        try:
            self._writer.put(Row(kind, frame, key, data), soon=soon)
        except SessionError as error:  # the log is gone, or somebody else has the thread: nothing may go on
            raise LeavesRun(error) from error

    async def flush(self) -> None:
        """Return when what was queued is durable."""
        try:
            await self._writer.flush()
        except SessionError as error:  # as in put
            raise LeavesRun(error) from error

    def note(self, messages: list[Any]) -> None:
        """Note how far the log has the conversation of the run."""
        self.logged = len(messages)
        self._last = messages[-1] if messages else None

    def tail(self, messages: list[Any]) -> dict[str, Any]:
        """Return what the log does not have of the conversation yet, for a row."""
        if len(messages) >= self.logged and (self.logged == 0 or messages[self.logged - 1] is self._last):
            return {"m": messages[self.logged :]} if messages[self.logged :] else {}
        return {"m": list(messages), "all": True}

    def ask(self, frame: str, asks: Sequence[Ask]) -> list[Any]:
        """Return the answers, in order; `EXPIRED` for a question whose time has passed.

        Raises:
            Interrupted: some are not answered yet. All of them are in the log then.
        """
        answers: list[Any] = []
        pending: list[Interrupt] = []
        for ask in asks:
            answer = self._answer(frame, ask)
            answers.append(answer)
            if isinstance(answer, Interrupt):
                pending.append(answer)
        if pending:
            raise Interrupted(pending)
        return answers

    def _answer(self, frame: str, ask: Ask) -> Any:
        """Return the answer to a question, or the interrupt that waits for one."""
        item_id = self._id_of(frame, ask)
        row = self.find("interrupt", frame, ask.key)
        if row is None:
            item = Interrupt(item_id, ask.kind, ask.value, frame, time.time(), ask.expires_at)
            self.put("interrupt", frame, ask.key, {"item": item, "digest": digest_of(ask.value), **ask.extra})
            return item
        item = row["item"]
        if item.kind != ask.kind or row["digest"] != digest_of(ask.value):
            raise GraphwrightError(
                f"{frame!r} asked a question of kind {item.kind!r} before and now asks another in its place; "
                "code that pauses has to ask the same each time it runs"
            )
        answered = self.find("answer", "", item_id)
        if answered is not None:
            return answered["value"]
        if item_id in self._given:
            return self._given[item_id].value
        if item.expires_at is not None and time.time() > item.expires_at:
            return EXPIRED
        return item

    def accept(self, frame: str, ask: Ask, *, approve_tool: str | None = None) -> None:
        """Keep an answer that this leg was given, if it was: from here on it holds for every later one.

        `approve_tool` is a tool that needs no further question in this run.
        """
        item_id = self._id_of(frame, ask)
        given = self._given.get(item_id)
        if given is None or self.find("answer", "", item_id) is not None:
            return
        data = given.row()
        if approve_tool is not None:
            data |= {"tool": approve_tool, "always": True}
            self.approved.add(approve_tool)
        self.put("answer", "", item_id, data, soon=True)
        kept = self._found.setdefault(("answer", ""), {})
        kept[item_id] = data
        if self._on_taken is not None and all(each in kept for each in self._given):
            self._on_taken()

    def is_new(self, frame: str, ask: Ask) -> bool:
        """Return whether the answer to a question came with this leg and was not kept yet."""
        item_id = self._id_of(frame, ask)
        return item_id in self._given and self.find("answer", "", item_id) is None

    def _id_of(self, frame: str, ask: Ask) -> str:
        return f"int_{digest_of([self.run_id, frame, ask.kind, ask.key])}"


class Frame:
    """The place of one visit in the log, and how much was asked of it so far."""

    __slots__ = ("_counts", "journal", "made", "mutations", "node", "outcomes", "path")

    def __init__(self, journal: Journal, path: str, node: Any) -> None:
        self.journal = journal
        self.path = path
        self.node = node
        self._counts: dict[str, int] = {}
        self.made: dict[int, list[str]] = {}
        """Messages that rows of this frame hold already: identity -> the row that has it."""
        self.mutations: list[Any] = []
        """Changes of the graph that the visit made."""
        self.outcomes = 0
        """How many calls of the visit have their outcome in the log."""

    def next(self, what: str) -> int:
        """Return how often `what` was asked for before, and count this time."""
        count = self._counts.get(what, 0)
        self._counts[what] = count + 1
        return count

    def give_back(self, what: str, count: int) -> None:
        """Take a count back that came to nothing, unless something was counted since."""
        if self._counts.get(what) == count + 1:
            self._counts[what] = count


def digest_of(value: Any) -> str:
    """Return a short digest of plain data, equal for equal data."""
    from graphwright._internal.jsonio import dumps

    return blake2b(dumps(value).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
